//! The cases: the graphs of an application, and how often something unexpected happens.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use okt_core::{GateKind, Graph};
use serde::Deserialize;
use serde_json::Value;

use crate::build;
use crate::machine::Graphs;

/// The graphs that cases are made of: lifecycles with states that have work and a visit, with idle states and a failure,
/// with as few states as can be, with a leaf with work after one state, with an idle home, with a rest for a time after a
/// failure, with an edge for a part of the spec, with requests, with a gate, and with a limit; then a pass with a path for deletion, and one without.
const GRAPHS: &str = "
    visits: entry Making >Up | rest Up >Trip >Ending | visit no_transit Trip >Up | Ending >Gone | leaf Gone
    idle: entry rest idle New >Up | rest Up !Broken:error2 >Off >Gone | rest hold Broken >Up >Gone | rest idle Off >Up >Gone | leaf idle Gone
    tiny: entry Making >Up | rest Up >Gone | leaf idle Gone
    leafy: entry rest Up >Gone | leaf Gone
    shelf: entry Making >Off | rest idle Off >Gone | leaf idle Gone
    timed: entry Making >Up | rest Up !Cooling:error1 >Gone | rest hold idle Cooling !Up:after60 >Up >Gone | leaf idle Gone
    swapping: entry Making >Up | rest Up !Swapping:change0 >Gone | Swapping >Up | leaf idle Gone
    serving: entry Making >Up | rest Up >Trip >Gone | visit args Trip !Up:abort !Bad:error1 >Up | rest hold idle Bad >Trip >Up >Gone | leaf idle Gone
    gated: entry Making >Up | rest Up !Swapping:change >Trip >Gone | Swapping >Up | visit Trip >Up | leaf idle Gone | window night Swapping Trip
    limited: entry Making >Up | rest Up !Swapping:change !Broken:error2 >Trip >Gone | Swapping !Broken:after60 >Up | visit args Trip !Up:abort !Broken:after60 >Up | rest hold Broken >Trip >Up >Gone | leaf idle Gone | limit rollout Swapping Trip Broken passes-triggers
    leaving: entry Check !Finalize:delete >Apply | Apply >End | Finalize >End | leaf idle End
    plain: entry Check >Apply | Apply >End | leaf idle End
";

/// All cases: the name; the graphs, the states that declare the owned object, and what is special; the budget.
const LIST: &str = "
    life alone; visits; user 2, ticks 1, crashes 1, faults 1, answers 1
    life, owned; visits, owns Up; user 1, ticks 1, crashes 1, faults 1, cluster 1
    life, pass with a way out, owned; visits, leaving, owns Up; user 1, ticks 1, crashes 1, steps 1
    life, pass with a way out, faults; visits, leaving, owns Up; user 1, ticks 1, faults 1, steps 1
    life, plain pass, owned; visits, plain, owns Up Trip; user 2, ticks 1, steps 1
    life, pass, lead and drain; visits, leaving, owns Up; user 1, ticks 1, lead 2, drains 1
    idle states, owned; idle, owns Up Off; user 2, ticks 1, crashes 1, answers 1
    idle states, pass, owned, sights; idle, leaving, owns Up Off; user 1, ticks 1, sights 1, steps 1
    idle states, failures; idle, leaving, owns Up; user 2, ticks 2, answers 2
    idle states, sights and crashes; idle, owns Up Off; user 1, ticks 1, crashes 1, sights 2
    idle states, lead and faults; idle, leaving, owns Off; user 1, ticks 1, lead 1, faults 1
    idle states, sights; idle; user 1, sights 1
    an idle home, owned; shelf, owns Off; user 1, ticks 1, faults 1
    deadlines; timed, owns Up; user 1, ticks 3, answers 2
    parts of the spec; swapping, owns Up; user 3, ticks 1, crashes 1
    retries; leafy; ticks 3, answers 3, drains 1
    a failure and another spec; leafy; user 1, answers 1
    pass alone with a way out; leaving; user 2, ticks 2, crashes 1, faults 1, steps 2, lead 1, drains 1
    plain pass alone; plain; user 2, ticks 2, crashes 1, faults 1, steps 2, lead 1, drains 1
    pass alone with a way out, cluster; leaving; user 2, ticks 3, steps 1, cluster 2
    pass alone, writes fail for ever; leaving, FailsForEver; user 1, ticks 3, faults 1, steps 1
    life, pass, writes fail for ever; visits, leaving, owns Up, FailsForEver; user 1, ticks 3, faults 1
    a webhook; tiny, owns Up, Webhook; user 1, ticks 2, faults 2
    other finalizers; tiny, leaving, HeldByOthers; user 2, ticks 1, crashes 1, faults 1
    a former object of the same name; tiny, NameIsTaken; user 2, ticks 1, drains 1
    a leaf with work, pass, drain; leafy, leaving; user 1, drains 1
    no permit for an action; tiny, owns Up; user 1, ticks 1, crashes 1, drains 1, permits 2
    the loop guard; timed, HasGoneRound; ticks 1, sights 1, drains 1
    undecodable; tiny, plain, Garbled; user 3, faults 1, drains 1
    a newer operator; leafy, NewerOperator; user 1, lead 2
    a newer operator that goes; leafy, NewerOperator; lead 2, drains 1
    fields of the application; tiny, Extra; user 1, ticks 1, sights 2, faults 1
    conditions of an earlier controller; tiny, Inherited; user 1, crashes 1, faults 2
    leftovers of others; tiny, Leftovers; user 1, ticks 2, sights 2, faults 1
    leftovers of others and leaders; tiny, Leftovers; ticks 1, sights 1, lead 2
    handlers that record; visits, owns Up; user 1, crashes 1, faults 1, records 2
    handlers that record, lead and drain; visits; user 1, ticks 1, lead 2, drains 1, records 1
    handlers that record, a webhook; tiny, Webhook; user 1, ticks 1, faults 2, records 1
    requests; serving; user 1, ticks 1, crashes 1, faults 1, answers 1, asks 3
    requests, lead and drain; serving, owns Up; user 1, crashes 1, lead 2, drains 1, asks 2
    requests and a way out; serving, leaving; user 2, ticks 1, faults 2, asks 2
    requests, sights; serving; user 1, faults 1, sights 1, answers 1, asks 2
    requests of a settled object; serving, HasGoneRound; crashes 1, faults 1, answers 1, asks 3
    gates; gated, owns Up; user 2, ticks 1, crashes 1, answers 1, turns 2
    gates, faults and answers; gated, leaving; user 1, ticks 1, faults 1, answers 2, turns 2
    gates, lead and drain; gated; user 1, ticks 1, lead 2, drains 1, turns 2
    gates, sights; gated; user 1, sights 1, crashes 1, turns 1
    gates, releases; gated, owns Up Swapping; user 1, ticks 1, crashes 1, turns 1, releases 1
    limits; limited, owns Up; user 2, ticks 1, crashes 1, faults 1, turns 2
    limits, answers; limited; user 2, ticks 1, answers 2, turns 2
    limits, lead and drain; limited; user 1, ticks 1, crashes 1, lead 2, drains 1, turns 2
    limits, requests; limited; user 1, ticks 1, crashes 1, faults 1, asks 3, turns 1
    limits, sights; limited; user 1, sights 1, crashes 1, turns 1
    small: limits, requests; limited; asks 2
    small: limits; limited; user 1, crashes 1, turns 2
    small: gates; gated; user 1, ticks 1, turns 2
    small: requests; serving; crashes 1, asks 2
    small: parts of the spec; swapping; user 2, crashes 1
    small: records; tiny, owns Up; crashes 1, faults 1, records 1
    small: crash; tiny, leaving, owns Up; user 1, crashes 1
    small: fault; tiny, leaving, owns Up; user 1, ticks 1, faults 1
    small: pass; tiny, leaving, owns Up; user 1, ticks 1, steps 1
    small: resources; tiny, leaving, owns Up; user 1, ticks 1, cluster 1
    small: lead; tiny, leaving, owns Up; user 1, lead 1
    small: drain; tiny, leaving, owns Up; user 1, drains 1
    small: answers; tiny, leaving, owns Up; user 1, ticks 1, answers 1
    small: writes fail for ever; tiny, leaving, owns Up, FailsForEver; user 1, faults 1
    small: two requests; tiny, leaving, owns Up; user 2
    small: pass and crash; tiny, leaving, owns Up; user 1, ticks 1, steps 1, crashes 1
";

/// All cases.
pub(crate) static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let rows = GRAPHS.lines().filter_map(|it| it.trim().split_once(": "));
    let shapes = rows.map(|(name, states)| {
        let graph = build::graph(&states.split(" | ").collect::<Vec<_>>());
        (name, &*Box::leak(Box::new(graph)))
    });
    let by_name: BTreeMap<_, _> = shapes.collect();
    let cases = LIST.lines().filter(|it| !it.is_empty());
    cases.map(|row| Case::of(row.trim(), &by_name)).collect()
});

/// An application and its surroundings.
#[derive(Default)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) life: Option<&'static Graph<'static>>,
    pub(crate) pass: Option<&'static Graph<'static>>,
    /// The states that declare the owned object.
    pub(crate) owns: Vec<&'static str>,
    pub(crate) budget: Budget,
    pub(crate) special: Special,
}

impl Case {
    fn of(row: &'static str, shapes: &BTreeMap<&str, &'static Graph<'static>>) -> Self {
        let [name, words, budget] = row.split("; ").collect::<Vec<_>>()[..] else {
            panic!("no case: {row}");
        };
        let mut case = Self::default();
        (case.name, case.budget) = (name, Budget::of(budget));
        for word in words.split(", ") {
            let shape = shapes.get(word).copied();
            match (word, word.strip_prefix("owns ")) {
                ("leaving" | "plain", _) => case.pass = shape,
                _ if shape.is_some() => case.life = shape,
                (_, Some(states)) => case.owns = states.split(' ').collect(),
                (_, None) => case.special = serde_json::from_value(word.into()).expect(word),
            }
        }
        case
    }

    /// Returns whether all of its states can be explored.
    pub(crate) fn is_small(&self) -> bool {
        self.name.starts_with("small: ")
    }

    pub(crate) fn has_limit(&self) -> bool {
        let gates = self.life.map_or(&[][..], |life| life.gates);
        gates.iter().any(|gate| gate.kind == GateKind::Limit)
    }

    pub(crate) fn has_gates(&self) -> bool {
        self.life.is_some_and(|life| !life.gates.is_empty())
    }

    pub(crate) fn graphs(&self) -> Graphs<'static> {
        let Self { life, pass, .. } = *self;
        Graphs { life, pass }
    }
}

/// The special feature of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub(crate) enum Special {
    #[default]
    Nothing,
    /// Writes may fail for ever.
    FailsForEver,
    /// A webhook may undo writes of the status.
    Webhook,
    /// Other controllers have finalizers on it.
    HeldByOthers,
    /// A task for a former object of the same name still runs.
    NameIsTaken,
    /// It has made so many transitions that the loop guard delays the next one.
    HasGoneRound,
    /// It may become undecodable.
    Garbled,
    /// A newer operator may take it over.
    NewerOperator,
    /// The application writes status fields of its own.
    Extra,
    /// It has conditions of an earlier controller.
    Inherited,
    /// Others write into its status, and no apply removes that.
    Leftovers,
}

/// The number of unexpected events that can still happen, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Budget {
    /// Changes by the user.
    pub(crate) user: u8,
    pub(crate) crashes: u8,
    /// Writes that fail.
    pub(crate) faults: u8,
    /// Steps of the pass that do not simply succeed.
    pub(crate) steps: u8,
    /// Resources that cannot be applied or cleared.
    pub(crate) cluster: u8,
    /// Losses of leadership, and acts of other leaders.
    pub(crate) lead: u8,
    /// Answers of actions other than success.
    pub(crate) answers: u8,
    /// Changes of the observation of the application.
    pub(crate) sights: u8,
    pub(crate) drains: u8,
    /// Waits that end.
    pub(crate) ticks: u8,
    /// Actions for which there is no permit under the limit.
    pub(crate) permits: u8,
    /// What handlers want recorded while they run.
    pub(crate) records: u8,
    /// Requests that are made or deleted.
    pub(crate) asks: u8,
    /// Gates that open or shut.
    pub(crate) turns: u8,
    /// Releases that declare other resources.
    pub(crate) releases: u8,
}

impl Budget {
    /// The budget of random runs.
    pub(crate) fn rich() -> Self {
        let most = "user 4, answers 3, sights 3, ticks 8, drains 1";
        let two = "crashes 2, faults 2, steps 2, cluster 2, lead 2, permits 2, records 2, asks 4, turns 3, releases 2";
        Self::of(&format!("{most}, {two}"))
    }

    /// Parses a budget (e.g. `"user 2, crashes 1"`).
    fn of(words: &str) -> Self {
        let parts = words.split(", ").map(|part| part.split_once(' '));
        let fields: Value = parts
            .map(|part| part.expect("a name and a number"))
            .map(|(name, times)| (name, times.parse::<u8>().expect("a number")))
            .collect();
        serde_json::from_value(fields).expect("a budget")
    }
}
