//! [`Operation`]: a request that both servers get.

use std::fmt;

use serde_json::Value;

/// An object of the run: the plural of its kind, and its name.
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

/// A request, with marks for server-specific values.
///
/// `@v:things/a:1@` is the newest known version of that object, `@v:things/a:2@` the one before; `@u:..@` is its uid.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The name of the operation (e.g. `merge patch`), under which divergences are counted.
    pub(crate) verb: &'static str,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) media: &'static str,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Value>,
    pub(crate) plural: String,
    /// The object of the operation, if it has one.
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

    /// Returns the endpoint of the request: the object, or one of its subresources.
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

/// Formats the operation like an HTTP request.
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
