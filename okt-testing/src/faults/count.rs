//! This file says which of the matches of a fault it strikes.

/// Of those that match: not the first few, each so many-th, and no more than so many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(super) skip: u64,
    pub(super) every: u64,
    pub(super) times: Option<u64>,
    /// No match after the one of this number.
    pub(super) last: Option<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            skip: 0,
            every: 1,
            times: None,
            last: None,
        }
    }
}

impl Window {
    /// Whether the match of this number, counted from 1, is struck after so many strikes.
    pub(crate) fn admits(self, matched: u64, struck: u64) -> bool {
        matched > self.skip
            && (matched - self.skip).is_multiple_of(self.every)
            && self.last.is_none_or(|last| matched <= last)
            && self.times.is_none_or(|times| struck < times)
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    fn struck(window: Window) -> Vec<u64> {
        let mut struck = Vec::new();
        for number in 1..=10 {
            if window.admits(number, struck.len() as u64) {
                struck.push(number);
            }
        }
        struck
    }

    #[test]
    fn a_window_admits_what_its_words_say() {
        let all = Window::default();
        assert_eq!(struck(all).len(), 10);
        assert_eq!(struck(Window { skip: 8, ..all }), [9, 10]);
        assert_eq!(struck(Window { every: 4, ..all }), [4, 8]);
        let some = Window {
            skip: 1,
            every: 3,
            times: Some(2),
            ..all
        };
        assert_eq!(struck(some), [4, 7]);
        let third = Window {
            skip: 2,
            last: Some(3),
            ..all
        };
        assert_eq!(struck(third), [3]);
        let none = Window {
            times: Some(0),
            ..all
        };
        assert!(struck(none).is_empty());
    }
}
