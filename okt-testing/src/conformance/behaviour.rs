//! [`Behaviour`]: one claim about a server, with its check.

use core::fmt;

use futures::future::BoxFuture;

use super::{claim::Failure, world::World};

/// One behaviour of the Kubernetes API.
#[derive(Clone, Copy)]
pub struct Behaviour {
    pub(super) number: Option<u8>,
    pub(super) theme: &'static str,
    pub(super) name: &'static str,
    pub(super) check: for<'a> fn(&'a World) -> BoxFuture<'a, Result<(), Failure>>,
}

impl Behaviour {
    /// Returns its number, if it is one of the 45 that operators cannot do without.
    pub fn number(&self) -> Option<u8> {
        self.number
    }

    /// Returns its theme (e.g. `apply`).
    pub fn theme(&self) -> &'static str {
        self.theme
    }

    /// Returns the claim (e.g. `an_identical_apply_keeps_the_resource_version`).
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.theme, self.name)
    }
}
