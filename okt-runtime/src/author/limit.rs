//! The limit of an object: among how many it may pass a gate.

use okt_wire::places::MOST_PLACES;

/// How many objects may be in the states of a gate `#[limit(..)]` at a time, and in which order they go.
///
/// ```
/// use okt::Limit;
///
/// # fn example(zone: &str) -> Limit {
/// Limit::of(2).group(zone).rank(-1)
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    pub(crate) places: u32,
    pub(crate) group: String,
    pub(crate) rank: i32,
}

impl Limit {
    /// Declares the number of places, at most 1,000; a higher number counts as that. With 0 no object waits in vain: all
    /// wait until the number is another one.
    pub fn of(places: u32) -> Self {
        Self {
            places: places.min(MOST_PLACES),
            group: String::new(),
            rank: 0,
        }
    }

    /// Declares the group of the object (e.g. its zone), which has these places for itself. An object keeps its place where
    /// it took it, also if it is in another group by now.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    /// Declares the rank: of the objects that wait, those with the lowest one go first, and of these the one that waits
    /// longest. Without it the rank is 0.
    #[must_use]
    pub fn rank(mut self, rank: i32) -> Self {
        self.rank = rank;
        self
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::of(1)
    }
}
