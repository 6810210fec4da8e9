//! The ranges of the hash of uids, by which the replicas of an operator share its objects.

use std::fmt;
use std::hash::Hasher;
use std::ops::{BitAnd, BitOr, Not};

use fnv::FnvHasher;

/// The number of ranges.
pub const RANGES: u8 = 64;

/// Returns the 64-bit FNV-1a hash of a text: what the API server computes for `shardSelector` (KEP-5866).
fn hash(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// One of the ranges, by its number: the highest six bits of the hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Range(u8);

impl Range {
    /// Returns the range of an object.
    pub fn of(uid: &str) -> Self {
        Self((hash(uid) >> 58) as u8)
    }

    /// Returns the range of this number; none if there are not so many.
    #[cfg(test)]
    pub(crate) fn new(number: u8) -> Option<Self> {
        (number < RANGES).then_some(Self(number))
    }

    /// Returns all ranges.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..RANGES).map(Self)
    }

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// Returns the value of the label by which the owned objects of an object are found: the highest eight bits of the
/// hash of its uid.
///
/// It does not depend on the number of ranges, and no object changes it when a range moves.
pub fn prefix(uid: &str) -> String {
    format!("{:02x}", hash(uid) >> 56)
}

/// A set of ranges.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ranges(u64);

impl Ranges {
    /// All ranges: an operator without replicas acts on every object.
    pub const ALL: Self = Self(u64::MAX);
    /// No range.
    pub const NONE: Self = Self(0);

    /// Returns whether a range is among these.
    pub fn contains(self, range: Range) -> bool {
        self.0 >> range.0 & 1 == 1
    }

    /// Returns whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns their number, at most [`RANGES`].
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Range> {
        Range::all().filter(move |range| self.contains(*range))
    }

    /// Returns whether all ranges of this set are in the other one.
    pub fn is_in(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// Returns the expression by which the API server lists and watches only objects of these ranges
    /// (`shardSelector`, KEP-5866).
    pub(crate) fn shard_selector(self) -> String {
        let ends = runs(self).into_iter().map(|(first, last)| {
            let (begin, end) = (
                u128::from(first) << 58,
                u128::from(last).saturating_add(1) << 58,
            );
            format!("shardRange(object.metadata.uid, '{begin:#018x}', '{end:#018x}')")
        });
        ends.collect::<Vec<_>>().join(" || ")
    }

    /// Returns the values of [`prefix`] of objects in these ranges.
    pub fn prefixes(self) -> impl Iterator<Item = String> {
        let of = |Range(number): Range| (0..4_u16).map(move |part| u16::from(number) << 2 | part);
        self.iter()
            .flat_map(of)
            .map(|prefix| format!("{prefix:02x}"))
    }

    /// Returns the ranges of this set that the other one does not have.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self & !other
    }
}

impl BitAnd for Ranges {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Ranges {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for Ranges {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl FromIterator<Range> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range>>(ranges: I) -> Self {
        Self(ranges.into_iter().fold(0, |set, range| set | 1 << range.0))
    }
}

/// Shows the numbers of the ranges, e.g. `0-20, 63`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (index, (first, last)) in runs(*self).into_iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranges({self})")
    }
}

/// Returns the first and the last number of each run of adjacent ranges.
fn runs(set: Ranges) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for Range(number) in set.iter() {
        match runs.last_mut() {
            Some((_, last)) if last.saturating_add(1) == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: impl IntoIterator<Item = u8>) -> Ranges {
        numbers.into_iter().filter_map(Range::new).collect()
    }

    #[test]
    fn the_hash_is_that_of_the_published_test_vectors() {
        // From the FNV test suite (draft-eastlake-fnv).
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(hash(text), expected, "{text}");
        }
    }

    #[test]
    fn uids_spread_evenly_over_the_ranges() {
        let mut counts = [0_u32; 64];
        for number in 0..64_000_u64 {
            let uid = format!(
                "{:08x}-7c5d-4{:03x}-8000-{number:012x}",
                hash(&number.to_string()) >> 32,
                number % 4096
            );
            counts[Range::of(&uid).index()] += 1;
        }
        assert!(
            counts.iter().all(|count| (800..1200).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_selector_has_one_expression_for_each_run_of_ranges() {
        assert_eq!(
            set([0, 1, 63]).shard_selector(),
            "shardRange(object.metadata.uid, '0x0000000000000000', '0x0800000000000000') || shardRange(object.metadata.uid, '0xfc00000000000000', '0x10000000000000000')"
        );
    }

    #[test]
    fn the_prefix_of_an_object_is_one_of_those_of_its_range() {
        for number in 0..1000_u32 {
            let uid = format!("{:x}-{number}", hash(&number.to_string()));
            let of_range: Ranges = [Range::of(&uid)].into_iter().collect();
            assert!(of_range.prefixes().any(|it| it == prefix(&uid)), "{uid}");
        }
        let all: Vec<String> = Ranges::ALL.prefixes().collect();
        assert_eq!((all.len(), &*all[0], &*all[255]), (256, "00", "ff"));
    }

    #[test]
    fn a_set_shows_its_runs() {
        assert_eq!(Ranges::ALL.to_string(), "0-63");
        assert_eq!(Ranges::NONE.to_string(), "none");
        assert_eq!(set([0, 1, 2, 7, 62, 63]).to_string(), "0-2, 7, 62-63");
        assert_eq!(set([5, 9]).without(set([9])), set([5]));
    }
}
