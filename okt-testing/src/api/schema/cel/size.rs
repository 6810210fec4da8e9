//! This file estimates the sizes of values.

/// The number of characters, bytes, items or entries of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

/// The sizes of the entries of a list or a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries {
    pub(super) keys: Size,
    pub(super) values: Size,
}

impl Size {
    pub(super) const ZERO: Self = Self::fixed(0);
    pub(super) const ONE: Self = Self::fixed(1);
    pub(super) const ANY: Self = Self::up_to(u64::MAX);

    pub(super) const fn fixed(size: u64) -> Self {
        Self {
            least: size,
            most: size,
        }
    }

    pub(super) const fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }
}

impl Entries {
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            keys: self.keys.union(other.keys),
            values: self.values.union(other.values),
        }
    }
}
