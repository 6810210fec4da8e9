//! Owned resources: your operator declares them for a state, and every reconciliation maintains them.
//!
//! | module | subject |
//! |---|---|
//! | `kind`, `watches`, `declared`, `template` | the declarations of an operator |
//! | `names`, `owner` | the namespace and name of an object; an object of any type that owns and refers |
//! | `cascade` | workloads that a deletion in the foreground takes away |
//! | `plain`, `stamp` | normalized declarations, and the labels and annotations of applied objects |
//! | `kept`, `index`, `cluster` | the caches of owned and referenced objects |
//! | `drift`, `managers`, `ready` | drift detection, the managers of fields, and readiness |
//! | `requests`, `site` | requests about objects of any kind; those about owned ones, and their names in messages |
//! | `plan`, `going` | what to do about each resource: pure decisions |
//! | `apply`, `record`, `report` | the loop that does it, the proof of ownership, and the findings |
//! | `inventory`, `stock` | what a status records, and what becomes of recorded objects that the cache does not show |
//! | `attempts`, `memory` | backoff of attempts, and the state kept between reconciliations |

mod apply;
mod attempts;
mod cascade;
mod cluster;
mod declared;
mod drift;
mod filled;
mod going;
mod index;
mod inventory;
mod kept;
mod kind;
mod managers;
mod memory;
mod names;
mod owner;
mod plain;
mod plan;
mod ready;
mod record;
mod report;
mod requests;
mod site;
mod stamp;
mod stock;
#[cfg(feature = "templates")]
mod template;
mod watches;

pub use self::apply::AllowedWrites;
pub use self::attempts::Pace;
pub use self::cluster::Cluster;
pub(crate) use self::cluster::name_of;
pub use self::declared::{Declared, Resources};
pub(crate) use self::filled::Filling;
pub use self::inventory::Inventory;
pub(crate) use self::kept::decoded;
pub use self::kind::ResourceKind;
pub use self::memory::OwnedMemory;
pub use self::names::is_label;
pub(crate) use self::names::{Name, is_name, placed};
pub use self::owner::Owner;
pub(crate) use self::ready::Lack;
pub(crate) use self::report::{ApplyReport, OwnedStatus};
pub use self::site::Site;
pub(crate) use self::site::listed;
#[cfg(feature = "templates")]
pub use self::template::{Template, TemplateError};
pub use self::watches::{WatchedKinds, Watches};
