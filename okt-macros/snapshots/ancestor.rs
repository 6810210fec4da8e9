// What the macros write for ui-tests/cases/pass/ancestor.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &App) {
        match state {
            App::Running { .. } => {}
            App::Servicing { .. } => {}
            App::Stopping { .. } => {}
            App::Running { .. } => {}
            App::End { .. } => {}
            App::End { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`App`](super::App) answer: for each state that has one, where it leads.
mod app {
    /// How the work of `Start` ends; it leads to `Running`.
    #[derive(Clone, Copy)]
    pub enum AfterStart {
        /// On towards the desired state, or to the last child, `Running`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Running`
        Running,
    }
    /// How the work of `Running` ends; it leads to `Servicing` or `Stopping`.
    #[derive(Clone, Copy)]
    pub enum AfterRunning {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards the desired state, or to the last child, `Stopping`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Servicing`
        Servicing,
        /// Go to `Stopping`
        Stopping,
    }
    /// How the work of `Servicing` ends; it leads to `Running` or `End`.
    #[derive(Clone, Copy)]
    pub enum AfterServicing {
        /// On towards the desired state, or to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Running`
        Running,
        /// Go to `End`
        End,
    }
    /// How the work of `Stopping` ends; it leads to `End`.
    #[derive(Clone, Copy)]
    pub enum AfterStopping {
        /// On towards the desired state, or to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `End`
        End,
    }
}
/// Does the work of each state of [`App`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `App`",
    label = "`AppHandler` is not implemented for `{Self}`",
    note = "implement `AppHandler`: one `async fn` per state that is not idle (`start`, `running`, `servicing`, `stopping`, `end`)"
)]
trait AppHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The work of [`Start`](App::Start)
    ///
    /// Answers `Next`, `Wait` or `Running`.
    fn start(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<app::AfterStart, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Running`](App::Running)
    ///
    /// Answers `Stay`, `Next`, `Wait`, `Servicing` or `Stopping`.
    fn running(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<app::AfterRunning, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Servicing`](App::Servicing)
    ///
    /// Answers `Next`, `Wait`, `Running` or `End`.
    fn servicing(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<app::AfterServicing, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Stopping`](App::Stopping)
    ///
    /// Answers `Next`, `Wait` or `End`.
    fn stopping(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<app::AfterStopping, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`End`](App::End)
    ///
    /// The last work of a lifecycle: deletes what is left.
    fn end(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), Self::Error>,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "App",
        doc: "",
        kind: __okt::Kind::Lifecycle,
        states: &[
            __okt::State {
                name: "Start",
                variant: "Start",
                doc: "",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Running",
                variant: "Running",
                doc: "",
                was: &[],
                marks: __okt::Marks(2),
                triggers: &[],
                children: &[__okt::StateId(2), __okt::StateId(3)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Servicing",
                variant: "Servicing",
                doc: "",
                was: &[],
                marks: __okt::Marks(32),
                triggers: &[],
                children: &[__okt::StateId(1), __okt::StateId(4)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Stopping",
                variant: "Stopping",
                doc: "",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[],
                children: &[__okt::StateId(4)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "End",
                variant: "End",
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
            rows: __okt::Table(b"\xFF\xFF\0\0\x01\0\xFF\xFF\x02\0"),
            hops: __okt::Table(
                b"\x01\0\xFF\xFF\x01\0\xFF\xFF\xFF\xFF\x01\0\x02\0\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\x03\0\x04\0\x04\0\xFF\xFF",
            ),
            out: __okt::Table(b"\x01\0\x03\0\x04\0\x04\0\xFF\xFF"),
            home: __okt::StateId(1),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for App {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            match self {
                Self::Start => __okt::StateId(0),
                Self::Running => __okt::StateId(1),
                Self::Servicing => __okt::StateId(2),
                Self::Stopping => __okt::StateId(3),
                Self::End => __okt::StateId(4),
            }
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Start,
                Self::Running,
                Self::Servicing,
                Self::Stopping,
                Self::End,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for app::AfterStart {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Running => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for app::AfterStart {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for app::AfterStart {}
    #[automatically_derived]
    impl ::core::fmt::Debug for app::AfterStart {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for app::AfterRunning {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Servicing => __okt::Answer::To(__okt::StateId(2)),
                Self::Stopping => __okt::Answer::To(__okt::StateId(3)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for app::AfterRunning {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for app::AfterRunning {}
    #[automatically_derived]
    impl ::core::fmt::Debug for app::AfterRunning {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for app::AfterServicing {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Running => __okt::Answer::To(__okt::StateId(1)),
                Self::End => __okt::Answer::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for app::AfterServicing {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for app::AfterServicing {}
    #[automatically_derived]
    impl ::core::fmt::Debug for app::AfterServicing {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for app::AfterStopping {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::End => __okt::Answer::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for app::AfterStopping {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for app::AfterStopping {}
    #[automatically_derived]
    impl ::core::fmt::Debug for app::AfterStopping {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<__H: AppHandler> __okt::Dispatch<__H> for App {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &Self::Context,
        ) -> ::core::result::Result<__okt::Answer, Self::Error> {
            match self {
                Self::Start => {
                    <__H as AppHandler>::start(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Running => {
                    <__H as AppHandler>::running(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Servicing => {
                    <__H as AppHandler>::servicing(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Stopping => {
                    <__H as AppHandler>::stopping(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::End => {
                    <__H as AppHandler>::end(handler, cx)
                        .await
                        .map(|()| __okt::Answer::Stay)
                }
            }
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<App>> __okt::Dispatch<__okt::Delegated<__D>> for App {
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
