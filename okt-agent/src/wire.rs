//! The types of the protocol, as `docs/sidecar.md` specifies them.
//!
//! | content | file |
//! |---|---|
//! | the status of an agent and its application | `status` |
//! | actions: requests and reports | `action` |
//! | the owner of a request, and which of two requests is older | `owner` |
//! | refusals, and who can fix their cause | `problem` |

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

/// The version of the protocol, as part of every path.
pub const VERSION: &str = "v1";

/// The largest epoch, 2⁴⁰.
///
/// An operator counts up from the time in seconds since 1970, so it gets there in 34,000 years. A larger epoch is a
/// mistake of the client, and an agent that took it would refuse every operator from then on.
pub const EPOCH_LIMIT: u64 = 1 << 40;

/// The header with the trace that a request belongs to: <https://www.w3.org/TR/trace-context/>.
pub const TRACEPARENT: &str = "traceparent";

/// The limit for the body of a request, in bytes.
pub const BODY_LIMIT: usize = 256 * 1024;

/// The limit for the number of values in a body, including those in lists and objects.
///
/// Values that are short as text may take a hundred times as much memory.
pub const VALUES_LIMIT: usize = 5_000;

/// The limit for a text in an observation, a failure, a progress or a refusal, in bytes. Longer texts are truncated.
pub const TEXT_LIMIT: usize = 1024;

/// The limit for waiting until an action ends, in seconds. Longer waits are shortened.
pub const WAIT_LIMIT: u64 = 30;

/// Truncates a text to [`TEXT_LIMIT`].
#[cfg(any(feature = "agent", feature = "client"))]
pub(crate) fn cut(text: String) -> String {
    cut_to(text, TEXT_LIMIT)
}

/// Truncates a text to this many bytes. A truncated text ends with an ellipsis.
#[cfg(any(feature = "agent", feature = "client"))]
pub(crate) fn cut_to(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub('…'.len_utf8())));
        text.push('…');
    }
    text
}

#[cfg(all(test, any(feature = "agent", feature = "client")))]
mod tests {
    use super::cut_to;

    #[test]
    fn a_text_is_truncated_between_characters() {
        assert_eq!(cut_to("äää".into(), 6), "äää");
        assert_eq!(cut_to("ääää".into(), 6), "ä…");
    }
}
