//! The gates of an object at a moment: for its machine, and as text for people.

use jiff::Timestamp;
use okt_core::machine::GateTimes;
use okt_core::record::Record;
use okt_core::{Gate, GateId, GateKind, Gates, Lifecycle, LifecycleGate, StateId};
use okt_wire::status::{Position, RecordedWait};

use crate::author::windows::{WindowState, Windows};

/// A gate of an object at a moment.
#[derive(Clone, PartialEq, Debug)]
enum GateState {
    /// A window, or why it never opens.
    Window(Result<WindowState, String>),
    /// Whether a plan must be approved.
    Approval(bool),
    /// A limit, in a group of objects.
    Limit { group: String, place: PlaceState },
}

/// The place of an object in a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum PlaceState {
    /// It has none by this version.
    #[default]
    None,
    /// It is registered by this version, and may not move in by choice.
    Registered,
    /// It may move in by this version.
    Taken,
}

impl GateState {
    fn is_shut(&self) -> bool {
        match self {
            Self::Window(window) => !window.as_ref().is_ok_and(|it| it.is_open),
            Self::Approval(is_needed) => *is_needed,
            Self::Limit { place, .. } => *place != PlaceState::Taken,
        }
    }

    fn window(&self) -> Option<&WindowState> {
        match self {
            Self::Window(window) => window.as_ref().ok(),
            Self::Approval(_) | Self::Limit { .. } => None,
        }
    }
}

/// The gates of an object, in declaration order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct GateStates {
    states: Vec<GateState>,
    now: Timestamp,
    /// Why the object has got no place, if it has asked for one.
    pub(crate) no_place: Option<String>,
}

impl GateStates {
    /// Returns the gates of an object, from the answers of your code about each.
    pub(crate) fn of<S: Lifecycle>(
        now: Timestamp,
        windows: impl Fn(S::Gate) -> Windows,
        needs_approval: impl Fn(S::Gate) -> bool,
        limit: impl Fn(S::Gate, &Gate<'static>) -> (String, PlaceState),
    ) -> Self {
        let states = S::GRAPH.all_gates().filter_map(|(id, gate)| {
            let named = S::Gate::from_id(id)?;
            Some(match gate.kind {
                GateKind::Window { needs } => GateState::Window(windows(named).at(now, needs)),
                GateKind::Approval => GateState::Approval(needs_approval(named)),
                GateKind::Limit => {
                    let (group, place) = limit(named, gate);
                    GateState::Limit { group, place }
                }
            })
        });
        Self {
            states: states.collect(),
            now,
            no_place: None,
        }
    }

    /// Returns the gates for the machine, for an object in this state.
    pub(crate) fn times<S: Lifecycle>(&self, state: Option<StateId>) -> GateTimes {
        let gates = (0..).map(GateId).zip(&self.states);
        let shut = gates.filter(|(_, state)| state.is_shut());
        let windows = self.states.iter().filter_map(GateState::window);
        let next = windows.filter_map(|window| window.change).min();
        let left = next.map(|change| self.now.duration_until(change));
        let has_place = |(_, state): &(GateId, &GateState)| matches!(state, GateState::Limit { place, .. } if *place != PlaceState::None);
        let mut places = Gates::NONE;
        let mut has_unused_place = false;
        for (id, _) in (0..).map(GateId).zip(&self.states).filter(has_place) {
            places = places.with(id);
            let gate = S::GRAPH.gates.get(id.index());
            let is_inside = |gate: &Gate<'_>| state.is_some_and(|at| gate.states.contains(&at));
            has_unused_place |= !gate.is_some_and(is_inside);
        }
        GateTimes {
            shut: shut.fold(Gates::NONE, |gates, (id, _)| gates.with(id)),
            change: left.map(|left| left.try_into().unwrap_or_default()),
            places,
            has_unused_place,
        }
    }

    /// Returns what opens the gate before which the object waits, as the end of a sentence, or why nothing does.
    pub(crate) fn text<S: Lifecycle>(&self, record: Option<&Record>) -> Result<String, String> {
        let Some(waiting) = record.and_then(|record| record.waiting) else {
            return Ok(String::new());
        };
        let gate = S::GRAPH.gates.get(waiting.gate.index());
        let gate = gate.map_or("", |gate| gate.name);
        match self.states.get(waiting.gate.index()) {
            None => Ok(String::new()),
            Some(GateState::Window(Err(why))) => Err(why.clone()),
            Some(GateState::Window(Ok(window))) => Ok(match window.openings.first() {
                Some(opens) => {
                    let opens = opens.to_zoned(window.zone.clone());
                    format!("opens at {}", opens.strftime("%Y-%m-%dT%H:%M%:z"))
                }
                None => "is shut".to_owned(),
            }),
            Some(GateState::Approval(_)) => Ok(match waiting.plan {
                Some(plan) => format!("approve plan {plan} in `spec.lifecycle.approve`"),
                None => "its plan is known once its resources are applied".to_owned(),
            }),
            Some(GateState::Limit { group, .. }) => Ok(match (&self.no_place, &**group) {
                (Some(why), _) => why.clone(),
                (None, "") => gate.to_owned(),
                (None, group) => format!("{gate}/{group}"),
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
        let state = self.states.get(waiting.gate.index())?;
        let window = state.window();
        let recorded = RecordedWait {
            gate: gate.name.to_owned(),
            to: S::GRAPH.name_of(waiting.to).to_owned(),
            cause: waiting.why.as_str().to_owned(),
            since: Some(now),
            openings: window.map_or_else(Vec::new, |it| it.openings.clone()),
            plan: waiting.plan.map(|plan| plan.to_string()),
            group: match state {
                GateState::Limit { group, .. } => group.clone(),
                GateState::Window(_) | GateState::Approval(_) => String::new(),
            },
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
