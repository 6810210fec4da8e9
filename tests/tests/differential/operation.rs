//! This file describes one operation: a request that both servers get.

use std::fmt;

use serde_json::Value;

/// An object of the run: its kind's plural and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    pub(crate) plural: String,
    pub(crate) name: String,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plural, self.name)
    }
}

/// A request, with marks where the servers have values of their own.
///
/// `@v:things/a:1@` is the newest version of that object that was seen, `@v:things/a:2@` the one
/// before; `@u:..@` is its uid.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// What it is, in a word or two (e.g. `merge patch`); divergences are counted by it.
    pub(crate) verb: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Value>,
    pub(crate) plural: String,
    /// The object that it is about, if it is one.
    pub(crate) slot: Option<Slot>,
}

impl Operation {
    pub(crate) fn dry_run(&self) -> bool {
        self.query.iter().any(|(key, _)| *key == "dryRun")
            || self
                .body
                .as_ref()
                .is_some_and(|body| body.get("dryRun").is_some())
    }

    /// Where the request goes to: the object, or one of its subresources.
    pub(crate) fn door(&self) -> &'static str {
        if self.path.ends_with("/status") {
            "status"
        } else if self.path.ends_with("/scale") {
            "scale"
        } else {
            "main"
        }
    }
}

/// The operation as somebody would write it down.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.verb, self.method, self.path)?;
        for (index, (key, value)) in self.query.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { '?' } else { '&' })?;
        }
        if let Some(body) = &self.body {
            write!(f, " {body}")?;
        }
        Ok(())
    }
}
