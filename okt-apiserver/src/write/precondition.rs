//! Checks the preconditions of a write.

use serde_json::Value;

use crate::kind::{Origin, ServedKind};
use crate::object;
use crate::refusal::Refusal;

/// The preconditions of a PUT or a patch.
#[derive(Debug, Default)]
pub(crate) struct Precondition {
    pub(crate) version: String,
    pub(crate) uid: String,
}

impl Precondition {
    /// Reads the preconditions from a body.
    pub(crate) fn of(body: &Value) -> Self {
        Self {
            version: object::version(body).to_owned(),
            uid: object::uid(body).to_owned(),
        }
    }

    /// Checks the uid of a PUT against that of the object, which is empty if there is no object.
    pub(super) fn check_uid(
        &self,
        kind: &ServedKind,
        dry_run: bool,
        object: &Value,
    ) -> Result<(), Refusal> {
        let found = object::uid(object);
        if !self.uid.is_empty() && self.uid != found {
            let group = &kind.group;
            let plural = if kind.is("", "services") {
                "services/specs"
            } else {
                &kind.plural
            };
            let name = object::name(object);
            let namespace = match object::namespace(object) {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            // A dry run does not reach the storage.
            let root = if dry_run { "" } else { "/registry" };
            let group = match kind.origin {
                Origin::Crd => format!("/{group}"),
                Origin::BuiltIn => String::new(),
            };
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {root}{group}/{plural}/{namespace}{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {}, UID in object meta: {found}",
                self.uid
            );
            return Err(Refusal::conflict(kind.subject(name), &why));
        }
        Ok(())
    }

    /// Checks the version of a PUT or a patch against the object; for a patch, the uid is a field like any other.
    pub(crate) fn check_version(&self, kind: &ServedKind, object: &Value) -> Result<(), Refusal> {
        if matches!(self.version.as_str(), "" | "0") || self.version == object::version(object) {
            Ok(())
        } else if self.version.parse::<u64>().is_err() {
            let shown = &self.version;
            let why = format!("strconv.ParseUint: parsing {shown:?}: invalid syntax");
            Err(Refusal::unexplained(why))
        } else {
            Err(Refusal::stale(kind.subject(object::name(object))))
        }
    }
}
