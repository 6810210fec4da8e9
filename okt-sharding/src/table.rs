//! The table: which member holds which range. It is changed by compare-and-swap only.

use serde::{Deserialize, Serialize};

use super::ranges::{RANGES, Range, Ranges};

/// The format of the table that this release reads and writes.
pub(crate) const FORMAT: &str = "1";

/// The name of a member, which is that of its lease. It is never used again.
pub(crate) type Name = String;

/// The table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RangeTable {
    /// Grows with every write; a lower one than one that was seen is old news (C5).
    pub(crate) version: u64,
    /// Grows with every write that changes a holder; agents fence with it.
    pub(crate) epoch: u64,
    /// Whether no range was given to anybody since the table was made: an earlier table may have been deleted, and its
    /// members may not know it yet (C11).
    pub(crate) fresh: bool,
    /// One row for each range.
    pub(crate) rows: Vec<Row>,
}

/// A row: the range of the same number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Row {
    /// The member that may act on the objects of the range.
    pub(crate) holder: Option<Name>,
    /// The member that the holder gives the range to, when its work has ended.
    pub(crate) next: Option<Name>,
}

/// The rows as they are stored: members by their position in a list.
#[derive(Serialize, Deserialize)]
struct StoredRow {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fresh: bool,
    members: Vec<Name>,
    rows: Vec<(Option<usize>, Option<usize>)>,
}

impl RangeTable {
    /// Returns a table without holders, at a time since 1970.
    ///
    /// Its version and epoch are above those of any earlier table: a table is written less often than its version, in
    /// milliseconds, and its epoch, in seconds, would grow by themselves.
    pub(crate) fn new(since_1970: std::time::Duration) -> Self {
        Self {
            version: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            epoch: since_1970.as_secs(),
            fresh: true,
            rows: vec![Row::default(); RANGES.into()],
        }
    }

    /// Raises the epoch to that of a table that is made at this time since 1970: after a backup was restored, agents have
    /// seen higher ones than the table has.
    pub(crate) fn at(mut self, since_1970: std::time::Duration) -> Self {
        self.epoch = self.epoch.max(since_1970.as_secs());
        self
    }

    pub(crate) fn row(&self, range: Range) -> &Row {
        &self.rows[range.index()]
    }

    pub(crate) fn row_mut(&mut self, range: Range) -> &mut Row {
        &mut self.rows[range.index()]
    }

    /// Returns the ranges whose row fits.
    pub(crate) fn ranges(&self, fits: impl Fn(&Row) -> bool) -> Ranges {
        Range::all()
            .filter(|range| fits(self.row(*range)))
            .collect()
    }

    /// Returns the ranges that a member holds.
    pub(crate) fn held_by(&self, name: &str) -> Ranges {
        self.ranges(|row| row.holder.as_deref() == Some(name))
    }

    /// Returns the ranges that wait to be given to a member.
    pub(crate) fn coming_to(&self, name: &str) -> Ranges {
        self.ranges(|row| row.next.as_deref() == Some(name))
    }

    /// Returns the names of all members in the table.
    pub(crate) fn members(&self) -> Vec<&Name> {
        let mut members: Vec<&Name> = Vec::new();
        for name in self
            .rows
            .iter()
            .flat_map(|row| row.holder.iter().chain(&row.next))
        {
            if !members.contains(&name) {
                members.push(name);
            }
        }
        members
    }

    /// Returns the table that is written after `before`: with a higher version, and with a higher epoch if a holder
    /// changed. None if nothing changed.
    pub(crate) fn after(mut self, before: &Self) -> Option<Self> {
        if self.rows == before.rows {
            return None;
        }
        let holders = self.rows.iter().zip(&before.rows);
        let changed = holders
            .into_iter()
            .any(|(new, old)| new.holder != old.holder);
        self.fresh = false;
        self.version = before.version.saturating_add(1);
        self.epoch = before.epoch.saturating_add(changed.into());
        Some(self)
    }

    /// Returns the rows as text.
    pub(crate) fn text(&self) -> String {
        let members = self.members();
        let position = |name: &Option<Name>| {
            let name = name.as_ref()?;
            members.iter().position(|member| *member == name)
        };
        let rows = self.rows.iter();
        let stored = StoredRow {
            fresh: self.fresh,
            rows: rows
                .map(|row| (position(&row.holder), position(&row.next)))
                .collect(),
            members: members.iter().map(|name| (*name).clone()).collect(),
        };
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Reads the rows from text.
    ///
    /// # Errors
    ///
    /// Why the text is no table of this format.
    pub(crate) fn read(version: u64, epoch: u64, text: &str) -> Result<Self, String> {
        let stored: StoredRow = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if stored.rows.len() != usize::from(RANGES) {
            return Err(format!("{} rows, and not {RANGES}", stored.rows.len()));
        }
        let name = |position: Option<usize>| match position {
            None => Ok(None),
            Some(position) => match stored.members.get(position) {
                Some(name) => Ok(Some(name.clone())),
                None => Err(format!(
                    "a row names member {position}, which is not in the list"
                )),
            },
        };
        let rows: Result<Vec<Row>, String> = stored
            .rows
            .iter()
            .map(|(holder, next)| {
                Ok(Row {
                    holder: name(*holder)?,
                    next: name(*next)?,
                })
            })
            .collect();
        Ok(Self {
            version,
            epoch,
            fresh: stored.fresh,
            rows: rows?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_table_reads_back_and_takes_less_than_three_kilobytes() {
        let mut table = RangeTable::new(Duration::from_hours(500_000));
        for (number, row) in table.rows.iter_mut().enumerate() {
            row.holder = Some(format!("databases-{:016x}", number % 50));
            row.next = (number % 7 == 0).then(|| format!("databases-{:016x}", number % 50 + 1));
        }
        let text = table.text();
        assert!(text.len() < 3_072, "{}", text.len());
        let read = RangeTable::read(table.version, table.epoch, &text);
        assert_eq!(read, Ok(table));
    }

    #[test]
    fn a_text_that_is_no_table_is_refused() {
        for (text, why) in [
            ("", "EOF while parsing a value at line 1 column 0"),
            (r#"{"members":[],"rows":[]}"#, "0 rows, and not 64"),
        ] {
            assert_eq!(RangeTable::read(1, 1, text).expect_err("no table"), why);
        }
        let rows = format!("[{}]", vec!["[3,null]"; 64].join(","));
        let text = format!(r#"{{"members":["a"],"rows":{rows}}}"#);
        let why = RangeTable::read(1, 1, &text).expect_err("no such member");
        assert_eq!(why, "a row names member 3, which is not in the list");
    }

    #[test]
    fn an_epoch_is_not_below_that_of_a_new_table() {
        let now = Duration::from_hours(500_000);
        let mut table = RangeTable::new(Duration::from_secs(5));
        assert_eq!(table.clone().at(now).epoch, now.as_secs());
        table.epoch = u64::MAX;
        assert_eq!(table.at(now).epoch, u64::MAX);
    }

    #[test]
    fn the_epoch_grows_only_with_a_change_of_holders() {
        let before = RangeTable::new(Duration::from_secs(100));
        assert_eq!(before.clone().after(&before), None);
        let mut marked = before.clone();
        marked.rows[3].next = Some("a".to_owned());
        let marked = marked.after(&before).expect("a change");
        assert_eq!((marked.version, marked.epoch), (100_001, 100));
        let mut given = marked.clone();
        given.rows[3].holder = Some("a".to_owned());
        let given = given.after(&marked).expect("a change");
        assert_eq!((given.version, given.epoch), (100_002, 101));
    }
}
