//! A spec says in one field where its object should be.
use okt_macros::LifecycleSpec;

mod runtime {
    pub struct Desired<S>(pub Option<S>);

    impl<S> Default for Desired<S> {
        fn default() -> Self {
            Self(None)
        }
    }

    pub enum NoLifecycle {}

    impl NoLifecycle {
        pub fn desired() -> &'static Desired<Self> {
            &Desired(None)
        }
    }

    pub trait LifecycleSpec {
        type State;
        fn lifecycle(&self) -> &Desired<Self::State>;
        fn forget_lifecycle(&mut self);
    }
}

enum Life {}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct NoField {
    lifecycle: Option<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct TwoFields {
    lifecycle: runtime::Desired<Life>,
    other: crate::runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime), none)]
struct NoneAndOne {
    lifecycle: runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crates(crate::runtime))]
enum NoStruct {
    Lifecycle(runtime::Desired<Life>),
}

fn needs<S: runtime::LifecycleSpec>() {}

fn main() {
    needs::<TwoFields>();
}
