// What the macros write; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &Cache) {
        match state {
            Cache::Broken { .. } => {}
            Cache::Serving { .. } => {}
            Cache::Restoring { .. } => {}
            Cache::Flushing { .. } => {}
            Cache::Broken { .. } => {}
            Cache::Gone { .. } => {}
            Cache::Serving { .. } => {}
            Cache::Filling { .. } => {}
            Cache::Gone { .. } => {}
            Cache::Restoring { .. } => {}
            Cache::Flushing { .. } => {}
            Cache::Draining { .. } => {}
            Cache::Broken { .. } => {}
            Cache::Serving { .. } => {}
            Cache::Serving { .. } => {}
            Cache::Gone { .. } => {}
            Cache::Serving { .. } => {}
            Cache::Restoring { .. } => {}
            Cache::Flushing { .. } => {}
            Cache::Gone { .. } => {}
            Cache::Draining { .. } => {}
            Cache::Filling { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`Cache`](super::Cache) answer: for each state that has one, where it leads.
pub mod cache {
    /// How the work of `Filling` ends; it leads to `Broken`, `Gone` or `Serving`.
    pub enum AfterFilling {
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Serving`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Broken`
        Broken,
        /// Go to `Gone`
        Gone,
        /// Go to `Serving`
        Serving,
    }
    /// How the work of `Serving` ends; it leads to `Filling`, `Broken` or `Draining`.
    pub enum AfterServing {
        /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
        Stay,
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Draining`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Filling`: Entries are read from disk; see \[`Cache::Serving`\].
        Filling,
        /// Go to `Broken`
        Broken,
        /// Go to `Draining`
        Draining,
    }
    /// How the work of `Restoring` ends; it leads to `Broken` or `Serving`. `R` is the result of the visit, which goes with `Next` and with each child.
    pub enum AfterRestoring<R> {
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Serving`.
        Next(R),
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Broken`
        Broken,
        /// Go to `Serving`
        Serving(R),
    }
    /// How the work of `Flushing` ends; it leads to `Serving`.
    pub enum AfterFlushing {
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Serving`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Serving`
        Serving,
    }
    /// How the work of `Draining` ends; it leads to `Gone`.
    pub enum AfterDraining {
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Gone`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Gone`
        Gone,
    }
    /// The gates.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Gate {
        /// The window before `Restoring` or `Flushing`.
        LowTide,
    }
    /// The types of the conditions that the states declare.
    pub mod conditions {
        /// The condition `cache.okt.dev/Filled`.
        pub const CACHE_OKT_DEV_FILLED: &str = "cache.okt.dev/Filled";
        /// The condition `Serving`.
        pub const SERVING: &str = "Serving";
    }
}
/// Does the work of each state of [`Cache`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `Cache`",
    label = "`CacheHandler` is not implemented for `{Self}`",
    note = "implement `CacheHandler`: one `async fn` per state that is not idle (`filling`, `serving`, `restoring`, `flushing`, `draining`, `gone`)"
)]
pub trait CacheHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync
        + okt_core::__private::Visited<Restore, Vec<Restored>>
        + okt_core::__private::Visited<super::Flush, ()>;
    /// What a method fails with.
    type Error;
    /// The work of [`Filling`](Cache::Filling): Entries are read from disk; see \[`Cache::Serving`\].
    ///
    /// Answers `Next`, `Wait`, `Broken`, `Gone` or `Serving`.
    fn filling(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<cache::AfterFilling, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Serving`](Cache::Serving)
    ///
    /// Answers `Stay`, `Next`, `Wait`, `Filling`, `Broken` or `Draining`.
    fn serving(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<cache::AfterServing, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Restoring`](Cache::Restoring)
    ///
    /// Answers `Next`, `Wait`, `Broken` or `Serving`.
    ///
    /// `args` are the arguments of the request that the visit serves.
    fn restoring(
        &self,
        cx: &Self::Context,
        args: &Restore,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<
            cache::AfterRestoring<Vec<Restored>>,
            Self::Error,
        >,
    > + ::core::marker::Send;
    /// The work of [`Flushing`](Cache::Flushing)
    ///
    /// Answers `Next`, `Wait` or `Serving`.
    ///
    /// `args` are the arguments of the request that the visit serves.
    fn flushing(
        &self,
        cx: &Self::Context,
        args: &super::Flush,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<cache::AfterFlushing, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Draining`](Cache::Draining)
    ///
    /// Answers `Next`, `Wait` or `Gone`.
    fn draining(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<cache::AfterDraining, Self::Error>,
    > + ::core::marker::Send;
    /// The work of [`Gone`](Cache::Gone)
    ///
    /// The last work of a lifecycle: deletes what is left.
    fn gone(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), Self::Error>,
    > + ::core::marker::Send;
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "Cache",
        doc: "The life of a cache.",
        kind: __okt::Kind::Lifecycle,
        parts: &[],
        gates: &[
            __okt::Gate {
                name: "low_tide",
                kind: __okt::GateKind::Window {
                    needs: ::core::time::Duration::new(1800, 0),
                },
                states: &[__okt::StateId(2), __okt::StateId(3)],
                passes: __okt::Passes {
                    triggers: false,
                    deletion: false,
                },
            },
        ],
        states: &[
            __okt::State {
                name: "Filling",
                variant: "Filling",
                doc: "Entries are read from disk; see [`Cache::Serving`].\n\nThis can take an hour.",
                was: &[],
                marks: __okt::Marks(1),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(5),
                        cause: __okt::Cause::After(::core::time::Duration::new(5400, 0)),
                    },
                    __okt::Trigger {
                        to: __okt::StateId(5),
                        cause: __okt::Cause::OnError {
                            attempts: 5,
                        },
                    },
                    __okt::Trigger {
                        to: __okt::StateId(6),
                        cause: __okt::Cause::OnDelete,
                    },
                ],
                children: &[__okt::StateId(1)],
                conditions: &[
                    __okt::Declared {
                        name: "cache.okt.dev/Filled",
                        status: __okt::ConditionStatus::Unknown,
                        reason: "",
                        message: "still reading",
                    },
                ],
                no_routes: &[],
            },
            __okt::State {
                name: "Serving",
                variant: "Serving",
                doc: "",
                was: &["Ready"],
                marks: __okt::Marks(2),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(0),
                        cause: __okt::Cause::OnChange,
                    },
                    __okt::Trigger {
                        to: __okt::StateId(5),
                        cause: __okt::Cause::Deadline(
                            ::core::time::Duration::new(14400, 0),
                        ),
                    },
                ],
                children: &[__okt::StateId(2), __okt::StateId(3), __okt::StateId(4)],
                conditions: &[
                    __okt::Declared {
                        name: "Serving",
                        status: __okt::ConditionStatus::True,
                        reason: "Warm",
                        message: "",
                    },
                ],
                no_routes: &[
                    __okt::NoRoute {
                        to: __okt::StateId(6),
                        reason: "only deletion drains",
                    },
                ],
            },
            __okt::State {
                name: "Restoring",
                variant: "Restoring",
                doc: "",
                was: &[],
                marks: __okt::Marks(160),
                triggers: &[
                    __okt::Trigger {
                        to: __okt::StateId(5),
                        cause: __okt::Cause::OnAbort,
                    },
                ],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Flushing",
                variant: "Flushing",
                doc: "",
                was: &[],
                marks: __okt::Marks(160),
                triggers: &[],
                children: &[__okt::StateId(1)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Draining",
                variant: "Draining",
                doc: "",
                was: &[],
                marks: __okt::Marks(64),
                triggers: &[],
                children: &[__okt::StateId(6)],
                conditions: &[],
                no_routes: &[],
            },
            __okt::State {
                name: "Failed",
                variant: "Broken",
                doc: "",
                was: &[],
                marks: __okt::Marks(14),
                triggers: &[],
                children: &[__okt::StateId(4)],
                conditions: &[],
                no_routes: &[
                    __okt::NoRoute {
                        to: __okt::StateId(1),
                        reason: "it is broken",
                    },
                    __okt::NoRoute {
                        to: __okt::StateId(2),
                        reason: "it is broken",
                    },
                    __okt::NoRoute {
                        to: __okt::StateId(3),
                        reason: "it is broken",
                    },
                    __okt::NoRoute {
                        to: __okt::StateId(6),
                        reason: "it is broken",
                    },
                ],
            },
            __okt::State {
                name: "Gone",
                variant: "Gone",
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
            rows: __okt::Table(b"\xFF\xFF\0\0\x01\0\x02\0\xFF\xFF\xFF\xFF\x03\0"),
            hops: __okt::Table(
                b"\x01\0\xFF\xFF\x01\0\x01\0\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\x02\0\xFF\xFF\x01\0\xFF\xFF\xFF\xFF\xFF\xFF\x01\0\x03\0\x01\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x06\0\xFF\xFF\xFF\xFF",
            ),
            out: __okt::Table(b"\x06\0\x04\0\x01\0\x01\0\x06\0\x04\0\xFF\xFF"),
            home: __okt::StateId(1),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for Cache {
        type Gate = cache::Gate;
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            __okt::StateId(self as u16)
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Filling,
                Self::Serving,
                Self::Restoring,
                Self::Flushing,
                Self::Draining,
                Self::Broken,
                Self::Gone,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl<__Spec: ?::core::marker::Sized> __okt::SpecParts<__Spec> for Cache {}
    #[automatically_derived]
    impl __okt::LifecycleGate for cache::Gate {
        fn from_id(id: __okt::GateId) -> ::core::option::Option<Self> {
            let gates: &'static [Self] = &[Self::LowTide];
            gates.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for cache::AfterFilling {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Broken => __okt::Answer::To(__okt::StateId(5)),
                Self::Gone => __okt::Answer::To(__okt::StateId(6)),
                Self::Serving => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for cache::AfterFilling {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for cache::AfterServing {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Filling => __okt::Answer::To(__okt::StateId(0)),
                Self::Broken => __okt::Answer::To(__okt::StateId(5)),
                Self::Draining => __okt::Answer::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for cache::AfterServing {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<R> __okt::Successor for cache::AfterRestoring<R> {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next { .. } => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Broken => __okt::Answer::To(__okt::StateId(5)),
                Self::Serving { .. } => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl<R> ::core::fmt::Debug for cache::AfterRestoring<R> {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<R> __okt::VisitSuccessor for cache::AfterRestoring<R> {
        type Result = R;
        fn result(&self) -> ::core::option::Option<&R> {
            match self {
                Self::Next(result) | Self::Serving(result) => {
                    ::core::option::Option::Some(result)
                }
                _ => ::core::option::Option::None,
            }
        }
    }
    #[automatically_derived]
    impl __okt::Successor for cache::AfterFlushing {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Serving => __okt::Answer::To(__okt::StateId(1)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for cache::AfterFlushing {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for cache::AfterDraining {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Gone => __okt::Answer::To(__okt::StateId(6)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for cache::AfterDraining {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Serves<Restore> for Cache {
        const STATE: __okt::StateId = __okt::StateId(2);
        type Result = Vec<Restored>;
    }
    #[automatically_derived]
    impl __okt::Serves<super::Flush> for Cache {
        const STATE: __okt::StateId = __okt::StateId(3);
        type Result = ();
    }
    #[automatically_derived]
    impl<__H: CacheHandler> __okt::Dispatch<__H> for Cache {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &__H::Context,
        ) -> ::core::result::Result<__okt::Answer, __H::Error> {
            let work: __okt::Work<'_, _, __H::Error> = match self {
                Self::Filling => __okt::work(<__H as CacheHandler>::filling(handler, cx)),
                Self::Serving => __okt::work(<__H as CacheHandler>::serving(handler, cx)),
                Self::Restoring => {
                    __okt::visited::<
                        Restore,
                        _,
                        _,
                        _,
                    >(
                        cx,
                        <__H as CacheHandler>::restoring(
                            handler,
                            cx,
                            <__H::Context as __okt::Visited<
                                Restore,
                                Vec<Restored>,
                            >>::args(cx),
                        ),
                    )
                }
                Self::Flushing => {
                    __okt::work(
                        <__H as CacheHandler>::flushing(
                            handler,
                            cx,
                            <__H::Context as __okt::Visited<super::Flush, ()>>::args(cx),
                        ),
                    )
                }
                Self::Draining => {
                    __okt::work(<__H as CacheHandler>::draining(handler, cx))
                }
                Self::Gone => __okt::work(<__H as CacheHandler>::gone(handler, cx)),
                Self::Broken => return ::core::result::Result::Ok(__okt::Answer::Stay),
            };
            work.await
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<Cache>> __okt::Dispatch<__okt::Delegated<__D>> for Cache {
        type Context = __D::Context;
        type Error = __D::Error;
        fn dispatch(
            self,
            delegated: &__okt::Delegated<__D>,
            cx: &__D::Context,
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<__okt::Answer, __D::Error>,
        > + ::core::marker::Send {
            __okt::hand_on(self, delegated, cx)
        }
    }
};
