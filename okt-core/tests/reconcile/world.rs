//! The world around one object: the API server, the cluster, the application, and the operator.

use std::hash::{DefaultHasher, Hash, Hasher};

use okt_core::StateId;
use okt_core::facts::Named;
use okt_core::record::{ActionRecord, DesiredRecord, Phase as Recording, Record, Recorded};

use crate::cases::{Budget, Case, Special};
use crate::event::{Fault, Write};
use crate::machine::{ObservationResult, Time, WorkId};
use crate::object::Object;
use crate::plant::Bug;
use crate::process::Process;
use crate::requests::{ASKED, Asked};

/// Nothing can be observed of the application.
pub(crate) const UNOBSERVED: ObservationResult = ObservationResult::Unobserved { again: true };

/// One object, everything that acts upon it, and the part of its past that rules need.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) case: &'static Case,
    /// The bug that is planted.
    pub(crate) bug: Option<Bug>,
    /// The object as the API server stores it.
    pub(crate) stored: Object,
    /// The versions that a cache may still get, oldest first. The last is the stored one.
    pub(crate) versions: Vec<Object>,
    pub(crate) presence: Presence,
    pub(crate) process: Process,
    pub(crate) now: Time,
    pub(crate) cluster: Cluster,
    /// The answer of the application when it is observed.
    pub(crate) sight: ObservationResult,
    /// The application's own fields of the status.
    pub(crate) extra: u8,
    /// The kind of write that fails, and how.
    pub(crate) failing: Option<(Write, Fault)>,
    pub(crate) permits: Permits,
    /// The gates are shut; a limit is full.
    pub(crate) shut: bool,
    /// The place of the object in the limit.
    pub(crate) place: Option<Place>,
    /// The transition into the state in which the object has been for a long time.
    pub(crate) long_in: Option<u64>,
    /// The requests, as the API server stores them.
    pub(crate) asked: [Asked; ASKED],
    /// Other controllers have finalizers on the object.
    pub(crate) others_hold: bool,
    /// A task for a former object of the same name runs. The operator learns this when it starts an action.
    pub(crate) former_task_runs: bool,
    pub(crate) budget: Budget,
    pub(crate) history: History,
    /// The rule that is broken.
    pub(crate) broken: Option<String>,
    pub(crate) tally: Tally,
}

/// Whether the object exists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Presence {
    Stored,
    /// The object is gone, and the operator's cache still has it.
    Gone,
    /// The object is gone from the cache too.
    Forgotten,
}

/// The objects in the cluster that belong to the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cluster {
    /// The object that states declare.
    pub(crate) owned: OwnedObject,
    /// The object that the pass puts. Kubernetes does not delete it with its owner.
    pub(crate) put: PutObject,
    /// The object that states declare has the content of an earlier release.
    pub(crate) is_outdated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum OwnedObject {
    Absent,
    Unready,
    Ready,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PutObject {
    Absent,
    There,
    Deleting,
}

impl Cluster {
    pub(crate) fn has_any(self) -> bool {
        self.owned != OwnedObject::Absent || self.put != PutObject::Absent
    }
}

/// The place of the object in the limit of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The version by which the object may move in.
    pub(crate) version: crate::object::Version,
    /// It was free; otherwise the object was registered.
    pub(crate) granted: bool,
}

/// The permits for actions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Permits {
    Free,
    /// All are taken. The object is requeued when one becomes free.
    Taken,
    /// One becomes free for the object after a time.
    Later,
}

/// The past, as far as a rule needs it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct History {
    /// Every piece of work that was recorded.
    pub(crate) works: Vec<RecordedWork>,
    /// Every position that was recorded: state and transition.
    pub(crate) positions: Vec<(StateId, u64)>,
    /// The requests that have begun.
    pub(crate) begun: [bool; ASKED],
    /// The number of processes after the first one.
    pub(crate) processes: u8,
}

/// A piece of work that was recorded.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RecordedWork {
    pub(crate) id: WorkId,
    pub(crate) state: StateId,
    pub(crate) revision: u64,
    /// The processes that started it while it was in flight, one bit for each.
    pub(crate) begun_by: u8,
}

/// Counters. Nothing depends on them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Requests to the API server.
    pub(crate) requests: u32,
    /// Failed writes, except conflicts.
    pub(crate) failures: u32,
    /// Writes of the status that succeeded.
    pub(crate) patches: u32,
    /// Transitions along trigger edges.
    pub(crate) triggered: u32,
    pub(crate) reconciliations: u32,
    pub(crate) decisions: u32,
}

impl World {
    /// Returns the world of an object that was just created, or that the loop guard delays if the case is about that.
    pub(crate) fn new(case: &'static Case, bug: Option<Bug>) -> Self {
        let mut object = Object::created();
        let mut history = History::default();
        object.status.is_inherited = case.special == Special::Inherited;
        if case.special == Special::HasGoneRound
            && let Some(record) = gone_round(case)
        {
            object.finalizer = true;
            object.status.recorded = Recorded::At(record);
            history.positions.push((record.state, record.transition));
            history.works.push(RecordedWork {
                id: WorkId {
                    transition: record.transition,
                    run: 1,
                    token: 0,
                },
                state: record.state,
                revision: record.revision,
                begun_by: 0,
            });
        }
        Self {
            case,
            bug,
            stored: object,
            versions: vec![object],
            presence: Presence::Stored,
            process: Process::started(0, object),
            now: Time::default(),
            cluster: Cluster {
                owned: OwnedObject::Absent,
                put: PutObject::Absent,
                is_outdated: false,
            },
            sight: UNOBSERVED,
            extra: 0,
            failing: None,
            permits: Permits::Free,
            shut: case.has_gates() && !case.has_limit(),
            place: None,
            long_in: None,
            asked: Default::default(),
            others_hold: case.special == Special::HeldByOthers,
            former_task_runs: case.special == Special::NameIsTaken,
            budget: case.budget,
            history,
            broken: None,
            tally: Tally::default(),
        }
    }

    /// Returns a hash of everything that future events depend on.
    pub(crate) fn fingerprint(&self) -> u64 {
        // Destructured in full, so that a new field has to be considered here.
        let Self {
            case: _,
            bug: _,
            stored,
            versions,
            presence,
            process,
            now: _,
            cluster,
            sight,
            extra,
            failing,
            permits,
            shut,
            place,
            long_in,
            asked,
            others_hold,
            former_task_runs,
            budget,
            history,
            broken,
            tally: _,
        } = self;
        let Process {
            number,
            leads,
            draining,
            cache,
            asked: known,
            machine,
            at_hand,
            queued,
            is_named,
            is_reopened,
            has_timer,
            is_under_way,
            task,
            is_recording,
            is_ending,
            truth,
        } = process;
        let newest = u64::from(stored.version.0);
        let version = process.object().version;
        let oldest = (versions[0].version).min(cache.version).min(version);
        let age = |version: crate::object::Version| newest.abs_diff(u64::from(version.0));
        let mut hasher = DefaultHasher::new();
        (stored, versions, presence, cluster, sight, extra).hash(&mut hasher);
        (asked, known).hash(&mut hasher);
        place
            .map(|place| (age(place.version), place.granted))
            .hash(&mut hasher);
        (
            failing,
            permits,
            shut,
            long_in,
            others_hold,
            former_task_runs,
        )
            .hash(&mut hasher);
        (budget, history, broken.is_some()).hash(&mut hasher);
        (number, leads, draining, cache, at_hand, queued, is_named).hash(&mut hasher);
        (
            is_reopened,
            has_timer,
            is_under_way,
            is_recording,
            is_ending,
            truth,
        )
            .hash(&mut hasher);
        (task.map(|task| task.work), age(cache.version), age(version)).hash(&mut hasher);
        let oldest = u64::from(oldest.0);
        machine
            .normalized(self.now, oldest, newest)
            .hash(&mut hasher);
        hasher.finish()
    }

    /// Returns whether the state of a record declares the owned object.
    pub(crate) fn declares_owned(&self, recorded: &Recorded) -> bool {
        let state =
            (recorded.at().zip(self.case.life)).and_then(|(record, life)| life.get(record.state));
        state.is_some_and(|state| self.case.owns.contains(&state.name))
    }
}

/// Returns the position of an object that has made more transitions than the loop guard allows, and whose work is to be
/// resumed.
fn gone_round(case: &Case) -> Option<Record> {
    let life = case.life?;
    let home = life.home()?;
    Some(Record {
        state: home,
        left: StateId::UNKNOWN,
        transition: 50,
        jumps: 0,
        jumped: false,
        rounds: okt_core::decide::rounds_limit(life) + 1,
        deleting: false,
        desired: DesiredRecord {
            state: Named::Known(home),
            transition: 0,
            reached: false,
        },
        visit: None,
        request: None,
        revision: 1,
        changed: 1,
        action: Some(ActionRecord {
            run: 1,
            attempt: 1,
            phase: Recording::Pending,
            generation: 1,
            leaving: false,
        }),
        waiting: None,
        returned: 0,
    })
}
