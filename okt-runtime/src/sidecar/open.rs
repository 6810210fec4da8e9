//! The actions that were begun in this process and whose end is not taken yet.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

/// From this number of actions on, unwanted ones are removed.
const FEW: usize = 64;

/// The maximum number of actions.
///
/// If more objects than this have work whose end is not taken, the oldest actions are forgotten. If one of them is then
/// repeated, an end that its agent still keeps counts as taken.
const MOST: usize = 16 * 1024;

/// The last action of each object.
#[derive(Debug)]
pub(super) struct OpenRequests {
    actions: HashMap<String, BegunRequest>,
    /// At this number of actions unwanted ones are removed.
    many: usize,
    /// The number of actions ever begun.
    count: u64,
}

#[derive(Debug)]
struct BegunRequest {
    action: String,
    unwanted: CancellationToken,
    number: u64,
}

impl Default for OpenRequests {
    fn default() -> Self {
        Self {
            actions: HashMap::new(),
            many: FEW,
            count: 0,
        }
    }
}

impl OpenRequests {
    /// Notes that an action is begun. Returns whether it was begun before and its end never taken.
    ///
    /// `unwanted` is cancelled once the action is no longer wanted, or its object is gone: its end is then never taken.
    pub(super) fn begin(
        &mut self,
        object: String,
        action: &str,
        unwanted: CancellationToken,
    ) -> bool {
        self.count += 1;
        let begun = BegunRequest {
            action: action.to_owned(),
            unwanted,
            number: self.count,
        };
        let before = self.actions.insert(object, begun);
        if self.actions.len() >= self.many {
            self.forget();
        }
        before.is_some_and(|before| before.action == action)
    }

    fn forget(&mut self) {
        self.actions
            .retain(|_, begun| !begun.unwanted.is_cancelled());
        if self.actions.len() >= MOST {
            let mut numbers: Vec<_> = self.actions.values().map(|begun| begun.number).collect();
            let (_, middle, _) = numbers.select_nth_unstable(MOST / 2);
            let middle = *middle;
            self.actions.retain(|_, begun| begun.number >= middle);
            tracing::warn!(
                "the results of thousands of actions were never taken; the oldest are dropped"
            );
        }
        self.many = (2 * self.actions.len()).clamp(FEW, MOST);
    }

    /// Notes that the end of an object's action is taken.
    pub(super) fn end(&mut self, object: &str) {
        self.actions.remove(object);
    }
}

#[cfg(test)]
mod tests {
    //! Tests that open actions are kept, and others are not.

    use super::*;

    #[test]
    fn an_action_is_open_until_its_end_is_taken() {
        let mut open = OpenRequests::default();
        let wanted = CancellationToken::new();
        assert!(!open.begin("a".to_owned(), "a.1", wanted.clone()));
        assert!(open.begin("a".to_owned(), "a.1", wanted.clone()));
        assert!(!open.begin("a".to_owned(), "a.2", wanted.clone()));
        open.end("a");
        assert!(!open.begin("a".to_owned(), "a.2", wanted));
    }

    #[test]
    fn objects_that_are_gone_are_forgotten_and_others_are_not() {
        let mut open = OpenRequests::default();
        let wanted = CancellationToken::new();
        for number in 0..100 {
            open.begin(format!("kept-{number}"), "1", wanted.clone());
        }
        for number in 0..10_000 {
            let gone = CancellationToken::new();
            open.begin(format!("gone-{number}"), "1", gone.clone());
            gone.cancel();
            assert!(open.actions.len() <= 202, "{}", open.actions.len());
        }
        for number in 0..100 {
            assert!(open.begin(format!("kept-{number}"), "1", wanted.clone()));
        }
    }

    #[test]
    fn above_the_maximum_the_oldest_are_forgotten() {
        let mut open = OpenRequests::default();
        let wanted = CancellationToken::new();
        for number in 0..3 * MOST {
            open.begin(number.to_string(), "1", wanted.clone());
            assert!(open.actions.len() <= MOST);
        }
        assert!(open.begin((3 * MOST - 1).to_string(), "1", wanted.clone()));
        assert!(!open.begin("0".to_owned(), "1", wanted));
    }
}
