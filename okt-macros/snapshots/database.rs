// What the macros write for ui-tests/cases/pass/database.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &DatabaseState) {
        match state {
            DatabaseState::Failed { .. } => {}
            DatabaseState::Running { .. } => {}
            DatabaseState::Failed { .. } => {}
            DatabaseState::Servicing { .. } => {}
            DatabaseState::Stopping { .. } => {}
            DatabaseState::Failed { .. } => {}
            DatabaseState::Running { .. } => {}
            DatabaseState::End { .. } => {}
            DatabaseState::End { .. } => {}
            DatabaseState::Running { .. } => {}
            DatabaseState::Servicing { .. } => {}
            DatabaseState::Stopping { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`DatabaseState`](super::DatabaseState) answer: for each state that has one, where it leads.
pub mod database_state {
    /// How the work of `Start` ends; it leads to `Failed` or `Running`.
    #[derive(Clone, Copy)]
    pub enum AfterStart {
        /// On towards the desired state, or to the last child, `Running`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Failed`: Somebody has to look.
        Failed,
        /// Go to `Running`: Clients may connect.
        Running,
    }
    /// How the work of `Running` ends; it leads to `Failed`, `Servicing` or `Stopping`.
    #[derive(Clone, Copy)]
    pub enum AfterRunning {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards the desired state, or to the last child, `Stopping`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Failed`: Somebody has to look.
        Failed,
        /// Go to `Servicing`: A backup is under way.
        Servicing,
        /// Go to `Stopping`: Clients are being asked to leave.
        Stopping,
    }
    /// How the work of `Servicing` ends; it leads to `Failed`, `Running` or `End`.
    #[derive(Clone, Copy)]
    pub enum AfterServicing {
        /// On towards the desired state, or to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Failed`: Somebody has to look.
        Failed,
        /// Go to `Running`: Clients may connect.
        Running,
        /// Go to `End`: The server is gone; its volume is kept.
        End,
    }
    /// How the work of `Stopping` ends; it leads to `End`.
    #[derive(Clone, Copy)]
    pub enum AfterStopping {
        /// On towards the desired state, or to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `End`: The server is gone; its volume is kept.
        End,
    }
    /// The types of the conditions that the states declare.
    pub mod conditions {
        /// The condition `Available`.
        pub const AVAILABLE: &str = "Available";
    }
}
/// Does the work of each state of [`DatabaseState`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `DatabaseState`",
    label = "`DatabaseStateHandler` is not implemented for `{Self}`",
    note = "implement `DatabaseStateHandler`: one `async fn` per state that is not idle (`start`, `running`, `servicing`, `stopping`)"
)]
pub trait DatabaseStateHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The work of [`Start`](DatabaseState::Start): The data directory is being made.
    ///
    /// Answers `Next`, `Wait`, `Failed` or `Running`.
    fn start(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<database_state::AfterStart, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Running`](DatabaseState::Running): Clients may connect.
    ///
    /// Answers `Stay`, `Next`, `Wait`, `Failed`, `Servicing` or `Stopping`.
    fn running(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<database_state::AfterRunning, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Servicing`](DatabaseState::Servicing): A backup is under way.
    ///
    /// Answers `Next`, `Wait`, `Failed`, `Running` or `End`.
    fn servicing(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<database_state::AfterServicing, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Stopping`](DatabaseState::Stopping): Clients are being asked to leave.
    ///
    /// Answers `Next`, `Wait` or `End`.
    fn stopping(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<database_state::AfterStopping, Self::Error>,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "DatabaseState",
        doc: "The life of a database server.",
        kind: __okt::Kind::Lifecycle,
        states: &[
            __okt::State {
                name: "Start",
                variant: "Start",
                doc: "The data directory is being made.",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::OnError {
                            attempts: 5,
                        },
                    },
                ],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Running",
                variant: "Running",
                doc: "Clients may connect.",
                was: &[],
                marks: __okt::Marks(2),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::OnError {
                            attempts: 3,
                        },
                    },
                ],
                children: &[__okt::StateId(2), __okt::StateId(3)],
                conditions: &[
                    __okt::Declared {
                        name: "Available",
                        status: __okt::ConditionStatus::True,
                        reason: "AcceptingConnections",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "Servicing",
                variant: "Servicing",
                doc: "A backup is under way.",
                was: &[],
                marks: __okt::Marks(32),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::After(::core::time::Duration::new(1800, 0)),
                    },
                ],
                children: &[__okt::StateId(1), __okt::StateId(5)],
                conditions: &[
                    __okt::Declared {
                        name: "Available",
                        status: __okt::ConditionStatus::True,
                        reason: "AcceptingConnections",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "Stopping",
                variant: "Stopping",
                doc: "Clients are being asked to leave.",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[],
                children: &[__okt::StateId(5)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Failed",
                variant: "Failed",
                doc: "Somebody has to look.",
                was: &[],
                marks: __okt::Marks(14),
                triggers: &[],
                children: &[__okt::StateId(1), __okt::StateId(2), __okt::StateId(3)],
                conditions: &[
                    __okt::Declared {
                        name: "Available",
                        status: __okt::ConditionStatus::False,
                        reason: "Broken",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "End",
                variant: "End",
                doc: "The server is gone; its volume is kept.",
                was: &[],
                marks: __okt::Marks(24),
                triggers: &[],
                children: &[],
                conditions: &[],
                no_routes: &[],
            },
        ],
        routes: __okt::Routes {
            rows: __okt::Table(b"\xFF\xFF\0\0\x01\0\xFF\xFF\xFF\xFF\x02\0"),
            hops: __okt::Table(
                b"\x01\0\xFF\xFF\x01\0\xFF\xFF\x01\0\xFF\xFF\x01\0\x02\0\xFF\xFF\xFF\xFF\x02\0\xFF\xFF\x01\0\x03\0\x05\0\x05\0\x03\0\xFF\xFF",
            ),
            out: __okt::Table(b"\x01\0\x03\0\x05\0\x05\0\x03\0\xFF\xFF"),
            home: __okt::StateId(1),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for DatabaseState {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            match self {
                Self::Start => __okt::StateId(0),
                Self::Running => __okt::StateId(1),
                Self::Servicing => __okt::StateId(2),
                Self::Stopping => __okt::StateId(3),
                Self::Failed => __okt::StateId(4),
                Self::End => __okt::StateId(5),
            }
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Start,
                Self::Running,
                Self::Servicing,
                Self::Stopping,
                Self::Failed,
                Self::End,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for database_state::AfterStart {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Failed => __okt::Answer::To(__okt::StateId(4)),
                Self::Running => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for database_state::AfterStart {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for database_state::AfterStart {}
    #[automatically_derived]
    impl ::core::fmt::Debug for database_state::AfterStart {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for database_state::AfterRunning {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Failed => __okt::Answer::To(__okt::StateId(4)),
                Self::Servicing => __okt::Answer::To(__okt::StateId(2)),
                Self::Stopping => __okt::Answer::To(__okt::StateId(3)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for database_state::AfterRunning {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for database_state::AfterRunning {}
    #[automatically_derived]
    impl ::core::fmt::Debug for database_state::AfterRunning {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for database_state::AfterServicing {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Failed => __okt::Answer::To(__okt::StateId(4)),
                Self::Running => __okt::Answer::To(__okt::StateId(1)),
                Self::End => __okt::Answer::To(__okt::StateId(5)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for database_state::AfterServicing {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for database_state::AfterServicing {}
    #[automatically_derived]
    impl ::core::fmt::Debug for database_state::AfterServicing {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for database_state::AfterStopping {
        #[inline]
        fn answer(self) -> __okt::Answer {
            match self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::End => __okt::Answer::To(__okt::StateId(5)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::cmp::PartialEq for database_state::AfterStopping {
        #[inline]
        fn eq(&self, other: &Self) -> bool {
            __okt::Successor::answer(*self) == __okt::Successor::answer(*other)
        }
    }
    #[automatically_derived]
    impl ::core::cmp::Eq for database_state::AfterStopping {}
    #[automatically_derived]
    impl ::core::fmt::Debug for database_state::AfterStopping {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(__okt::Successor::answer(*self), __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<__H: DatabaseStateHandler> __okt::Dispatch<__H> for DatabaseState {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &Self::Context,
        ) -> ::core::result::Result<__okt::Answer, Self::Error> {
            match self {
                Self::Start => {
                    <__H as DatabaseStateHandler>::start(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Running => {
                    <__H as DatabaseStateHandler>::running(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Servicing => {
                    <__H as DatabaseStateHandler>::servicing(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Stopping => {
                    <__H as DatabaseStateHandler>::stopping(handler, cx)
                        .await
                        .map(__okt::Successor::answer)
                }
                Self::Failed | Self::End => {
                    ::core::result::Result::Ok(__okt::Answer::Stay)
                }
            }
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<DatabaseState>> __okt::Dispatch<__okt::Delegated<__D>>
    for DatabaseState {
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
