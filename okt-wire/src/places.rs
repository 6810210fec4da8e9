//! The places of a limit, as the annotations of a lease have them.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde::{Deserialize, Serialize};

use crate::digest;
use crate::keys::{FORMAT_KEY, MAX_KEY, PLACES_KEY, PLACES_OF_KEY};

/// The most places that a limit has.
pub const MOST_PLACES: u32 = 1000;

/// The format of the tables that this release reads and writes.
pub const FORMAT: &str = "1";

/// The limit and the group of objects whose places a table has.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct LimitKey {
    /// The CRD of the objects (e.g. `databases.demo.okt.dev`).
    pub crd: String,
    /// The limit (e.g. `rollout`).
    pub limit: String,
    /// The group, which may be empty (e.g. `zone-a`).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
}

/// The limit and the group, for people (e.g. `rollout/zone-a`).
impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.limit)?;
        match &*self.group {
            "" => Ok(()),
            group => write!(f, "/{group}"),
        }
    }
}

impl LimitKey {
    /// Returns the name of the lease, for a group of replicas.
    pub fn lease(&self, replicas: &str) -> String {
        let whole = serde_json::to_vec(self).unwrap_or_default();
        let hash = digest::revision_hash(&whole) >> 32;
        let limit = self.limit.to_ascii_lowercase().replace('_', "-");
        format!("{replicas}-{}-{hash:08x}", limit.trim_matches('-'))
    }
}

/// The places of one limit in one group of objects. Every change is a compare-and-swap.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LimitTable {
    /// The objects that have a place.
    #[serde(default)]
    pub places: Vec<LimitPlace>,
    /// The replicas that look after objects with the limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<LimitRow>,
    /// How many objects may have a place, as code said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// How many objects may have a place, if a person has set it; a text that is no number counts as 0.
    #[serde(skip)]
    pub max: Option<u32>,
}

/// The place of an object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitPlace {
    /// The uid of the object.
    pub uid: String,
    /// The version of the object by which it may move in.
    pub version: String,
    /// The object, for people (e.g. `shop/orders`).
    pub object: String,
    /// The number of its last transition then: if it has made another one, it was inside.
    pub transition: u64,
    /// Since when it has the place.
    pub since: Timestamp,
    /// It did not wait for the place: something has happened to it, or it was inside already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub registered: bool,
}

/// What a replica has registered, and for what it waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LimitRow {
    /// The run of a replica.
    pub member: String,
    /// The epoch of the ranges at which it has registered all of its objects inside.
    pub epoch: u64,
    /// The first of its objects that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<WaitingObject>,
}

/// An object that waits for a place. The lowest comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct WaitingObject {
    /// The rank that code gives it.
    pub rank: i32,
    /// Since when it waits.
    pub since: Timestamp,
    /// Its uid.
    pub uid: String,
}

impl LimitTable {
    /// Returns the place of an object.
    pub fn of(&self, uid: &str) -> Option<&LimitPlace> {
        self.places.iter().find(|place| place.uid == uid)
    }

    /// Reads the annotations of a lease; none if they are no table, or one of another format.
    pub fn read(lease: &Lease) -> Option<(LimitKey, Self)> {
        let annotations = lease.metadata.annotations.as_ref()?;
        let key = serde_json::from_str(annotations.get(PLACES_OF_KEY)?).ok()?;
        if annotations.get(FORMAT_KEY)? != FORMAT {
            return None;
        }
        let mut table: Self = serde_json::from_str(annotations.get(PLACES_KEY)?).ok()?;
        // What is no number was to change something: nobody goes in until a person has looked.
        let max = annotations.get(MAX_KEY).map(|max| max.parse());
        table.max = max.map(|max| max.unwrap_or(0));
        Some((key, table))
    }

    /// Returns the annotations of a lease, but for the number that a person may set.
    pub fn annotations(&self, key: &LimitKey) -> BTreeMap<String, String> {
        let of = serde_json::to_string(key).unwrap_or_default();
        let places = serde_json::to_string(self).unwrap_or_default();
        let all = [
            (FORMAT_KEY, FORMAT.to_owned()),
            (PLACES_OF_KEY, of),
            (PLACES_KEY, places),
        ];
        all.into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}
