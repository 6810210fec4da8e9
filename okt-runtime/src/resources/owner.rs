//! An object that owns resources and refers to others, whatever its type: what handles resources is compiled once, and
//! not once more for each application.

use std::any::Any;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_wire::object::LifecycleObject;

use super::names::Name;

/// An object of any type, for the functions of its application.
pub(crate) type AnyObject = dyn Any + Send + Sync;

/// An object that owns resources and refers to others.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    pub(crate) object: &'a AnyObject,
    /// Its metadata.
    pub meta: &'a ObjectMeta,
    /// The owned objects that its status records.
    pub recorded: &'a [String],
}

impl<'a> Owner<'a> {
    /// Returns an object as an owner.
    pub fn of<K: LifecycleObject>(object: &'a K) -> Self {
        let status = object.status_of();
        Self {
            object,
            meta: object.meta(),
            recorded: status.map_or(&[], |status| &status.recorded_resources),
        }
    }

    /// Returns the same object with a status that records these resources.
    #[must_use]
    pub fn with_recorded<'b>(self, recorded: &'b [String]) -> Owner<'b>
    where
        'a: 'b,
    {
        Owner { recorded, ..self }
    }

    pub(crate) fn uid(&self) -> &'a str {
        self.meta.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> Name {
        let name = self.meta.name.clone().unwrap_or_default();
        (self.meta.namespace.clone(), name)
    }
}
