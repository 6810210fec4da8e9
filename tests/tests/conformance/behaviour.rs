//! [`Behaviour`]: one claim about a server, with its check.

use core::fmt;

use futures::future::LocalBoxFuture;

use crate::world::World;

/// One behavior of the Kubernetes API.
#[derive(Clone, Copy)]
pub(crate) struct Behaviour {
    pub(crate) theme: &'static str,
    /// The claim (e.g. `an_identical_apply_keeps_the_resource_version`).
    pub(crate) name: &'static str,
    /// Panics if the server behaves differently.
    pub(crate) check: for<'a> fn(&'a World) -> LocalBoxFuture<'a, ()>,
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.theme, self.name)
    }
}

/// Lists the behaviors of a theme.
macro_rules! behaviours {
    ($theme:literal: $($check:ident,)*) => {
        pub(crate) const BEHAVIOURS: &[$crate::behaviour::Behaviour] = &[$(
            $crate::behaviour::Behaviour {
                theme: $theme,
                name: stringify!($check),
                check: |world| Box::pin($check(world)),
            },
        )*];
    };
}

pub(crate) use behaviours;
