//! The differences of two graphs, and what stored objects lose by them.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::draw::{Edge, EdgeKind, roles};
use crate::gate::Gate;
use crate::graph::{Graph, Kind, Mark, State, StateId};
use crate::routes::Tables;

/// One difference of two graphs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Whether something is new, gone or other than before.
    pub kind: ChangeKind,
    /// What it is about (e.g. ``state `Backup` ``).
    pub subject: String,
    /// What stored objects or specs lose by it; none if nothing.
    pub risk: Option<&'static str>,
}

/// The kind of a [`Change`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// Only the old graph has it.
    Removed,
    /// Both graphs have it, with a difference.
    Changed,
    /// Only the new graph has it.
    Added,
}

impl ChangeKind {
    /// Returns the sign of a line about such a change.
    pub fn sign(self) -> char {
        match self {
            Self::Removed => '-',
            Self::Changed => '~',
            Self::Added => '+',
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ChangeKind::Removed => "removed",
            ChangeKind::Changed => "changed",
            ChangeKind::Added => "added",
        };
        write!(f, "{kind} {}", self.subject)
    }
}

/// Returns what differs between an old graph and a new one: what is gone first, then what is other, then what is new.
///
/// A state is the same in both if the new one has its name, or has it as a former name (`#[was]`). Doc comments,
/// messages and the names in your code are not compared: no object stores them.
///
/// ```
/// # use okt_core::{Graph, Kind, Mark, Marks, State, StateId, evolution::changes, routes::Routes};
/// # const fn state(name: &'static str, marks: Marks, children: &'static [StateId]) -> State<'static> {
/// #     State { name, variant: name, doc: "", was: &[], marks, triggers: &[], children, conditions: &[], no_routes: &[] }
/// # }
/// # let (entry, leaf) = (Marks(0).with(Mark::Entry), Marks(0).with(Mark::Leaf));
/// let old = [state("Start", entry, &[StateId(1)]), state("Gone", leaf, &[])];
/// let new = [state("Start", entry, &[StateId(1)]), state("End", leaf, &[])];
/// # let graph = |states| Graph { name: "App", doc: "", kind: Kind::Lifecycle, parts: &[], gates: &[], states, routes: Routes::NONE };
/// let changes = changes(&graph(&old), &graph(&new));
/// assert_eq!(changes[0].to_string(), "removed state `Gone`");
/// assert_eq!(changes[0].risk, Some("an object that is stored in it has no place in the graph"));
/// ```
pub fn changes(old: &Graph<'_>, new: &Graph<'_>) -> Vec<Change> {
    let (before, after) = (Tables::of(old), Tables::of(new));
    let mut found = Changes {
        old: Graph {
            routes: before.routes(),
            ..*old
        },
        new: Graph {
            routes: after.routes(),
            ..*new
        },
        found: Vec::new(),
    };
    found.kind();
    found.states();
    found.edges();
    found.gates();
    found.conditions();
    found.desired_states();
    found.routes();
    let mut changes = found.found;
    // Of one kind they stay in declaration order.
    changes.sort_by_key(|change| change.kind);
    changes
}

struct Changes<'g> {
    old: Graph<'g>,
    new: Graph<'g>,
    found: Vec<Change>,
}

impl<'g> Changes<'g> {
    fn report(&mut self, kind: ChangeKind, subject: String, risk: Option<&'static str>) {
        self.found.push(Change {
            kind,
            subject,
            risk,
        });
    }

    /// Returns the states that both graphs have, each in the old one and in the new one.
    fn kept(&self) -> Vec<(StateId, StateId)> {
        let old = self.old.iter();
        old.filter_map(|(id, state)| Some((id, self.new.named(state.name)?)))
            .collect()
    }

    fn new_state(&self, id: StateId) -> &'g State<'g> {
        &self.new.states[id.index()]
    }

    /// Returns the present name of a state of the old graph; its old name if it is gone.
    fn present(&self, id: StateId) -> &'g str {
        let name = self.old.name_of(id);
        let new = self.new.named(name);
        new.map_or(name, |id| self.new.name_of(id))
    }

    fn kind(&mut self) {
        if self.old.kind != self.new.kind {
            let word = |kind| match kind {
                Kind::Lifecycle => "a lifecycle",
                Kind::Pass => "a pass",
            };
            let (old, new) = (word(self.old.kind), word(self.new.kind));
            self.report(
                ChangeKind::Changed,
                format!("graph: {new}, was {old}"),
                Some("a pass stores no state, so no object keeps its state"),
            );
        }
    }

    fn states(&mut self) {
        const LOST: &str = "an object that is stored in it has no place in the graph";
        let (old, new) = (self.old, self.new);
        for (_, state) in old.iter() {
            let name = state.name;
            let Some(to) = new.named(name) else {
                self.report(ChangeKind::Removed, format!("state `{name}`"), Some(LOST));
                continue;
            };
            let to = self.new_state(to);
            if to.name != name {
                let subject = format!("name of the state `{}`, was `{name}`", to.name);
                self.report(ChangeKind::Changed, subject, None);
            }
            let (before, after) = (roles(state).join(", "), roles(to).join(", "));
            if before != after {
                let (now, was) = (or(&after, "none"), or(&before, "none"));
                let subject = format!("marks of `{}`: {now}, was {was}", to.name);
                self.report(ChangeKind::Changed, subject, None);
            }
        }
        for (_, state) in old.iter() {
            for was in state.was.iter().filter(|was| new.named(was).is_none()) {
                let subject = format!("former name `{was}` of `{}`", state.name);
                self.report(ChangeKind::Removed, subject, Some(LOST));
            }
        }
        let kept: BTreeSet<StateId> = self.kept().into_iter().map(|(_, new)| new).collect();
        for (_, state) in new.iter().filter(|(id, _)| !kept.contains(id)) {
            self.report(ChangeKind::Added, format!("state `{}`", state.name), None);
        }
    }

    fn edges(&mut self) {
        let (old, new) = (self.old, self.new);
        let is_trigger = |edge: &Edge| edge.kind == EdgeKind::Trigger;
        for (from, to) in self.kept() {
            let name = new.name_of(to);
            let edges = old.edges(from).into_iter();
            let before: Vec<(&str, Edge)> =
                edges.map(|edge| (self.present(edge.to), edge)).collect();
            let edges = new.edges(to).into_iter();
            let after: Vec<(&str, Edge)> = edges.map(|edge| (new.name_of(edge.to), edge)).collect();
            let same = |one: &(&str, Edge), other: &(&str, Edge)| {
                one.0 == other.0 && is_trigger(&one.1) == is_trigger(&other.1)
            };
            let spell = |(target, edge): &(&str, Edge)| {
                let word = if is_trigger(edge) { "trigger" } else { "child" };
                format!("{word} `{name} → {target}`")
            };
            for edge in &before {
                match after.iter().find(|other| same(edge, other)) {
                    None => self.report(ChangeKind::Removed, spell(edge), None),
                    Some((_, other)) if other.causes != edge.1.causes => {
                        let now = or(&other.causes, "by name");
                        let was = or(&edge.1.causes, "by name");
                        let subject = format!("{}: {now}, was {was}", spell(edge));
                        self.report(ChangeKind::Changed, subject, None);
                    }
                    Some(_) => {}
                }
            }
            for edge in &after {
                if !before.iter().any(|it| same(it, edge)) {
                    self.report(ChangeKind::Added, spell(edge), None);
                }
            }
            let next = old.states[from.index()].next().map(|id| self.present(id));
            let now = self.new_state(to).next().map(|id| new.name_of(id));
            if let (Some(next), Some(now)) = (next, now)
                && next != now
            {
                let subject = format!("last child of `{name}`: `{now}`, was `{next}`");
                self.report(ChangeKind::Changed, subject, None);
            }
        }
    }

    fn gates(&mut self) {
        let (old, new) = (self.old, self.new);
        for before in old.gates {
            let subject = format!("{} `{}`", before.kind.as_str(), before.name);
            let Some(after) = new.gates.iter().find(|it| it.name == before.name) else {
                self.report(ChangeKind::Removed, subject, None);
                continue;
            };
            let states = |graph: &Graph<'g>, gate: &Gate<'g>| {
                let names: Vec<&str> = gate.states.iter().map(|id| graph.name_of(*id)).collect();
                names.join(", ")
            };
            let (was, now) = (states(&old, before), states(&new, after));
            if (was != now) || (before.kind, before.passes) != (after.kind, after.passes) {
                self.report(
                    ChangeKind::Changed,
                    format!("{subject}: {now}, was {was}"),
                    None,
                );
            }
        }
        let is_new = |it: &&Gate<'g>| old.gates.iter().all(|before| before.name != it.name);
        for gate in new.gates.iter().filter(is_new) {
            let subject = format!("{} `{}`", gate.kind.as_str(), gate.name);
            self.report(ChangeKind::Added, subject, None);
        }
    }

    fn conditions(&mut self) {
        let types = |graph: &Graph<'g>| -> BTreeSet<&'g str> {
            let conditions = graph.states.iter().flat_map(|state| state.conditions);
            conditions.map(|condition| condition.name).collect()
        };
        let (old, new) = (types(&self.old), types(&self.new));
        for name in old.difference(&new) {
            self.report(
                ChangeKind::Removed,
                format!("condition `{name}`"),
                Some("a client that waits for it waits in vain"),
            );
        }
        for name in new.difference(&old) {
            self.report(ChangeKind::Added, format!("condition `{name}`"), None);
        }
    }

    fn desired_states(&mut self) {
        let (old, new) = (self.old, self.new);
        for (before, after) in self.kept() {
            let subject = format!("desired state `{}`", new.name_of(after));
            match (old.may_be_desired(before), new.may_be_desired(after)) {
                (true, false) => self.report(
                    ChangeKind::Removed,
                    subject,
                    Some("a spec that asks for it is refused"),
                ),
                (false, true) => self.report(ChangeKind::Added, subject, None),
                (true, true) | (false, false) => {}
            }
        }
    }

    fn routes(&mut self) {
        let (old, new) = (self.old, self.new);
        let kept = self.kept();
        for (from, from_now) in &kept {
            if !(old.states[from.index()].is(Mark::Rest)
                && self.new_state(*from_now).is(Mark::Rest))
            {
                continue;
            }
            for (to, to_now) in &kept {
                let subject = format!(
                    "route `{} → {}`",
                    new.name_of(*from_now),
                    new.name_of(*to_now)
                );
                let is_asked = from_now != to_now && new.may_be_desired(*to_now);
                match (length(&old, *from, *to), length(&new, *from_now, *to_now)) {
                    (Some(_), None) if is_asked => self.report(
                        ChangeKind::Removed,
                        subject,
                        Some("an object that is there cannot get to a state that its spec may ask for"),
                    ),
                    (Some(before), Some(after)) if after > before => self.report(
                        ChangeKind::Changed,
                        format!("{subject}: {after} transitions, was {before}"),
                        None,
                    ),
                    (None | Some(_), _) => {}
                }
            }
        }
    }
}

/// Returns a text, or another one if it is empty.
fn or<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

/// Returns the number of edges of a route; none if there is none.
fn length(graph: &Graph<'_>, from: StateId, to: StateId) -> Option<usize> {
    let mut at = from;
    for edges in 0..=graph.states.len() {
        if at == to {
            return Some(edges);
        }
        at = graph.hop(at, to)?;
    }
    None
}
