//! The gates of an object at a moment: for its machine, and as text for people.

use jiff::Timestamp;
use okt_core::machine::GateTimes;
use okt_core::record::{Record, WaitRecord};
use okt_core::{GateId, GateKind, Gates, Lifecycle, LifecycleGate};
use okt_wire::status::{Position, RecordedWait};

use crate::author::application::{Application, StateOf};
use crate::author::windows::WindowState;

/// The gates of an object, in declaration order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct GateStates {
    states: Vec<Result<WindowState, String>>,
    now: Timestamp,
}

impl GateStates {
    /// Asks the application about the gates of an object.
    pub(crate) fn of<A: Application>(
        application: &A,
        object: &A::Resource,
        now: Timestamp,
    ) -> Self {
        let gates = StateOf::<A>::GRAPH.all_gates();
        let states = gates.filter_map(|(id, gate)| {
            let GateKind::Window { needs } = gate.kind;
            let named = <StateOf<A> as Lifecycle>::Gate::from_id(id)?;
            Some(application.windows(object, named).at(now, needs))
        });
        Self {
            states: states.collect(),
            now,
        }
    }

    /// Returns the gates for the machine.
    pub(crate) fn times(&self) -> GateTimes {
        let shut = |state: &Result<WindowState, String>| !state.as_ref().is_ok_and(|it| it.is_open);
        let shut = (0..)
            .map(GateId)
            .zip(&self.states)
            .filter(|(_, state)| shut(state));
        let changes = self
            .states
            .iter()
            .flatten()
            .filter_map(|state| state.change);
        let next = changes.min().map(|change| self.now.duration_until(change));
        GateTimes {
            shut: shut.fold(Gates::NONE, |gates, (id, _)| gates.with(id)),
            change: next.map(|left| left.try_into().unwrap_or_default()),
        }
    }

    fn get(&self, waiting: WaitRecord) -> Option<&Result<WindowState, String>> {
        self.states.get(waiting.gate.index())
    }

    /// Returns what a gate waits for, as text.
    pub(crate) fn text(&self, record: Option<&Record>) -> Result<String, String> {
        let state = record.and_then(|record| self.get(record.waiting?));
        match state {
            None => Ok(String::new()),
            Some(Err(why)) => Err(why.clone()),
            Some(Ok(state)) => Ok(match state.openings.first() {
                Some(opens) => {
                    let opens = opens.to_zoned(state.zone.clone());
                    format!("opens at {}", opens.strftime("%Y-%m-%dT%H:%M%:z"))
                }
                None => "is shut".to_owned(),
            }),
        }
    }

    /// Returns the wait as it is recorded; a wait before the same gate for the same move began with the stored one.
    pub(crate) fn recorded<S: Lifecycle>(
        &self,
        record: &Record,
        old: Option<&Position<S>>,
        now: Timestamp,
    ) -> Option<RecordedWait> {
        let waiting = record.waiting?;
        let gate = S::GRAPH.gates.get(waiting.gate.index())?;
        let openings = self.get(waiting)?.as_ref();
        let recorded = RecordedWait {
            gate: gate.name.to_owned(),
            to: S::GRAPH.name_of(waiting.to).to_owned(),
            cause: waiting.why.as_str().to_owned(),
            since: Some(now),
            openings: openings.map_or_else(|_| Vec::new(), |it| it.openings.clone()),
        };
        let before = old.and_then(|old| old.waiting.as_ref());
        let is_same = |it: &&RecordedWait| (&it.gate, &it.to) == (&recorded.gate, &recorded.to);
        let since = before.filter(is_same).and_then(|it| it.since);
        Some(RecordedWait {
            since: since.or(recorded.since),
            ..recorded
        })
    }
}
