//! What an object owns in the cluster: declared for a state by its application, and kept so in every turn.
//!
//! | part | what |
//! |---|---|
//! | `kind`, `watches`, `declared`, `template` | what an author says |
//! | `names` | where an object is that another one names |
//! | `plain`, `stamp` | what every applied object carries |
//! | `kept`, `index`, `cluster` | what is there: the caches |
//! | `drift`, `ready` | how it compares with what was said |
//! | `site` | requests about it, words for it |
//! | `settle`, `clear`, `waves` | apply, repair, delete |
//! | `efforts`, `memory` | how often something was tried; all that is remembered from turn to turn |

mod apply;
mod clear;
mod cluster;
mod declared;
mod drift;
mod efforts;
mod index;
mod kept;
mod kind;
mod memory;
mod names;
mod plain;
mod ready;
mod site;
mod stamp;
#[cfg(feature = "templates")]
mod template;
mod watches;
mod waves;

pub(crate) use self::apply::{ApplyReport, Leave, OwnedStatus};
pub(crate) use self::clear::{Left, clear, leaves_something};
pub(crate) use self::cluster::{Cluster, PAGE, name_of};
pub use self::declared::{Declared, Resources};
pub(crate) use self::efforts::Pace;
pub(crate) use self::kept::decoded;
pub(crate) use self::kind::Kind;
pub(crate) use self::memory::OwnedMemory;
pub(crate) use self::names::{Name, is_label, is_name, placed};
pub(crate) use self::ready::{Lack, lack};
pub(crate) use self::site::{Site, listed};
pub use self::stamp::OWNER_LABEL;
#[cfg(feature = "templates")]
pub use self::template::{Template, TemplateError};
pub use self::watches::Watches;
