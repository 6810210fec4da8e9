//! The actions that were begun in this process and whose end nobody has taken yet.

use std::collections::HashMap;

use tokio_util::sync::CancellationToken;

/// From how many on it is looked which of them nobody will come back for.
const FEW: usize = 64;

/// How many are noted at most.
///
/// Where more objects than this have work of which nobody took the end, the oldest are forgotten: if somebody then
/// decides to have one of them done again, an end that its agent still keeps counts as taken.
const MOST: usize = 16 * 1024;

/// By object, the last action of it.
#[derive(Debug)]
pub(super) struct Open {
    actions: HashMap<String, Begun>,
    /// At so many it is looked again.
    many: usize,
    /// How many were ever begun.
    count: u64,
}

#[derive(Debug)]
struct Begun {
    action: String,
    unwanted: CancellationToken,
    number: u64,
}

impl Default for Open {
    fn default() -> Self {
        Self {
            actions: HashMap::new(),
            many: FEW,
            count: 0,
        }
    }
}

impl Open {
    /// Notes that an action is begun; whether it was begun before and its end never taken.
    ///
    /// `unwanted` is cancelled once the action is no longer wanted, or its object is gone: nobody comes back for the
    /// end of that.
    pub(super) fn begin(
        &mut self,
        object: String,
        action: &str,
        unwanted: CancellationToken,
    ) -> bool {
        self.count += 1;
        let begun = Begun {
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
        (self.actions).retain(|_, begun| !begun.unwanted.is_cancelled());
        if self.actions.len() >= MOST {
            let mut numbers: Vec<_> = self.actions.values().map(|begun| begun.number).collect();
            let (_, middle, _) = numbers.select_nth_unstable(MOST / 2);
            let middle = *middle;
            (self.actions).retain(|_, begun| begun.number >= middle);
            tracing::warn!("of thousands of actions nobody took the end; the oldest are forgotten");
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
    //! What is kept, and what is not.

    use super::*;

    #[test]
    fn an_action_is_lost_sight_of_until_its_end_is_taken() {
        let mut open = Open::default();
        let wanted = CancellationToken::new();
        assert!(!open.begin("a".to_owned(), "a.1", wanted.clone()));
        assert!(open.begin("a".to_owned(), "a.1", wanted.clone()));
        assert!(!open.begin("a".to_owned(), "a.2", wanted.clone()));
        open.end("a");
        assert!(!open.begin("a".to_owned(), "a.2", wanted));
    }

    #[test]
    fn objects_that_are_gone_are_forgotten_and_others_are_not() {
        let mut open = Open::default();
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
    fn of_too_many_the_oldest_are_forgotten() {
        let mut open = Open::default();
        let wanted = CancellationToken::new();
        for number in 0..3 * MOST {
            open.begin(number.to_string(), "1", wanted.clone());
            assert!(open.actions.len() <= MOST);
        }
        assert!(open.begin((3 * MOST - 1).to_string(), "1", wanted.clone()));
        assert!(!open.begin("0".to_owned(), "1", wanted));
    }
}
