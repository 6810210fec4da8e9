// What the macros write for ui-tests/cases/fail/together/used_everywhere.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &Life) {
        match state {
            Life::Failed { .. } => {}
            Life::Runing { .. } => {}
            Life::Stopping { .. } => {}
            Life::End { .. } => {}
            Life::Stopping { .. } => {}
            Life::Start { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`Life`](super::Life) answer: for each state that has one, where it leads.
pub mod life {
    /// How the work of `Start` ends; it leads to `Failed`, `Start`, `Running`, `Stopping` or `End`.
    pub enum AfterStart {
        /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
        Stay,
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, ``.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Failed`
        Failed,
        /// Go to `Start`
        Start,
        /// Go to `Running`
        Running,
        /// Go to `Stopping`
        Stopping,
        /// Go to `End`
        End,
    }
    /// How the work of `Running` ends; it leads to `Stopping`.
    pub enum AfterRunning {
        /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
        Stay,
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Stopping`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Stopping`
        Stopping,
    }
    /// How the work of `Stopping` ends; it leads to `End`.
    pub enum AfterStopping {
        /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
        Stay,
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `End`
        End,
    }
    /// How the work of `Failed` ends; it leads to `Stopping`.
    pub enum AfterFailed {
        /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
        Stay,
        /// The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `Stopping`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Stopping`
        Stopping,
    }
    /// The types of the conditions that the states declare.
    pub mod conditions {
        /// The condition `Available`.
        pub const AVAILABLE: &str = "Available";
    }
}
/// Does the work of each state of [`Life`]: one method per state that is not idle, written as an `async fn`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not do the work of the states of `Life`",
    label = "`LifeHandler` is not implemented for `{Self}`",
    note = "implement `LifeHandler`: one `async fn` per state that is not idle (`start`, `running`, `stopping`, `failed`, `end`)"
)]
pub trait LifeHandler: ::core::marker::Sync {
    /// What each method is given (e.g. the object, and the id of the action).
    type Context: ::core::marker::Sync;
    /// What a method fails with.
    type Error;
    /// The work of [`Start`](Life::Start)
    ///
    /// Answers `Stay`, `Next`, `Wait`, `Failed`, `Start`, `Running`, `Stopping` or `End`.
    fn start(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<life::AfterStart, Self::Error>,
    > + ::core::marker::Send {
        ::core::future::pending()
    }
    /// The work of [`Running`](Life::Running)
    ///
    /// Answers `Stay`, `Next`, `Wait` or `Stopping`.
    fn running(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<life::AfterRunning, Self::Error>,
    > + ::core::marker::Send {
        ::core::future::pending()
    }
    /// The work of [`Stopping`](Life::Stopping)
    ///
    /// Answers `Stay`, `Next`, `Wait` or `End`.
    fn stopping(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<life::AfterStopping, Self::Error>,
    > + ::core::marker::Send {
        ::core::future::pending()
    }
    /// The work of [`Failed`](Life::Failed)
    ///
    /// Answers `Stay`, `Next`, `Wait` or `Stopping`.
    fn failed(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<life::AfterFailed, Self::Error>,
    > + ::core::marker::Send {
        ::core::future::pending()
    }
    /// The work of [`End`](Life::End)
    ///
    /// The last work of a lifecycle: deletes what is left.
    fn end(
        &self,
        cx: &Self::Context,
    ) -> impl ::core::future::Future<
        Output = ::core::result::Result<(), Self::Error>,
    > + ::core::marker::Send {
        ::core::future::pending()
    }
}
const _: () = {
    use okt_core::__private as __okt;
    const __GRAPH: &__okt::Graph<'static> = &__okt::Graph {
        name: "Life",
        doc: "",
        kind: __okt::Kind::Lifecycle,
        states: &[],
        routes: __okt::Routes {
            rows: __okt::Table(b""),
            hops: __okt::Table(b""),
            out: __okt::Table(b""),
            home: __okt::StateId(65535),
        },
    };
    #[automatically_derived]
    impl __okt::Lifecycle for Life {
        const GRAPH: &'static __okt::Graph<'static> = __GRAPH;
        fn id(self) -> __okt::StateId {
            __okt::StateId(self as u16)
        }
        fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
            let states: &'static [Self] = &[
                Self::Start,
                Self::Running,
                Self::Stopping,
                Self::Failed,
                Self::End,
            ];
            states.get(id.index()).copied()
        }
    }
    #[automatically_derived]
    impl __okt::Successor for life::AfterStart {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Failed => __okt::Answer::To(__okt::StateId(3)),
                Self::Start => __okt::Answer::To(__okt::StateId(0)),
                Self::Running => __okt::Answer::To(__okt::StateId(1)),
                Self::Stopping => __okt::Answer::To(__okt::StateId(2)),
                Self::End => __okt::Answer::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for life::AfterStart {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for life::AfterRunning {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Stopping => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for life::AfterRunning {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for life::AfterStopping {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::End => __okt::Answer::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for life::AfterStopping {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl __okt::Successor for life::AfterFailed {
        #[inline]
        fn answer(&self) -> __okt::Answer {
            match *self {
                Self::Stay => __okt::Answer::Stay,
                Self::Next => __okt::Answer::Next,
                Self::Wait(time) => __okt::Answer::Wait(time),
                Self::Stopping => __okt::Answer::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::fmt::Debug for life::AfterFailed {
        #[inline]
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            __okt::debug(self, __GRAPH, f)
        }
    }
    #[automatically_derived]
    impl<__H: LifeHandler> __okt::Dispatch<__H> for Life {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &__H::Context,
        ) -> ::core::result::Result<__okt::Answer, __H::Error> {
            let work: __okt::Work<'_, _, __H::Error> = match self {
                Self::Start => __okt::work(<__H as LifeHandler>::start(handler, cx)),
                Self::Running => __okt::work(<__H as LifeHandler>::running(handler, cx)),
                Self::Stopping => {
                    __okt::work(<__H as LifeHandler>::stopping(handler, cx))
                }
                Self::Failed => __okt::work(<__H as LifeHandler>::failed(handler, cx)),
                Self::End => __okt::work(<__H as LifeHandler>::end(handler, cx)),
            };
            work.await
        }
    }
    #[automatically_derived]
    impl<__D: __okt::Delegate<Life>> __okt::Dispatch<__okt::Delegated<__D>> for Life {
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
::core::compile_error! {
    "OKT017: `soon` is no time\nhelp: write e.g. `after = \"30m\"`, `\"1h30m\"` or `\"500ms\"`\nmore: `cargo okt explain OKT017`"
}
::core::compile_error! {
    "OKT017: unknown option `idel`\nhelp: did you mean `idle`?\nmore: `cargo okt explain OKT017`"
}
::core::compile_error! {
    "OKT018: `#[leaf]` stands twice on one state\nhelp: keep one\nmore: `cargo okt explain OKT018`"
}
