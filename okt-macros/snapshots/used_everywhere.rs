// What the macros write for ui-tests/cases/fail/together/used_everywhere.rs; renewed by `UPDATE_EXPECT=1 cargo test -p okt-macros`.

const _: () = {
    #[allow(unreachable_patterns)]
    fn _states(state: &Life) {
        match state {
            Life::Failed { .. } => {}
            Life::Runing { .. } => {}
            Life::Stopping { .. } => {}
            Life::End { .. } => {}
            Life::Stopping { .. } => {}
            _ => {}
        }
    }
};
/// What the handlers of [`Life`](super::Life) answer: for each state that has one, where it leads.
pub mod life {
    /// How the work of `Start` ends; it leads to `Failed`, `Start`, `Running`, `Stopping` or `End`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AfterStart {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards what is wished, or to the last child, ``.
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
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AfterRunning {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards what is wished, or to the last child, `Stopping`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `Stopping`
        Stopping,
    }
    /// How the work of `Stopping` ends; it leads to `End`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AfterStopping {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards what is wished, or to the last child, `End`.
        Next,
        /// Not done: call again after this time, or when something it depends on changes.
        Wait(::core::time::Duration),
        /// Go to `End`
        End,
    }
    /// How the work of `Failed` ends; it leads to `Stopping`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AfterFailed {
        /// The work is done and names no state: the object stays, unless something is wished or happens.
        Stay,
        /// On towards what is wished, or to the last child, `Stopping`.
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
    /// The last work in a life: what is left to be cleared away.
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
    #[automatically_derived]
    impl __okt::Lifecycle for Life {
        const GRAPH: &'static __okt::Graph<'static> = &__okt::Graph {
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
        fn id(self) -> __okt::StateId {
            match self {
                Self::Start => __okt::StateId(0),
                Self::Running => __okt::StateId(1),
                Self::Stopping => __okt::StateId(2),
                Self::Failed => __okt::StateId(3),
                Self::End => __okt::StateId(4),
            }
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
    impl ::core::convert::From<life::AfterStart> for __okt::Answer {
        fn from(after: life::AfterStart) -> Self {
            use life::AfterStart as After;
            match after {
                After::Stay => Self::Stay,
                After::Next => Self::Next,
                After::Wait(time) => Self::Wait(time),
                After::Failed => Self::To(__okt::StateId(3)),
                After::Start => Self::To(__okt::StateId(0)),
                After::Running => Self::To(__okt::StateId(1)),
                After::Stopping => Self::To(__okt::StateId(2)),
                After::End => Self::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::convert::From<life::AfterRunning> for __okt::Answer {
        fn from(after: life::AfterRunning) -> Self {
            use life::AfterRunning as After;
            match after {
                After::Stay => Self::Stay,
                After::Next => Self::Next,
                After::Wait(time) => Self::Wait(time),
                After::Stopping => Self::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::convert::From<life::AfterStopping> for __okt::Answer {
        fn from(after: life::AfterStopping) -> Self {
            use life::AfterStopping as After;
            match after {
                After::Stay => Self::Stay,
                After::Next => Self::Next,
                After::Wait(time) => Self::Wait(time),
                After::End => Self::To(__okt::StateId(4)),
            }
        }
    }
    #[automatically_derived]
    impl ::core::convert::From<life::AfterFailed> for __okt::Answer {
        fn from(after: life::AfterFailed) -> Self {
            use life::AfterFailed as After;
            match after {
                After::Stay => Self::Stay,
                After::Next => Self::Next,
                After::Wait(time) => Self::Wait(time),
                After::Stopping => Self::To(__okt::StateId(2)),
            }
        }
    }
    #[automatically_derived]
    impl<__H: LifeHandler> __okt::Dispatch<__H> for Life {
        type Context = __H::Context;
        type Error = __H::Error;
        async fn dispatch(
            self,
            handler: &__H,
            cx: &Self::Context,
        ) -> ::core::result::Result<__okt::Answer, Self::Error> {
            match self {
                Self::Start => handler.start(cx).await.map(__okt::Answer::from),
                Self::Running => handler.running(cx).await.map(__okt::Answer::from),
                Self::Stopping => handler.stopping(cx).await.map(__okt::Answer::from),
                Self::Failed => handler.failed(cx).await.map(__okt::Answer::from),
                Self::End => handler.end(cx).await.map(|()| __okt::Answer::Stay),
            }
        }
    }
};
::core::compile_error! {
    "OKT017: `soon` is no time: expected number at 0; write e.g. `after = \"30m\"`, `\"1h30m\"` or `\"500ms\"`"
}
::core::compile_error! {
    "OKT017: unknown option `idel`; did you mean `idle`?"
}
::core::compile_error! {
    "OKT018: `#[leaf]` stands twice on one state; keep one"
}
