//! [`Window`]: which of its matches a fault strikes.

/// The matches to strike: skips the first `skip`, then takes each `every`-th, at most `times`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(super) skip: u64,
    pub(super) every: u64,
    pub(super) times: Option<u64>,
    /// The number of the last match that can be struck.
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
    /// Returns whether to strike the match of this number, starting at 1, after `struck` strikes.
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
    fn a_window_combines_skip_every_times_and_last() {
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
