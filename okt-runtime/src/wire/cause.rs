//! What led to a transition, in the words of the history in a status.

use okt_core::decide::{By, Go, Why};

/// What stands before the word of a jump.
const JUMP: &str = "Jump";

/// What stands before the word of a re-entry out of a leaf.
const REENTRY: &str = "Reentry";

/// Every word that a history may have.
const WORDS: [Why; 12] = [
    Why::Created,
    Why::Adopted,
    Why::Observed,
    Why::Handler,
    Why::Next,
    Why::DesiredState,
    Why::Visit,
    Why::Deletion,
    Why::After,
    Why::OnError,
    Why::OnDelete,
    Why::OnChange,
];

/// Returns the words for a transition, such as `DesiredState` or `Jump:Observed`.
pub(crate) fn words(go: Go) -> String {
    let why = go.why.as_str();
    match go.by {
        By::Jump => format!("{JUMP}:{why}"),
        By::Reentry => format!("{REENTRY}:{why}"),
        By::Entry | By::Child | By::Trigger => why.to_owned(),
    }
}

/// Returns what led to a transition; none where somebody else wrote the words.
pub(crate) fn why(words: &str) -> Option<Why> {
    let (_, why) = words.split_once(':').unwrap_or(("", words));
    WORDS.into_iter().find(|cause| cause.as_str() == why)
}

/// Whether a transition was a jump.
pub(crate) fn is_jump(words: &str) -> bool {
    words.split_once(':').is_some_and(|(by, _)| by == JUMP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
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
