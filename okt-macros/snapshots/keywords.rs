// What the macros write for ui-tests/cases/pass/keywords.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &Async) {
        match state {
            Async::r#Loop { .. } => {}
            Async::Await { .. } => {}
            Async::r#Yield { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`Async`](super::Async) answer: for each state that has one, where it leads.
mod r#async {
    /// How the work of `Type` ends; it leads to `Loop`.
    #[derive(Clone, Copy)]
    pub enum AfterType {
        /// On towards the desired state, or to the last child, `Loop`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Loop`
        Loop,
    }
    /// How the work of `Loop` ends; it leads to `Await`.
    #[derive(Clone, Copy)]
    pub enum AfterLoop {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards the desired state, or to the last child, `Await`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Await`
        Await,
    }
    /// How the work of `Await` ends; it leads to `Yield`.
    #[derive(Clone, Copy)]
    pub enum AfterAwait {
        /// On towards the desired state, or to the last child, `Yield`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Yield`
        Yield,
    }
}
/// Does the work of each state of [`Async`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `Async`",
    label = "`AsyncHandler` is not implemented for `{Self}`",
    note = "implement `AsyncHandler`: one `async fn` per state that is not idle (`r#type`, `r#loop`, `r#await`, `r#yield`)"
)]
trait AsyncHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The work of [`Type`](Async::Type)
    ///
    /// Answers `Next`, `Wait` or `Loop`.
    fn r#type(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<r#async::AfterType, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Loop`](Async::Loop)
    ///
    /// Answers `Stay`, `Next`, `Wait` or `Await`.
    fn r#loop(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<r#async::AfterLoop, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Await`](Async::Await)
    ///
    /// Answers `Next`, `Wait` or `Yield`.
    fn r#await(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<r#async::AfterAwait, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Yield`](Async::Yield)
    ///
    /// The last work of a lifecycle: deletes what is left.
    fn r#yield(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), Self::Error>,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "Async",
        doc: "",
        kind: __okt::Kind::Lifecycle,
        states: &[
            __okt::State {
                name: "Type",
                variant: "Type",
                doc: "",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Loop",
                variant: "Loop",
                doc: "",
                was: &[],
                marks: __okt::Marks(2),
                triggers: &[],
                children: &[__okt::StateId(2)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Await",
                variant: "Await",
                doc: "",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[],
                children: &[__okt::StateId(3)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Yield",
                variant: "Yield",
                doc: "",
                was: &[],
                marks: __okt::Marks(16),
                triggers: &[],
                children: &[],
                conditions: &[],
                no_routes: &[],
            },
        ],
        routes: __okt::Routes {
            rows: __okt::Table(b"\xFF\xFF\0\0\xFF\xFF\x01\0"),
            hops: __okt::Table(
                b"\x01\0\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\x02\0\x03\0\xFF\xFF",
            ),
            out: __okt::Table(b"\x01\0\x02\0\x03\0\xFF\xFF"),
            home: __okt::StateId(1),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for Async {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            match self {
                Self::Type => __okt::StateId(0),
                Self::Loop => __okt::StateId(1),
                Self::Await => __okt::StateId(2),
                Self::Yield => __okt::StateId(3),
            }
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Type,
                Self::Loop,
                Self::Await,
                Self::Yield,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for r#async::AfterType {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Loop => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for r#async::AfterType {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for r#async::AfterType {}
    #[automatically_derived]
    impl ::core::fmt::Debug for r#async::AfterType {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for r#async::AfterLoop {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Await => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for r#async::AfterLoop {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for r#async::AfterLoop {}
    #[automatically_derived]
    impl ::core::fmt::Debug for r#async::AfterLoop {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for r#async::AfterAwait {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Yield => __okt::Answer::To(__okt::StateId(3)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for r#async::AfterAwait {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for r#async::AfterAwait {}
    #[automatically_derived]
    impl ::core::fmt::Debug for r#async::AfterAwait {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<__H: AsyncHandler> __okt::Dispatch<__H> for Async {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &Self::Context,
        ) -> ::core::result::Result<__okt::Answer, Self::Error> {
            match self {
                Self::Type => {
                    <__H as AsyncHandler>::r#type(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Loop => {
                    <__H as AsyncHandler>::r#loop(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Await => {
                    <__H as AsyncHandler>::r#await(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Yield => {
                    <__H as AsyncHandler>::r#yield(handler, cx)
                        .await
                        .map(|()| __okt::Answer::Stay)
                }
            }
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<Async>> __okt::Dispatch<__okt::Delegated<__D>> for Async {
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
