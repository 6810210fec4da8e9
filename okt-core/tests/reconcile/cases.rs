//! This file lists the cases: the graphs of an application, and how often something unexpected happens.

use std::sync::LazyLock;

use okt_core::Graph;

use crate::build;
use crate::machine::Graphs;

/// An application and its surroundings.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) life: Option<&'static Graph<'static>>,
    pub(crate) pass: Option<&'static Graph<'static>>,
    /// The states that declare the owned object.
    pub(crate) owns: &'static [&'static str],
    pub(crate) budget: Budget,
    pub(crate) special: Special,
    /// It is small enough for all of its states to be explored.
    pub(crate) is_small: bool,
}

/// The special feature of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
}

impl Budget {
    /// Nothing unexpected happens.
    pub(crate) const NONE: Self = Self {
        user: 0,
        crashes: 0,
        faults: 0,
        steps: 0,
        cluster: 0,
        lead: 0,
        answers: 0,
        sights: 0,
        drains: 0,
        ticks: 0,
        permits: 0,
    };

    /// The budget of random runs.
    pub(crate) const RICH: Self = Self {
        user: 4,
        crashes: 2,
        faults: 2,
        steps: 2,
        cluster: 2,
        lead: 2,
        answers: 3,
        sights: 3,
        drains: 1,
        ticks: 8,
        permits: 2,
    };

    /// Parses a budget (e.g. `"user 2, crashes 1"`).
    fn of(words: &str) -> Self {
        let mut budget = Self::NONE;
        for word in words.split(", ") {
            let (name, times) = word.split_once(' ').expect("a name and a number");
            let field = match name {
                "user" => &mut budget.user,
                "crashes" => &mut budget.crashes,
                "faults" => &mut budget.faults,
                "steps" => &mut budget.steps,
                "cluster" => &mut budget.cluster,
                "lead" => &mut budget.lead,
                "answers" => &mut budget.answers,
                "sights" => &mut budget.sights,
                "drains" => &mut budget.drains,
                "ticks" => &mut budget.ticks,
                "permits" => &mut budget.permits,
                other => panic!("no budget: {other}"),
            };
            *field = times.parse().expect("a number");
        }
        budget
    }
}

/// The graphs that cases are made of.
struct Shapes {
    /// States with work, a visit, a leaf with work.
    visits: &'static Graph<'static>,
    /// Idle states, a holding state, a failure with a trigger.
    idle: &'static Graph<'static>,
    /// As few states as a lifecycle can have.
    tiny: &'static Graph<'static>,
    /// A leaf with work, after one state.
    leafy: &'static Graph<'static>,
    /// The default desired state is idle.
    shelf: &'static Graph<'static>,
    /// After a failure the object rests for a time.
    timed: &'static Graph<'static>,
    /// A pass with a path for deletion.
    leaving: &'static Graph<'static>,
    /// A pass without one.
    plain: &'static Graph<'static>,
}

impl Shapes {
    fn new() -> Self {
        let graph = |lines: &[&'static str]| -> &'static Graph<'static> {
            Box::leak(Box::new(build::graph(lines)))
        };
        Self {
            visits: graph(&[
                "entry Making >Up",
                "rest Up >Trip >Ending",
                "visit no_transit Trip >Up",
                "Ending >Gone",
                "leaf Gone",
            ]),
            idle: graph(&[
                "entry rest idle New >Up",
                "rest Up !Broken:error2 >Off >Gone",
                "rest hold Broken >Up >Gone",
                "rest idle Off >Up >Gone",
                "leaf idle Gone",
            ]),
            tiny: graph(&["entry Making >Up", "rest Up >Gone", "leaf idle Gone"]),
            leafy: graph(&["entry rest Up >Gone", "leaf Gone"]),
            shelf: graph(&["entry Making >Off", "rest idle Off >Gone", "leaf idle Gone"]),
            timed: graph(&[
                "entry Making >Up",
                "rest Up !Cooling:error1 >Gone",
                "rest hold idle Cooling !Up:after60 >Up >Gone",
                "leaf idle Gone",
            ]),
            leaving: graph(&[
                "entry Check !Finalize:delete >Apply",
                "Apply >End",
                "Finalize >End",
                "leaf idle End",
            ]),
            plain: graph(&["entry Check >Apply", "Apply >End", "leaf idle End"]),
        }
    }
}

/// All cases.
pub(crate) static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let shapes = Shapes::new();
    let lists = [
        with_a_life(&shapes),
        without_a_life(&shapes),
        special(&shapes),
        small(&shapes),
    ];
    lists.into_iter().flatten().collect()
});

fn with_a_life(shapes: &Shapes) -> Vec<Case> {
    let Shapes {
        visits,
        idle,
        leafy,
        shelf,
        timed,
        leaving,
        plain,
        ..
    } = shapes;
    let case = |name, life, budget| Case::of(name, budget).life(life);
    vec![
        case(
            "life alone",
            visits,
            "user 2, ticks 1, crashes 1, faults 1, answers 1",
        ),
        case(
            "life, owned",
            visits,
            "user 1, ticks 1, crashes 1, faults 1, cluster 1",
        )
        .owns(&["Up"]),
        case(
            "life, pass with a way out, owned",
            visits,
            "user 1, ticks 1, crashes 1, steps 1",
        )
        .pass(leaving)
        .owns(&["Up"]),
        case(
            "life, pass with a way out, faults",
            visits,
            "user 1, ticks 1, faults 1, steps 1",
        )
        .pass(leaving)
        .owns(&["Up"]),
        case(
            "life, plain pass, owned",
            visits,
            "user 2, ticks 1, steps 1",
        )
        .pass(plain)
        .owns(&["Up", "Trip"]),
        case(
            "life, pass, lead and drain",
            visits,
            "user 1, ticks 1, lead 2, drains 1",
        )
        .pass(leaving)
        .owns(&["Up"]),
        case(
            "idle states, owned",
            idle,
            "user 2, ticks 1, crashes 1, answers 1",
        )
        .owns(&["Up", "Off"]),
        case(
            "idle states, pass, owned, sights",
            idle,
            "user 1, ticks 1, sights 1, steps 1",
        )
        .pass(leaving)
        .owns(&["Up", "Off"]),
        case("idle states, failures", idle, "user 2, ticks 2, answers 2")
            .pass(leaving)
            .owns(&["Up"]),
        case(
            "idle states, sights and crashes",
            idle,
            "user 1, ticks 1, crashes 1, sights 2",
        )
        .owns(&["Up", "Off"]),
        case(
            "idle states, lead and faults",
            idle,
            "user 1, ticks 1, lead 1, faults 1",
        )
        .pass(leaving)
        .owns(&["Off"]),
        case("idle states, sights", idle, "user 1, sights 1"),
        case("an idle home, owned", shelf, "user 1, ticks 1, faults 1").owns(&["Off"]),
        case("deadlines", timed, "user 1, ticks 3, answers 2").owns(&["Up"]),
        case("retries", leafy, "ticks 3, answers 3, drains 1"),
        case("a failure and another spec", leafy, "user 1, answers 1"),
    ]
}

fn without_a_life(shapes: &Shapes) -> Vec<Case> {
    let Shapes { leaving, plain, .. } = shapes;
    let everything = "user 2, ticks 2, crashes 1, faults 1, steps 2, lead 1, drains 1";
    let case = |name, pass, budget| Case::of(name, budget).pass(pass);
    vec![
        case("pass alone with a way out", leaving, everything),
        case("plain pass alone", plain, everything),
        case(
            "pass alone with a way out, cluster",
            leaving,
            "user 2, ticks 3, steps 1, cluster 2",
        ),
        case(
            "pass alone, writes fail for ever",
            leaving,
            "user 1, ticks 3, faults 1, steps 1",
        )
        .special(Special::FailsForEver),
    ]
}

fn special(shapes: &Shapes) -> Vec<Case> {
    let Shapes {
        visits,
        tiny,
        leafy,
        timed,
        leaving,
        plain,
        ..
    } = shapes;
    let case = |name, life, budget| Case::of(name, budget).life(life);
    vec![
        case(
            "life, pass, writes fail for ever",
            visits,
            "user 1, ticks 3, faults 1",
        )
        .pass(leaving)
        .owns(&["Up"])
        .special(Special::FailsForEver),
        case("a webhook", tiny, "user 1, ticks 2, faults 2")
            .owns(&["Up"])
            .special(Special::Webhook),
        case(
            "other finalizers",
            tiny,
            "user 2, ticks 1, crashes 1, faults 1",
        )
        .pass(leaving)
        .special(Special::HeldByOthers),
        case(
            "a former object of the same name",
            tiny,
            "user 2, ticks 1, drains 1",
        )
        .special(Special::NameIsTaken),
        case("a leaf with work, pass, drain", leafy, "user 1, drains 1").pass(leaving),
        case(
            "no permit for an action",
            tiny,
            "user 1, ticks 1, crashes 1, drains 1, permits 2",
        )
        .owns(&["Up"]),
        case("the loop guard", timed, "ticks 1, sights 1, drains 1").special(Special::HasGoneRound),
        case("undecodable", tiny, "user 3, faults 1, drains 1")
            .pass(plain)
            .special(Special::Garbled),
        case("a newer operator", leafy, "user 1, lead 2").special(Special::NewerOperator),
        case("a newer operator that goes", leafy, "lead 2, drains 1")
            .special(Special::NewerOperator),
        case(
            "fields of the application",
            tiny,
            "user 1, ticks 1, sights 2, faults 1",
        )
        .special(Special::Extra),
        case(
            "conditions of an earlier controller",
            tiny,
            "user 1, crashes 1, faults 2",
        )
        .special(Special::Inherited),
        case(
            "leftovers of others",
            tiny,
            "user 1, ticks 2, sights 2, faults 1",
        )
        .special(Special::Leftovers),
        case(
            "leftovers of others and leaders",
            tiny,
            "ticks 1, sights 1, lead 2",
        )
        .special(Special::Leftovers),
    ]
}

fn small(shapes: &Shapes) -> Vec<Case> {
    let Shapes { tiny, leaving, .. } = shapes;
    let case = |name, budget| {
        let case = Case::of(name, budget)
            .life(tiny)
            .pass(leaving)
            .owns(&["Up"]);
        Case {
            is_small: true,
            ..case
        }
    };
    vec![
        case("small: crash", "user 1, crashes 1"),
        case("small: fault", "user 1, ticks 1, faults 1"),
        case("small: pass", "user 1, ticks 1, steps 1"),
        case("small: resources", "user 1, ticks 1, cluster 1"),
        case("small: lead", "user 1, lead 1"),
        case("small: drain", "user 1, drains 1"),
        case("small: answers", "user 1, ticks 1, answers 1"),
        case("small: writes fail for ever", "user 1, faults 1").special(Special::FailsForEver),
        case("small: two requests", "user 2"),
        case(
            "small: pass and crash",
            "user 1, ticks 1, steps 1, crashes 1",
        ),
    ]
}

impl Case {
    pub(crate) fn of(name: &'static str, budget: &str) -> Self {
        Self {
            name,
            life: None,
            pass: None,
            owns: &[],
            budget: Budget::of(budget),
            special: Special::Nothing,
            is_small: false,
        }
    }

    pub(crate) fn life(self, graph: &'static Graph<'static>) -> Self {
        let life = Some(graph);
        Self { life, ..self }
    }

    fn pass(self, graph: &'static Graph<'static>) -> Self {
        let pass = Some(graph);
        Self { pass, ..self }
    }

    fn owns(self, owns: &'static [&'static str]) -> Self {
        Self { owns, ..self }
    }

    fn special(self, special: Special) -> Self {
        Self { special, ..self }
    }

    pub(crate) fn graphs(&self) -> Graphs<'static> {
        Graphs {
            life: self.life,
            pass: self.pass,
        }
    }
}
