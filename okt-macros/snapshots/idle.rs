// What the macros write for ui-tests/cases/pass/idle.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &Light) {
        match state {
            Light::On { .. } => {}
            Light::Gone { .. } => {}
            Light::Off { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`Light`](super::Light) answer: for each state that has one, where it leads.
mod light {}
/// Does the work of each state of [`Light`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `Light`",
    label = "`LightHandler` is not implemented for `{Self}`",
    note = "implement `LightHandler`: it has no methods here"
)]
trait LightHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "Light",
        doc: "",
        kind: __okt::Kind::Lifecycle,
        states: &[
            __okt::State {
                name: "Off",
                variant: "Off",
                doc: "",
                was: &[],
                marks: __okt::Marks(11),
                triggers: &[],
                children: &[__okt::StateId(1), __okt::StateId(2)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "On",
                variant: "On",
                doc: "",
                was: &[],
                marks: __okt::Marks(10),
                triggers: &[],
                children: &[__okt::StateId(0)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Gone",
                variant: "Gone",
                doc: "",
                was: &[],
                marks: __okt::Marks(24),
                triggers: &[],
                children: &[],
                conditions: &[],
                no_routes: &[],
            },
        ],
        routes: __okt::Routes {
            rows: __okt::Table(b"\0\0\x01\0\x02\0"),
            hops: __okt::Table(
                b"\xFF\xFF\0\0\xFF\xFF\x01\0\xFF\xFF\xFF\xFF\x02\0\0\0\xFF\xFF",
            ),
            out: __okt::Table(b"\x02\0\0\0\xFF\xFF"),
            home: __okt::StateId(0),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for Light {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            match self {
                Self::Off => __okt::StateId(0),
                Self::On => __okt::StateId(1),
                Self::Gone => __okt::StateId(2),
            }
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[Self::Off, Self::On, Self::Gone];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl<__H: LightHandler> __okt::Dispatch<__H> for Light {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &Self::Context,
        ) -> ::core::result::Result<__okt::Answer, Self::Error> {
            let _ = (handler, cx);
            match self {
                Self::Off | Self::On | Self::Gone => {
                    ::core::result::Result::Ok(__okt::Answer::Stay)
                }
            }
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<Light>> __okt::Dispatch<__okt::Delegated<__D>> for Light {
        type Context = __D::Context;
        type Error = __D::Error;
        fn dispatch(
            self,
            delegated: &__okt::Delegated<__D>,
            cx: &Self::Context,
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<__okt::Answer, Self::Error>,
        > + ::core::marker::Send {
            __okt::hand_on(self, delegated, cx)
        }
    }
};
