//! A spec says how it comes from that of the version before it.
use okt_macros::LifecycleSpec;

mod runtime {
    pub struct Desired<S>(pub Option<S>);

    impl<S> Default for Desired<S> {
        fn default() -> Self {
            Self(None)
        }
    }

    pub trait LifecycleSpec {
        type State;
        fn lifecycle(&self) -> &Desired<Self::State>;
        fn forget_lifecycle(&mut self);
        fn immutable() -> &'static [&'static str] {
            &[]
        }
        fn defaults() -> &'static [(&'static str, &'static str)] {
            &[]
        }
    }
}

enum Life {}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct NoPreviousVersion {
    lifecycle: runtime::Desired<Life>,
    #[lifecycle(was(size))]
    people: u8,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime), by_hand)]
struct NothingByHand {
    lifecycle: runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime), previous(v1alpha1::Tent))]
struct NoResource {
    lifecycle: runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime), previous = "v1alpha1", removed("color"), remove(color))]
struct WrongOptions {
    lifecycle: runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct NamelessFields {
    lifecycle: runtime::Desired<Life>,
    #[serde(flatten)]
    #[lifecycle(immutable)]
    rest: Vec<u8>,
    #[lifecycle(default = 3, imutable)]
    beds: u8,
}

fn main() {}
