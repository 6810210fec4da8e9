//! The cause of a transition as text in the history of a status.

use okt_core::decide::{By, Go, Why};

/// The prefix of the cause of a jump.
const JUMP: &str = "Jump";

/// The prefix of the cause of a re-entry from a leaf.
const REENTRY: &str = "Reentry";

/// Every cause that a history may have.
const WORDS: [Why; 14] = [
    Why::Created,
    Why::Adopted,
    Why::Observed,
    Why::Handler,
    Why::Next,
    Why::DesiredState,
    Why::Visit,
    Why::Request,
    Why::Deletion,
    Why::After,
    Why::OnError,
    Why::OnDelete,
    Why::OnChange,
    Why::OnAbort,
];

/// Returns the text for a transition, such as `DesiredState` or `Jump:Observed`.
pub fn words(go: Go) -> String {
    let why = go.why.as_str();
    match go.by {
        By::Jump => format!("{JUMP}:{why}"),
        By::Reentry => format!("{REENTRY}:{why}"),
        By::Entry | By::Child | By::Trigger => why.to_owned(),
    }
}

/// Parses the cause of a transition; returns none if another writer wrote the text.
pub(crate) fn why(words: &str) -> Option<Why> {
    let (_, why) = words.split_once(':').unwrap_or(("", words));
    WORDS.into_iter().find(|cause| cause.as_str() == why)
}

/// Returns whether a transition was a jump.
pub(crate) fn is_jump(words: &str) -> bool {
    words.split_once(':').is_some_and(|(by, _)| by == JUMP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_cause_is_read_back() {
        let to = okt_core::StateId::UNKNOWN;
        for why in WORDS {
            for by in [By::Entry, By::Child, By::Trigger, By::Jump, By::Reentry] {
                let words = words(Go { to, by, why });
                assert_eq!(super::why(&words), Some(why), "{words}");
                assert_eq!(is_jump(&words), by == By::Jump, "{words}");
            }
        }
        assert_eq!(super::why("Jump:"), None);
    }
}
