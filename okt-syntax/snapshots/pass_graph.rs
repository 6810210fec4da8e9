// What the macros write; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &BrokerPass) {
        match state {
            BrokerPass::Finalize { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::Apply { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`BrokerPass`](super::BrokerPass) answer: for each state that has one, where it leads.
pub mod broker_pass {
    /// How the work of `Apply` ends; it leads to `Finalize` or `End`.
    pub enum AfterApply {
        /// The step is done; on to the last child, `End`.
        Next,
        /// Go to `Finalize`
        Finalize,
        /// Go to `End`
        End,
    }
    /// How the work of `Finalize` ends; it leads to `End`.
    pub enum AfterFinalize {
        /// The step is done; on to the last child, `End`.
        Next,
        /// Go to `End`
        End,
    }
    /// The types of the conditions that the states declare.
    pub mod conditions {
        /// The condition `Released`.
        pub const RELEASED: &str = "Released";
    }
}
/// Takes the step of each state of [`BrokerPass`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not take the steps of `BrokerPass`",
    label = "`BrokerPassHandler` is not implemented for `{Self}`",
    note = "implement `BrokerPassHandler`: one `async fn` per state that is not idle (`apply`, `finalize`)"
)]
pub trait BrokerPassHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The step of [`Apply`](BrokerPass::Apply)
    ///
    /// Answers `Next`, `Finalize` or `End`.
    fn apply(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterApply>,
            Self::Error,
        >,
    > + ::core::marker::Send;
    /// The step of [`Finalize`](BrokerPass::Finalize)
    ///
    /// Answers `Next` or `End`.
    fn finalize(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterFinalize>,
            Self::Error,
        >,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "BrokerPass",
        doc: "",
        kind: __okt::Kind::Pass,
        parts: &[],
        gates: &[],
        states: &[
            __okt::State {
                name: "Apply",
                variant: "Apply",
                doc: "",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(1),
                        cause: __okt::Cause::OnDelete,
                    },
                ],
                children: &[__okt::StateId(2)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Finalize",
                variant: "Finalize",
                doc: "",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(2),
                        cause: __okt::Cause::OnGiveUp,
                    },
                ],
                children: &[__okt::StateId(2)],
                conditions: &[
                    __okt::Declared {
                        name: "Released",
                        status: __okt::ConditionStatus::True,
                        reason: "",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "End",
                variant: "End",
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
            rows: __okt::Table(b"\xFF\xFF\xFF\xFF\0\0"),
            hops: __okt::Table(b"\x02\0\x02\0\xFF\xFF"),
            out: __okt::Table(b"\x01\0\x02\0\xFF\xFF"),
            home: __okt::StateId(2),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for BrokerPass {
        type Gate = __okt::NoGate;
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            __okt::StateId(self as u16)
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[Self::Apply, Self::Finalize, Self::End];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl<__Spec: ?::core::marker::Sized> __okt::SpecParts<__Spec> for BrokerPass {}
    #[automatically_derived]
    impl __okt::Successor for broker_pass::AfterApply {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Finalize => __okt::Answer::To(__okt::StateId(1)),
                Self::End => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for broker_pass::AfterApply {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for broker_pass::AfterFinalize {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::End => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for broker_pass::AfterFinalize {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<__H: BrokerPassHandler> __okt::PassDispatch<__H> for BrokerPass {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn step(
            self,
            handler: &__H,
            cx: &__H::Context,
        ) -> ::core::result::Result<__okt::Step<__okt::Answer>, __H::Error> {
            let work: __okt::Work<'_, _, __H::Error> = match self {
                Self::Apply => {
                    __okt::step(<__H as BrokerPassHandler>::apply(handler, cx))
                }
                Self::Finalize => {
                    __okt::step(<__H as BrokerPassHandler>::finalize(handler, cx))
                }
                Self::End => {
                    return ::core::result::Result::Ok(
                        __okt::Step::done(__okt::Answer::Stay),
                    );
                }
            };
            work.await
        }
    }
};
