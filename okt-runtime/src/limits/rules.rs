//! What a replica may change of a table of places. Pure: from the table as it is to the table as it is written.
//!
//! | | rule |
//! |---|---|
//! | L1, L3 | a place is taken away only if its object is gone, or outside by another version than the place names |
//! | L2, L15 | a place names a version of its object; for another version the same place is bound again |
//! | L8, L18 | what happens to an object is registered whether a place is free or not, and that is no permit |
//! | L9, L13 | the number of places counts those of the table alone, and is read in the same write |
//! | L11, L17 | who waits first goes first, by the rows of the replicas that hold ranges; others' rows are removed |
//! | L14 | nothing is given out before every holder of ranges has registered its objects inside |

use std::collections::BTreeSet;

use jiff::Timestamp;
use okt_wire::places::{LimitPlace, LimitRow, LimitTable, WaitingObject};

/// The replicas, as a change of a table sees them.
#[derive(Clone, Debug)]
pub(crate) struct Replicas {
    /// The run of this process.
    pub(crate) own: String,
    /// The runs that hold ranges; all ranges have a holder.
    pub(crate) holders: Option<BTreeSet<String>>,
    /// Grows whenever a range changes hands.
    pub(crate) epoch: u64,
    /// This replica has registered its objects inside, as far as it can know.
    pub(crate) has_counted: bool,
}

/// What this replica knows of its own objects, for one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnObjects {
    /// Those that wait, the first one first.
    pub(crate) waiting: Vec<WaitingObject>,
    /// Those inside that have no place, as they are to be registered.
    pub(crate) unregistered: Vec<LimitPlace>,
    /// The places that are used no more (L3).
    pub(crate) left: Vec<LimitPlace>,
}

/// An object that asks for a place.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) key: WaitingObject,
    pub(crate) version: String,
    /// The number of its last transition.
    pub(crate) transition: u64,
    /// Its name, for people.
    pub(crate) object: String,
    /// The number of places, unless a person has set another one.
    pub(crate) places: u32,
}

/// Why an object does not get a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// No place is free.
    Full,
    /// Another object comes first.
    Behind,
    /// Not every replica has registered its objects.
    Uncounted,
}

impl Asking {
    fn place(&self, now: Timestamp, registered: bool) -> LimitPlace {
        LimitPlace {
            uid: self.key.uid.clone(),
            version: self.version.clone(),
            object: self.object.clone(),
            transition: self.transition,
            since: now,
            registered,
        }
    }
}

impl Replicas {
    pub(super) fn is_holder(&self, member: &str) -> bool {
        let mut holders = self.holders.iter().flatten();
        holders.any(|holder| holder == member)
    }

    /// Returns whether every range has a holder that has registered its objects at this epoch.
    fn have_counted(&self, table: &LimitTable) -> bool {
        let has_counted = |holder: &String| {
            let mut rows = table.rows.iter();
            rows.any(|row| row.member == *holder && row.epoch == self.epoch)
        };
        self.holders
            .as_ref()
            .is_some_and(|holders| holders.iter().all(has_counted))
    }
}

/// Returns the table with what this replica knows: places that are used no more are gone, objects inside are registered,
/// and its row says so.
pub(crate) fn tended(table: &LimitTable, replicas: &Replicas, own: &OwnObjects) -> LimitTable {
    let mut next = table.clone();
    next.places.retain(|place| !own.left.contains(place));
    for place in &own.unregistered {
        if next.of(&place.uid).is_none() {
            next.places.push(place.clone());
        }
    }
    next.rows
        .retain(|row| replicas.is_holder(&row.member) && row.member != replicas.own);
    if replicas.is_holder(&replicas.own) && replicas.has_counted {
        next.rows.push(LimitRow {
            member: replicas.own.clone(),
            epoch: replicas.epoch,
            first: own.waiting.first().cloned(),
        });
        next.rows.sort_by(|a, b| a.member.cmp(&b.member));
    }
    next
}

/// Returns whether others need to know what this replica knows: they wait, and it frees a place or has not registered its
/// objects, or it waits itself and its row does not say for what.
pub(crate) fn is_news(before: &LimitTable, after: &LimitTable, replicas: &Replicas) -> bool {
    let is_other = |row: &&LimitRow| row.member != replicas.own;
    let mut others = after.rows.iter().filter(is_other);
    let row = |table: &LimitTable| {
        let mut rows = table.rows.iter();
        rows.find(|row| row.member == replicas.own).cloned()
    };
    let first = |table: &LimitTable| row(table).and_then(|row| row.first);
    let waits = others.any(|row| row.first.is_some());
    let is_alone = replicas
        .holders
        .as_ref()
        .is_some_and(|holders| holders.len() == 1);
    let frees = before.places.len() > after.places.len();
    let registers = after
        .places
        .iter()
        .any(|place| before.of(&place.uid).is_none());
    registers
        || (waits && (frees || row(before).map(|it| it.epoch) != row(after).map(|it| it.epoch)))
        || (!is_alone && first(before) != first(after))
}

/// Returns the table in which an object has a place by its version, so that it may move in.
///
/// `passes`: the objects of other replicas that come first have not moved for long, although a place is free.
pub(crate) fn taken(
    table: &LimitTable,
    replicas: &Replicas,
    own: &OwnObjects,
    asking: &Asking,
    passes: bool,
    now: Timestamp,
) -> Result<LimitTable, Waits> {
    let mut next = tended(table, replicas, own);
    next.number = Some(asking.places);
    let mine = |next: &LimitTable| next.places.iter().position(|it| it.uid == asking.key.uid);
    if let Some(at) = mine(&next)
        && !next.places[at].registered
    {
        next.places[at].version.clone_from(&asking.version);
        return Ok(without_waiting(next, replicas, own, asking));
    }
    let others = next
        .places
        .iter()
        .filter(|it| it.uid != asking.key.uid)
        .count();
    let places = next.max.unwrap_or(asking.places);
    if others >= usize::try_from(places).unwrap_or(usize::MAX) {
        return Err(Waits::Full);
    }
    if !replicas.have_counted(&next) {
        return Err(Waits::Uncounted);
    }
    let is_before = |other: &WaitingObject| *other < asking.key;
    let own_first = own.waiting.iter().find(|it| it.uid != asking.key.uid);
    let mut rows = next.rows.iter().filter(|row| row.member != replicas.own);
    let is_behind = rows.any(|row| row.first.as_ref().is_some_and(is_before));
    if own_first.is_some_and(is_before) || (is_behind && !passes) {
        return Err(Waits::Behind);
    }
    let place = asking.place(now, false);
    match mine(&next) {
        // It was registered, and is outside: now it counts.
        Some(at) => next.places[at] = place,
        None => next.places.push(place),
    }
    Ok(without_waiting(next, replicas, own, asking))
}

/// Returns the table in which the row of this replica has the first of its objects that still waits.
fn without_waiting(
    mut next: LimitTable,
    replicas: &Replicas,
    own: &OwnObjects,
    asking: &Asking,
) -> LimitTable {
    let mut waiting = own.waiting.iter().filter(|it| it.uid != asking.key.uid);
    let first = waiting.next().cloned();
    if let Some(row) = next.rows.iter_mut().find(|row| row.member == replicas.own) {
        row.first = first;
    }
    next
}

/// Returns the table in which an object that moves in any case is registered by its version.
pub(crate) fn registered(
    table: &LimitTable,
    replicas: &Replicas,
    own: &OwnObjects,
    asking: &Asking,
    now: Timestamp,
) -> LimitTable {
    let mut next = tended(table, replicas, own);
    let mut places = next.places.iter_mut();
    match places.find(|it| it.uid == asking.key.uid) {
        Some(place) => place.version.clone_from(&asking.version),
        None => next.places.push(asking.place(now, true)),
    }
    next
}
