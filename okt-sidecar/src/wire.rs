//! What goes over the wire: the types of the protocol, as `docs/sidecar.md` specifies them.
//!
//! | what | file |
//! |---|---|
//! | what an agent says of itself and of its application | `status` |
//! | what it is asked to do, and how that goes | `action` |
//! | whose request it is, and which of two is the older one | `owner` |
//! | what is wrong, and who can mend it | `problem` |

mod action;
mod owner;
mod problem;
mod status;

pub use self::action::{
    Acknowledgement, ActionId, ActionIdError, ActionReport, ActionRequest, Actions, Phase, Progress,
};
pub use self::owner::{Fence, ObjectRef, Owner};
pub use self::problem::{Code, Mender, Problem};
pub use self::status::{AgentInfo, AgentStatus, Seen, Sighting, Versions};

/// The version of the protocol, as it stands in every path.
pub const VERSION: &str = "v1";

/// How far above the highest epoch that was taken an epoch may be.
///
/// No lead changes hands so often between two requests: an epoch beyond that is a mistake of the client, and an agent
/// that took it would refuse every operator from then on.
pub const EPOCH_STEP: u64 = 1_000_000;

/// The longest body that an agent reads, in bytes.
pub const BODY_LIMIT: usize = 256 * 1024;

/// How many values a body may hold, those in lists and objects counted too.
///
/// As a text they may be short, and in memory a hundred times as large.
pub const VALUES_LIMIT: usize = 5_000;

/// The longest text that a sighting, a failure, a progress or a refusal carries, in bytes; longer ones are cut.
pub const TEXT_LIMIT: usize = 1024;

/// How long a request for the end of an action may wait, in seconds; longer waits are shortened.
pub const WAIT_LIMIT: u64 = 30;
