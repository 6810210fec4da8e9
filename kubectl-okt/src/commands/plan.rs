//! `kubectl okt plan`: the route of an object, and how long each state took before.

use std::collections::BTreeMap;

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use okt_core::draw::EdgeKind;
use okt_core::{Graph, Mark, State, StateId};
use okt_view::{Goal, Kind, View, age, route};
use serde::Serialize;

use crate::error::Error;
use crate::output::{OutputFormat, TextTable, print_as};
use crate::select::{One, known_graph, list};

/// Show the route of an object: each state on it, what it does, and how long it took before.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt plan orders                     to where it is to go
  kubectl okt plan database/orders Stopped    to another state, or to a visit, without asking for it
  kubectl okt plan orders --deletion          if it was deleted")]
pub(crate) struct PlanCommand {
    /// The object: TYPE/NAME, or NAME alone if only one object has it.
    #[arg(value_name = "TYPE/NAME")]
    object: String,
    /// A state or a visit [default: the desired state]
    #[arg(value_name = "STATE", conflicts_with = "deletion")]
    state: Option<String>,
    /// To the end, as if the object was deleted.
    #[arg(long)]
    deletion: bool,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
}

/// A state on the route.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hop<'g> {
    state: &'g str,
    #[serde(skip_serializing_if = "str::is_empty")]
    doc: &'g str,
    /// The median of the times in the state, in seconds, of all objects of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    median_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_seconds: Option<i64>,
    /// How many stays were measured.
    stays: usize,
    /// Where triggers may lead instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    or_to: Vec<String>,
}

impl PlanCommand {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = One::named(&self.object).read(client, &kinds).await?;
        let (graph, at) = place(&view)?;
        let goal = match &self.state {
            Some(name) => goal(graph, state(graph, name)?),
            None if self.deletion => Goal::Deletion,
            None => view.goal().ok_or_else(|| unknown_desired(&view))?,
        };
        let states = route(graph, at, goal);
        if let (Goal::Desired(to) | Goal::Visit(to), []) = (goal, &states[..])
            && to != at
        {
            return Err(no_route(graph, at, to));
        }
        let stays = stays(client, view.kind, view.namespace()).await;
        let hops: Vec<Hop<'_>> = std::iter::once(at)
            .chain(states.iter().copied())
            .map(|id| hop(graph, id, &stays))
            .collect();
        let names = hops.iter().map(|hop| hop.state);
        print_as(self.output, &hops, names, || {
            let here = view.time_in_state(Timestamp::now()).map(age);
            format!(
                "{} is in {}, for {}.\n\n{}",
                view.title(),
                graph.name_of(at),
                here.unwrap_or_default(),
                table(&hops).text()
            )
        })
    }
}

/// Returns what an object is asked for with a state: a visit, if the state is one to visit.
pub(super) fn goal(graph: &Graph<'_>, to: StateId) -> Goal {
    match graph.get(to) {
        Some(state) if state.is(Mark::Visit) => Goal::Visit(to),
        Some(_) | None => Goal::Desired(to),
    }
}

fn table(hops: &[Hop<'_>]) -> TextTable {
    let mut table = TextTable::new(&[
        "",
        "STATE",
        "USUALLY",
        "LONGEST",
        "OF",
        "WHAT IT DOES",
        "OR ELSE",
    ]);
    let seconds =
        |it: Option<i64>| it.map_or("?".to_owned(), |it| age(SignedDuration::from_secs(it)));
    for (number, hop) in hops.iter().enumerate() {
        let mut times = [
            seconds(hop.median_seconds),
            seconds(hop.longest_seconds),
            hop.stays.to_string(),
        ];
        if number + 1 == hops.len() {
            // An object stays where it is to go.
            times = Default::default();
        }
        let [median, longest, stays] = times;
        let sign = match number {
            0 => "▶".to_owned(),
            number => number.to_string(),
        };
        let doc = hop.doc.lines().next().unwrap_or_default().to_owned();
        let state = hop.state.to_owned();
        let or_to = hop.or_to.join(", ");
        table.row(&[sign, state, median, longest, stays, doc, or_to]);
    }
    table
}

/// Returns the graph and the state of an object, or why there is none.
pub(crate) fn place(view: &View<'_>) -> Result<(&'static Graph<'static>, StateId), Error> {
    known_graph(view.kind)?;
    if view.kind.graph().is_none() {
        return Err(Error::Refused(format!(
            "{} has no states: its operator runs a pass",
            view.kind.id()
        )));
    }
    view.place().ok_or_else(|| {
        Error::Refused(match view.state() {
            Some(state) => format!(
                "{} is in {state}, which the graph of the CRD does not have",
                view.title()
            ),
            None => format!(
                "{} is in no state yet: no operator has reported on it",
                view.title()
            ),
        })
    })
}

/// Returns the state that a user names.
pub(crate) fn state(graph: &Graph<'_>, name: &str) -> Result<StateId, Error> {
    let lower = name.to_lowercase();
    let is_meant = |state: &State<'_>| state.name.to_lowercase() == lower;
    let by_case = || graph.iter().find(|(_, state)| is_meant(state));
    let found = graph.named(name).or_else(|| Some(by_case()?.0));
    found.ok_or_else(|| {
        let names: Vec<&str> = graph.states.iter().map(|state| state.name).collect();
        Error::Refused(format!(
            "the graph has no state `{name}`; it has {}",
            names.join(", ")
        ))
    })
}

/// Returns the error for a route that does not exist, with the reason that the graph declares.
pub(crate) fn no_route(graph: &Graph<'_>, at: StateId, to: StateId) -> Error {
    let (from, name) = (graph.name_of(at), graph.name_of(to));
    let claim = graph
        .get(at)
        .and_then(|state| state.no_routes.iter().find(|claim| claim.to == to));
    let why = match claim {
        Some(claim) => format!(": {}", claim.reason),
        None if !graph.may_be_desired(to) => {
            let names: Vec<&str> = graph
                .desirable_states()
                .map(|id| graph.name_of(id))
                .collect();
            format!(
                ": nobody may ask for {name}; you may ask for {}",
                names.join(", ")
            )
        }
        None => String::new(),
    };
    Error::Refused(format!("no route leads from {from} to {name}{why}"))
}

fn unknown_desired(view: &View<'_>) -> Error {
    let desired = view.desired().unwrap_or_default();
    Error::Refused(format!(
        "the graph has no state `{desired}`, which the spec of {} asks for",
        view.title()
    ))
}

/// Returns how long objects of a kind stayed in each state, by their histories.
async fn stays(
    client: &Client,
    kind: &Kind,
    namespace: Option<&str>,
) -> BTreeMap<StateId, Vec<SignedDuration>> {
    let mut stays: BTreeMap<StateId, Vec<SignedDuration>> = BTreeMap::new();
    let Some(graph) = kind.graph() else {
        return stays;
    };
    // Who may read one object may not be allowed to list: then the times are unknown.
    let objects = list(client, kind, namespace, None)
        .await
        .unwrap_or_default();
    for object in objects {
        let view = View::of(kind, object);
        let Some(position) = view.position() else {
            continue;
        };
        for pair in position.history.windows(2) {
            let [entered, left] = pair else { continue };
            if let (Some(id), Some(since), Some(until)) =
                (graph.named(&entered.to), entered.at, left.at)
                && left.transition == entered.transition + 1
            {
                stays
                    .entry(id)
                    .or_default()
                    .push(until.duration_since(since));
            }
        }
    }
    for times in stays.values_mut() {
        times.sort();
    }
    stays
}

fn hop<'g>(
    graph: &Graph<'g>,
    id: StateId,
    stays: &BTreeMap<StateId, Vec<SignedDuration>>,
) -> Hop<'g> {
    let times = stays.get(&id).map(Vec::as_slice).unwrap_or_default();
    let edges = graph.edges(id).into_iter();
    let triggers = edges.filter(|edge| edge.kind == EdgeKind::Trigger);
    let or_to = triggers.map(|edge| edge.text(graph));
    Hop {
        state: graph.name_of(id),
        doc: graph.get(id).map_or("", |state| state.doc),
        median_seconds: times.get(times.len() / 2).map(SignedDuration::as_secs),
        longest_seconds: times.last().map(SignedDuration::as_secs),
        stays: times.len(),
        or_to: or_to.collect(),
    }
}
