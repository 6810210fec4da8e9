//! The derive finds the field, by whatever path and in whatever struct.
#![deny(warnings)]

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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Running,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct Named<'a, T: Clone> {
    storage: &'a T,
    r#type: runtime::Desired<Life>,
}

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime))]
struct Unnamed(u8, crate::runtime::Desired<Life>);

#[derive(LifecycleSpec)]
#[lifecycle(crate(crate::runtime), none)]
struct Without {
    storage: u8,
}

fn desired<S: runtime::LifecycleSpec<State = Life>>(spec: &S) -> Option<Life> {
    spec.lifecycle().0
}

fn main() {
    let named = Named {
        storage: &1,
        r#type: runtime::Desired(Some(Life::Running)),
    };
    assert_eq!(desired(&named), Some(Life::Running));
    assert_eq!(*named.storage, 1);
    let without = Without { storage: 3 };
    assert!(runtime::LifecycleSpec::lifecycle(&without).0.is_none());
    assert_eq!(without.storage, 3);
    let unnamed = Unnamed(2, runtime::Desired(None));
    assert_eq!(desired(&unnamed), None);
    assert_eq!(unnamed.0, 2);
}
