// What the macros write for ui-tests/cases/pass/pass_graph.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &BrokerPass) {
        match state {
            BrokerPass::Report { .. } => {}
            BrokerPass::Finalize { .. } => {}
            BrokerPass::Gather { .. } => {}
            BrokerPass::Report { .. } => {}
            BrokerPass::Apply { .. } => {}
            BrokerPass::Report { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::End { .. } => {}
            BrokerPass::Check { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`BrokerPass`](super::BrokerPass) answer: for each state that has one, where it leads.
pub mod broker_pass {
    /// How the work of `Check` ends; it leads to `Report`, `Finalize` or `Gather`.
    pub enum AfterCheck {
        /// The step is done; on to the last child, `Gather`.
        Next,
        /// Go to `Report`: What went wrong.
        Report,
        /// Go to `Finalize`: Everything goes.
        Finalize,
        /// Go to `Gather`: What there is.
        Gather,
    }
    /// How the work of `Gather` ends; it leads to `Report` or `Apply`.
    pub enum AfterGather {
        /// The step is done; on to the last child, `Apply`.
        Next,
        /// Go to `Report`: What went wrong.
        Report,
        /// Go to `Apply`: What there should be.
        Apply,
    }
    /// How the work of `Apply` ends; it leads to `Report` or `End`.
    pub enum AfterApply {
        /// The step is done; on to the last child, `End`.
        Next,
        /// Go to `Report`: What went wrong.
        Report,
        /// Go to `End`: Done.
        End,
    }
    /// How the work of `Finalize` ends; it leads to `End`.
    pub enum AfterFinalize {
        /// The step is done; on to the last child, `End`.
        Next,
        /// Go to `End`: Done.
        End,
    }
    /// How the work of `Report` ends; it leads to `End`.
    pub enum AfterReport {
        /// The step is done; on to the last child, `End`.
        Next,
        /// Go to `End`: Done.
        End,
    }
    /// The types of the conditions that the states declare.
    pub mod conditions {
        /// The condition `ConfigReady`.
        pub const CONFIG_READY: &str = "ConfigReady";
        /// The condition `WorkloadReady`.
        pub const WORKLOAD_READY: &str = "WorkloadReady";
    }
}
/// Takes the step of each state of [`BrokerPass`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not take the steps of `BrokerPass`",
    label = "`BrokerPassHandler` is not implemented for `{Self}`",
    note = "implement `BrokerPassHandler`: one `async fn` per state that is not idle (`check`, `gather`, `apply`, `finalize`, `report`)"
)]
pub trait BrokerPassHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The step of [`Check`](BrokerPass::Check): Is the spec sound?
    ///
    /// Answers `Next`, `Report`, `Finalize` or `Gather`.
    fn check(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterCheck>,
            Self::Error,
        >,
    > + ::core::marker::Send;
    /// The step of [`Gather`](BrokerPass::Gather): What there is.
    ///
    /// Answers `Next`, `Report` or `Apply`.
    fn gather(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterGather>,
            Self::Error,
        >,
    > + ::core::marker::Send;
    /// The step of [`Apply`](BrokerPass::Apply): What there should be.
    ///
    /// Answers `Next`, `Report` or `End`.
    fn apply(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterApply>,
            Self::Error,
        >,
    > + ::core::marker::Send;
    /// The step of [`Finalize`](BrokerPass::Finalize): Everything goes.
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
    /// The step of [`Report`](BrokerPass::Report): What went wrong.
    ///
    /// Answers `Next` or `End`.
    fn report(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            okt_core::__private::Step<broker_pass::AfterReport>,
            Self::Error,
        >,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "BrokerPass",
        doc: "What is done for a broker in each reconciliation.",
        kind: __okt::Kind::Pass,
        states: &[
            __okt::State {
                name: "Check",
                variant: "Check",
                doc: "Is the spec sound?",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::Named,
                    },
                    __okt::Trigger {
                        to: __okt::StateId(3),
                        cause: __okt::Cause::OnDelete,
                    },
                ],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Gather",
                variant: "Gather",
                doc: "What there is.",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::OnError {
                            attempts: 1,
                        },
                    },
                ],
                children: &[__okt::StateId(2)],
                conditions: &[
                    __okt::Declared {
                        name: "ConfigReady",
                        status: __okt::ConditionStatus::True,
                        reason: "",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "Apply",
                variant: "Apply",
                doc: "What there should be.",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(4),
                        cause: __okt::Cause::Named,
                    },
                ],
                children: &[__okt::StateId(5)],
                conditions: &[
                    __okt::Declared {
                        name: "WorkloadReady",
                        status: __okt::ConditionStatus::True,
                        reason: "",
                        message: "",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "Finalize",
                variant: "Finalize",
                doc: "Everything goes.",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[],
                children: &[__okt::StateId(5)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Report",
                variant: "Report",
                doc: "What went wrong.",
                was: &[],
                marks: __okt::Marks(0),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(5),
                        cause: __okt::Cause::OnGiveUp,
                    },
                ],
                children: &[__okt::StateId(5)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "End",
                variant: "End",
                doc: "Done.",
                was: &[],
                marks: __okt::Marks(24),
                triggers: &[],
                children: &[],
                conditions: &[],
                no_routes: &[],
            },
        ],
        routes: __okt::Routes {
            rows: __okt::Table(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\0\0"),
            hops: __okt::Table(b"\x01\0\x02\0\x05\0\x05\0\x05\0\xFF\xFF"),
            out: __okt::Table(b"\x03\0\x02\0\x05\0\x05\0\x05\0\xFF\xFF"),
            home: __okt::StateId(5),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for BrokerPass {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            __okt::StateId(self as u16)
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Check,
                Self::Gather,
                Self::Apply,
                Self::Finalize,
                Self::Report,
                Self::End,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for broker_pass::AfterCheck {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Report => __okt::Answer::To(__okt::StateId(4)),
                Self::Finalize => __okt::Answer::To(__okt::StateId(3)),
                Self::Gather => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for broker_pass::AfterCheck {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for broker_pass::AfterGather {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Report => __okt::Answer::To(__okt::StateId(4)),
                Self::Apply => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for broker_pass::AfterGather {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for broker_pass::AfterApply {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Report => __okt::Answer::To(__okt::StateId(4)),
                Self::End => __okt::Answer::To(__okt::StateId(5)),
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
                Self::End => __okt::Answer::To(__okt::StateId(5)),
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
    impl __okt::Successor for broker_pass::AfterReport {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::End => __okt::Answer::To(__okt::StateId(5)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for broker_pass::AfterReport {
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
                Self::Check => {
                    __okt::step(<__H as BrokerPassHandler>::check(handler, cx))
                }
                Self::Gather => {
                    __okt::step(<__H as BrokerPassHandler>::gather(handler, cx))
                }
                Self::Apply => {
                    __okt::step(<__H as BrokerPassHandler>::apply(handler, cx))
                }
                Self::Finalize => {
                    __okt::step(<__H as BrokerPassHandler>::finalize(handler, cx))
                }
                Self::Report => {
                    __okt::step(<__H as BrokerPassHandler>::report(handler, cx))
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
