//! The object that is being reconciled: its memory, and what its machine does not hold, the decoded objects and the texts.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use okt_core::Lifecycle;
use okt_core::machine::{Object, Setup, Stored};
use okt_core::record::Recorded;
use okt_wire::clock::moment;
use okt_wire::object::{StatusOf, position_of};
use okt_wire::read;
use okt_wire::status::{Position, RecordedRequest};
use serde_json::Value;

use super::gates::{GateStates, PlaceState};
use super::reading;
use crate::author::application::{Application, DeadlineClock, ExtraOf, StateOf, revision_of};
use crate::author::asked::CallGuard;
use crate::author::context::Context;
use crate::author::pass::FinishedRun;
use crate::cache::cached::PlaceOf;
use crate::cache::guarded::Guarded;
use crate::reconcile::memory::{Known, Remembered};
use crate::reconcile::shared::Shared;
use crate::requests::known;
use crate::resources::Owner;

/// An object that is being reconciled: its memory, and what its machine does not hold, the decoded objects and the texts.
pub(super) struct Reconciliation<'a, A: Application> {
    pub(super) shared: &'a Arc<Shared<A>>,
    pub(super) setup: Setup<'static>,
    pub(super) place: &'a PlaceOf<A::Resource>,
    pub(super) known: &'a Known,
    pub(super) memory: &'a mut Remembered,
    pub(super) object: Arc<A::Resource>,
    pub(super) cx: Context<A::Resource>,
    /// The observation as text, for people.
    pub(super) observed: String,
    /// The run of the pass.
    pub(super) run: Option<FinishedRun>,
    /// The status that was rendered last.
    pub(super) rendered: Option<StatusOf<A::Resource>>,
    /// The merge patch that removes what others left in the status.
    pub(super) leftovers: Option<Value>,
    /// The request that may begin.
    pub(super) begun: Option<RecordedRequest>,
    pub(super) extra: Option<ExtraOf<A>>,
    /// A hash of the referred objects that are part of the revision.
    pub(super) referred: Option<u64>,
    /// The gates.
    pub(super) gates: GateStates,
}

impl<'a, A: Application> Reconciliation<'a, A> {
    /// Begins a reconciliation of an object.
    pub(super) fn of(
        shared: &'a Arc<Shared<A>>,
        place: &'a PlaceOf<A::Resource>,
        known: &'a Known,
        memory: &'a mut Remembered,
        object: Arc<A::Resource>,
    ) -> Self {
        let (revision, referred) = revision_with(shared, &object, memory);
        let gates = gates_of(shared, &object);
        let read = read_with(shared, &object, revision, &gates, memory);
        memory.machine.read(&read, moment());
        Self {
            shared,
            setup: shared.setup(),
            place,
            known,
            memory,
            cx: shared.context(Arc::clone(&object)),
            object,
            observed: String::new(),
            run: None,
            rendered: None,
            leftovers: None,
            begun: None,
            extra: None,
            referred,
            gates,
        }
    }

    /// Replaces the object by the answer to a write; returns it for the machine.
    ///
    /// Hashing what handlers act upon costs more than everything else here, and a write of a status does not change it.
    fn replace(&mut self, object: Arc<A::Resource>) -> Object {
        let admission = &self.shared.admission;
        let object = admission.completed(Arc::clone(&object)).unwrap_or(object);
        let (before, now) = (self.object.meta(), object.meta());
        let is_same = (now.generation, &now.labels, &now.annotations)
            == (before.generation, &before.labels, &before.annotations);
        let revision = if is_same {
            self.read().revision
        } else {
            let (revision, referred) = revision_with(self.shared, &object, self.memory);
            self.referred = referred;
            revision
        };
        self.cx = self.shared.context(Arc::clone(&object));
        self.object = object;
        self.rendered = None;
        self.gates = gates_of(self.shared, &self.object);
        read_with(
            self.shared,
            &self.object,
            revision,
            &self.gates,
            self.memory,
        )
    }

    /// Takes the answer to a write to hand; returns it for the machine.
    pub(super) fn became(&mut self, written: Guarded<A::Resource>) -> Stored {
        let version = read::version(written.meta());
        // If the answer does not decode, the next event reports it.
        let object = written.into_inner().map(|object| {
            self.memory.answer = Some(Arc::clone(&object) as _);
            self.replace(object)
        });
        Stored { version, object }
    }

    /// Returns the caller of the application's code.
    pub(super) fn asker(&self) -> CallGuard<'a, A::Resource> {
        CallGuard {
            questions: &self.shared.questions,
            place: self.place,
            doubtful: self.memory.is_silent(),
        }
    }

    /// Returns the object at hand, as the machine has it.
    pub(super) fn read(&self) -> &Object {
        self.memory.machine.object()
    }

    pub(super) fn recorded(&self) -> &Recorded {
        &self.read().recorded
    }

    /// Returns the state on record, if this graph has it.
    pub(super) fn state(&self) -> Option<StateOf<A>> {
        StateOf::<A>::from_id(self.recorded().at()?.state)
    }

    pub(super) fn position(&self) -> Option<&Position<StateOf<A>>> {
        position_of(&*self.object)
    }

    pub(super) fn uid(&self) -> &str {
        self.object.meta().uid.as_deref().unwrap_or_default()
    }
}

/// Returns the revision of an object, and the hash of the referred objects that are part of it.
fn revision_with<A: Application>(
    shared: &Shared<A>,
    object: &A::Resource,
    memory: &mut Remembered,
) -> (u64, Option<u64>) {
    let referred = shared.cluster.referred_revision(Owner::of(object));
    let revision = revision_of::<A>(object).counted(object, referred, &mut memory.revision);
    let recorded = position_of(object).and_then(read::recorded_referred);
    (revision, referred.counted(recorded))
}

/// Returns whether the deadlines of a state count the wall time.
pub(super) fn counts_wall_time<A: Application>(shared: &Shared<A>, state: StateOf<A>) -> bool {
    shared.application.deadlines_count(state) == DeadlineClock::Wall
}

/// Asks the application about the gates of an object.
fn gates_of<A: Application>(shared: &Shared<A>, object: &A::Resource) -> GateStates {
    let application = &shared.application;
    let uid = object.meta().uid.as_deref().unwrap_or_default();
    let version = object.meta().resource_version.as_deref();
    GateStates::of::<StateOf<A>>(
        shared.clock.now(),
        |gate| application.windows(object, gate),
        |gate| application.needs_approval(object, gate),
        |gate, declared| {
            let place = shared
                .limits
                .as_ref()
                .and_then(|it| it.place(declared, uid));
            let place = place.filter(|place| Some(&*place.version) == version);
            let place = match place.map(|place| place.registered) {
                None => PlaceState::None,
                Some(true) => PlaceState::Registered,
                Some(false) => PlaceState::Taken,
            };
            (application.limit(object, gate).group, place)
        },
    )
}

fn read_with<A: Application>(
    shared: &Shared<A>,
    object: &A::Resource,
    revision: u64,
    gates: &GateStates,
    memory: &mut Remembered,
) -> Object {
    let position = position_of(object);
    let state = position.and_then(|it| it.state.known());
    // The CRD has the state on record, and this operator does not.
    let is_newer = |position: &Position<StateOf<A>>| {
        state.is_none() && shared.readiness.borrow().knows(position.state.as_str())
    };
    let acting = position.filter(|_| !state.is_some_and(|it| counts_wall_time(shared, it)));
    let begun = memory.acts_since(acting, shared.clock.now());
    let read = reading::read(object, revision, &mut memory.parts, begun, &shared.clock);
    let gates = gates.times::<StateOf<A>>(read.recorded.at().map(|at| at.state));
    Object {
        newer: position.is_some_and(is_newer),
        requests: known(
            &shared.requests,
            object,
            &read.recorded,
            gates.shut,
            &shared.clock,
        ),
        gates,
        owns_any: position.is_none() && shared.cluster.owns_anything(object.meta()),
        observe_every: state.map_or(Duration::ZERO, |state| {
            shared.application.observe_every(state)
        }),
        ..read
    }
}
