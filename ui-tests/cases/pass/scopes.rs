//! Graphs that are private, in modules, in functions, written by `macro_rules!`, and where everything is shadowed.
#![deny(warnings)]
#![expect(dead_code, reason = "private items of which only some are used")]

use okt_core::Lifecycle;

mod outer {
    pub mod inner {
        use okt_macros::lifecycle_graph;

        /// Seen in `outer`.
        #[lifecycle_graph(crate(::okt_core), module = "steps", handler = "Steps")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Life {
            #[entry]
            #[child(End)]
            Start,

            #[leaf(idle)]
            End,
        }

        pub struct App;

        impl Steps for App {
            type Context = ();
            type Error = ();

            async fn start(&self, (): &()) -> Result<steps::AfterStart, ()> {
                Ok(steps::AfterStart::End)
            }
        }
    }

    pub fn first() -> okt_core::Answer {
        inner::steps::AfterStart::End.into()
    }
}

macro_rules! life {
    ($name:ident: $entry:ident -> $leaf:ident) => {
        #[okt_macros::lifecycle_graph(crate(okt_core))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum $name {
            #[entry]
            #[child($leaf)]
            $entry,

            #[leaf(idle)]
            $leaf,
        }
    };
}
life!(Made: Begin -> Done);

mod shadowed {
    mod core {}
    mod std {}
    struct Option;
    struct Result;
    struct Send;
    struct From;
    struct Answer;
    struct Future;
    struct Debug;
    trait Lifecycle {}
    trait Dispatch {}

    #[okt_macros::lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum State {
        #[entry]
        #[child(Some)]
        #[child(Err)]
        Ok,

        #[rest]
        #[child(Err)]
        Some,

        #[leaf]
        Err,
    }
}

fn main() {
    use okt_macros::lifecycle_graph;

    /// Lives in a function.
    #[lifecycle_graph(crate(okt_core))]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Local {
        #[entry]
        #[child(End)]
        Start,

        #[leaf(idle)]
        End,
    }

    assert_eq!(outer::first(), okt_core::Answer::To(Local::End.id()));
    assert_eq!(okt_core::Answer::from(local::AfterStart::End), outer::first());
    assert_eq!(Made::GRAPH.home(), Some(Made::Done.id()));
    assert_eq!(shadowed::State::Err.name(), "Err");
}
