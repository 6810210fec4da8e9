//! Plans which member should hold which range: a pure function, which every member can run.

use super::ranges::{RANGES, Range, Ranges};
use super::table::RangeTable;

/// The members that may get ranges, and what is known of the others.
pub(crate) struct PlannedGroup<'a> {
    /// The members that may get ranges, in the order in which they joined.
    pub(crate) eligible: Vec<&'a str>,
    /// The largest number of members that hold ranges.
    pub(crate) limit: usize,
}

/// Returns the table with the ranges that nobody holds given to members, and with ranges marked to move if `balances`.
///
/// `is_free` returns for each holder whether it is certain that it does not act any more (C1).
/// The moves are the least that balance the counts: the planner knows nothing of load. It takes no range from a holder
/// that may act: it marks the range, and the holder gives it away (C12).
pub(crate) fn plan(
    table: &RangeTable,
    group: &PlannedGroup<'_>,
    is_free: impl Fn(&str) -> bool,
    balances: bool,
) -> RangeTable {
    let mut planned = table.clone();
    for row in &mut planned.rows {
        row.next
            .take_if(|next| !group.eligible.contains(&next.as_str()));
    }
    let free = planned.ranges(|row| row.holder.as_deref().is_none_or(&is_free));
    give(&mut planned, free, group);
    let is_moving = planned.rows.iter().any(|row| row.next.is_some());
    if balances && !is_moving {
        balance(&mut planned, group);
    }
    planned
}

/// Gives these ranges to the members that they are marked for, or else to those that lack most.
///
/// Without any eligible member the ranges stay as they are.
pub(crate) fn give(table: &mut RangeTable, ranges: Ranges, group: &PlannedGroup<'_>) {
    let mut left = Vec::new();
    for range in ranges.iter() {
        let row = table.row_mut(range);
        match row
            .next
            .take_if(|next| group.eligible.contains(&next.as_str()))
        {
            Some(next) => row.holder = Some(next),
            None => left.push(range),
        }
    }
    let mut shares = Shares::of(table, left.iter().copied().collect(), group);
    for range in left {
        if let Some(name) = shares.take() {
            let row = table.row_mut(range);
            row.holder = Some(name.to_owned());
            row.next = None;
        }
    }
}

/// Marks ranges to move from members that hold too many to members that lack some.
fn balance(table: &mut RangeTable, group: &PlannedGroup<'_>) {
    let mut shares = Shares::of(table, Ranges::NONE, group);
    let mut excess: Vec<(&str, usize)> = shares.excess();
    // From the end, so that the ranges of a member stay adjacent.
    for range in Range::all().collect::<Vec<_>>().into_iter().rev() {
        let row = table.row_mut(range);
        let holder = row.holder.as_deref();
        let Some((_, left)) = excess
            .iter_mut()
            .find(|(name, left)| Some(*name) == holder && *left > 0)
        else {
            continue;
        };
        let Some(next) = shares.take() else {
            return;
        };
        *left = left.saturating_sub(1);
        row.next = Some(next.to_owned());
    }
}

/// How many ranges each eligible member has, and should have.
struct Shares<'a>(Vec<MemberShare<'a>>);

struct MemberShare<'a> {
    name: &'a str,
    count: usize,
    quota: usize,
}

impl<'a> Shares<'a> {
    /// Counts the ranges of each member, without those in `given`.
    fn of(table: &RangeTable, given: Ranges, group: &PlannedGroup<'a>) -> Self {
        let count = |name: &str| {
            table
                .ranges(|row| row.next.as_deref().or(row.holder.as_deref()) == Some(name))
                .without(given)
                .len()
        };
        // Those that joined last come first among equals: in a rolling update they stay longest.
        let mut shares: Vec<MemberShare<'a>> = group
            .eligible
            .iter()
            .rev()
            .map(|name| MemberShare {
                name,
                count: count(name),
                quota: 0,
            })
            .collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.count));
        let holders = shares.len().min(group.limit);
        let all = usize::from(RANGES);
        for (index, share) in shares.iter_mut().take(holders).enumerate() {
            let base = all.checked_div(holders).unwrap_or_default();
            let larger = all.checked_rem(holders).unwrap_or_default();
            share.quota = base.saturating_add((index < larger).into());
        }
        Self(shares)
    }

    /// Returns the member that lacks most; it gets one more.
    fn take(&mut self) -> Option<&'a str> {
        let lacks = |share: &MemberShare<'_>| share.quota.saturating_sub(share.count);
        let shares = self.0.iter_mut().rev();
        let share = shares
            .filter(|share| lacks(share) > 0)
            .max_by_key(|share| lacks(share))?;
        share.count = share.count.saturating_add(1);
        Some(share.name)
    }

    /// Returns how many ranges each member has too many.
    fn excess(&self) -> Vec<(&'a str, usize)> {
        let shares = self.0.iter();
        shares
            .map(|share| (share.name, share.count.saturating_sub(share.quota)))
            .filter(|(_, excess)| *excess > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::table::Row;

    const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn group(eligible: &[&'static str], limit: usize) -> PlannedGroup<'static> {
        PlannedGroup {
            eligible: eligible.to_vec(),
            limit,
        }
    }

    /// Plays what the members do with a plan: each holder gives away what is marked.
    fn settle(mut table: RangeTable, group: &PlannedGroup<'_>) -> (RangeTable, usize) {
        let mut moved = 0;
        for _ in 0..8 {
            let planned = plan(&table, group, |name| !group.eligible.contains(&name), true);
            let mut given = planned.clone();
            give(&mut given, planned.ranges(|row| row.next.is_some()), group);
            let changed = table.rows.iter().zip(&given.rows);
            moved += changed
                .filter(|(old, new)| old.holder != new.holder)
                .count();
            if given == table {
                return (table, moved);
            }
            table = given;
        }
        panic!("it does not come to rest");
    }

    fn empty() -> RangeTable {
        RangeTable::new(Duration::ZERO)
    }

    fn counts(table: &RangeTable) -> Vec<usize> {
        NAMES.iter().map(|name| table.held_by(name).len()).collect()
    }

    #[test]
    fn scaling_moves_the_least_possible() {
        let (one, moved) = settle(empty(), &group(&["a"], 64));
        assert_eq!((counts(&one)[0], moved), (64, 64));
        let (three, moved) = settle(one, &group(&["a", "b", "c"], 64));
        assert_eq!(
            (counts(&three)[..3].to_vec(), moved),
            (vec![22, 21, 21], 42)
        );
        let (two, moved) = settle(three, &group(&["a", "c"], 64));
        assert_eq!((counts(&two)[..3].to_vec(), moved), (vec![32, 0, 32], 21));
        let (leader, moved) = settle(two, &group(&["a", "c"], 1));
        assert_eq!((counts(&leader).into_iter().max(), moved), (Some(64), 32));
        let (again, moved) = settle(leader, &group(&["a", "c"], 2));
        assert_eq!((counts(&again)[..3].to_vec(), moved), (vec![32, 0, 32], 32));
    }

    #[test]
    fn a_range_of_a_holder_that_may_act_is_marked_and_not_taken() {
        let (table, _) = settle(empty(), &group(&["a"], 64));
        let planned = plan(&table, &group(&["a", "b"], 64), |_| false, true);
        assert_eq!(counts(&planned), counts(&table));
        assert_eq!(planned.coming_to("b").len(), 32);
        // The next plan waits for these moves.
        let again = plan(&planned, &group(&["a", "b", "c"], 64), |_| false, true);
        assert_eq!(again, planned);
        // A member that went away gets nothing.
        let without = plan(&planned, &group(&["a"], 64), |_| false, true);
        assert_eq!(without, table);
    }

    #[test]
    fn a_leader_that_stops_is_followed_by_the_member_that_joined_last() {
        let (table, _) = settle(empty(), &group(&["a"], 1));
        let mut given = table;
        give(&mut given, Ranges::ALL, &group(&["b", "c"], 1));
        assert_eq!(given.held_by("c"), Ranges::ALL);
    }

    proptest! {
        #[test]
        fn any_table_comes_to_rest_balanced_with_the_least_moves(
            rows in prop::collection::vec((prop::option::of(0..6_usize), prop::option::of(0..6_usize)), 64),
            eligible in prop::collection::btree_set(0..6_usize, 1..6),
            limit in 1..7_usize,
        ) {
            let name = |index: Option<usize>| index.map(|index| NAMES[index].to_owned());
            let mut table = empty();
            for (row, (holder, next)) in table.rows.iter_mut().zip(rows) {
                *row = Row { holder: name(holder), next: name(next) };
                // Only a range that is held is marked.
                row.next.take_if(|_| row.holder.is_none());
            }
            let eligible: Vec<&str> = eligible.into_iter().map(|index| NAMES[index]).collect();
            let group = group(&eligible, limit);
            let planned = plan(&table, &group, |name| !group.eligible.contains(&name), true);
            // Marks that stood before count as decided.
            for row in &mut table.rows {
                row.next = None;
            }
            let holders = limit.min(eligible.len());
            let held: Vec<usize> = eligible.iter().map(|name| table.held_by(name).len()).collect();
            let (rest, moved) = settle(table.clone(), &group);
            let mut after: Vec<usize> = eligible.iter().map(|name| rest.held_by(name).len()).collect();
            after.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert!(after[holders..].iter().all(|count| *count == 0));
            prop_assert!(after[0] - after[holders - 1] <= 1, "{after:?}");
            prop_assert_eq!(after.iter().sum::<usize>(), 64);
            // The least: all that are free, and what each member has above its quota, the larger ones to those with most.
            let mut most = held;
            most.sort_unstable_by(|a, b| b.cmp(a));
            let quota = |index: usize| {
                let share = 64 / holders + usize::from(index < 64 % holders);
                if index < holders { share } else { 0 }
            };
            let kept: usize = most.iter().enumerate().map(|(index, count)| (*count).min(quota(index))).sum();
            prop_assert_eq!(moved, 64 - kept);
            // No holder that may act lost a range by the plan itself.
            for (old, new) in table.rows.iter().zip(&planned.rows) {
                if let Some(holder) = &old.holder && eligible.contains(&holder.as_str()) {
                    prop_assert_eq!(&new.holder, &old.holder);
                }
            }
        }
    }
}
