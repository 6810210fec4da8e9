//! The causes that keep an object where it is, each with its remedies. Pure: from what was read of the cluster.

use jiff::{SignedDuration, Timestamp};
use okt_core::reasons::{self, resources};
use okt_core::record::Phase;
use okt_core::{Graph, Mark, State, StateId};
use okt_wire::keys::FINALIZER;
use okt_wire::refusal::Refusal;
use okt_wire::status::RecordedFailure;
use serde::Serialize;

use super::surroundings::{ObjectSurroundings, ReplicaGroup};
use crate::object::View;
use crate::text::age;

/// How long work may take before it is asked whether it ends at all.
const LONG: SignedDuration = SignedDuration::from_mins(10);

/// How many objects with a place are named.
const NAMED: usize = 5;

/// A cause, and what a person may do about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cause {
    /// What keeps the object where it is.
    pub what: String,
    /// What would move it.
    pub remedies: Vec<String>,
}

/// Returns the causes, the first that must be mended first.
pub(super) fn causes(view: &View<'_>, around: &ObjectSurroundings, now: Timestamp) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(why) = &view.unreadable {
        causes.push(cause(
            format!("The object cannot be read as one of OKT: {why}."),
            ["compare the version of this program with that of the operator"],
        ));
        return causes;
    }
    if let Err(why) = &view.kind.graph {
        causes.push(cause(
            format!("Its graph is not known, so its route is not shown: {why}."),
            [],
        ));
    }
    if let Some(foreign) = foreign_finalizers(view) {
        causes.push(foreign);
        return causes;
    }
    if let Some(idle) = no_operator(view, around) {
        causes.push(idle);
        return causes;
    }
    if let Some(release) = of_another_release(view) {
        causes.push(release);
        // That it is fine is true of the other graph.
        if view.ready().0 == "True" {
            return causes;
        }
    }
    causes.extend(reported(view, around, now));
    causes.extend(part_waits(view));
    causes
}

fn cause<const N: usize>(what: impl Into<String>, remedies: [&str; N]) -> Cause {
    Cause {
        what: what.into(),
        remedies: remedies.map(str::to_owned).into(),
    }
}

/// Returns a cause that the message of `Ready` explains.
fn sentence<const N: usize>(view: &View<'_>, text: &str, remedies: [&str; N]) -> Cause {
    let (_, _, message) = view.ready();
    cause(format!("{text}: {message}"), remedies)
}

/// Returns the cause if the object is deleted and only finalizers of others keep it.
fn foreign_finalizers(view: &View<'_>) -> Option<Cause> {
    let finalizers = view.meta.finalizers.as_deref().unwrap_or_default();
    if !view.is_deleting() || finalizers.is_empty() || finalizers.iter().any(|it| it == FINALIZER) {
        return None;
    }
    let names = finalizers.join(", ");
    Some(cause(
        format!(
            "Its operator is done with the deletion and has removed its finalizer. Finalizers of other controllers keep the object: {names}."
        ),
        [
            &format!("find the controller that owns {names}, and see why it does not finish"),
            "remove the finalizer by hand only if that controller is gone for ever: what it would clean up stays",
        ],
    ))
}

/// Returns the cause if no operator has seen the present version of the object.
fn no_operator(view: &View<'_>, around: &ObjectSurroundings) -> Option<Cause> {
    let generation = view.meta.generation.unwrap_or_default();
    let observed = view.status.observed_generation.unwrap_or(-1);
    let has_reported = view.condition("Ready").is_some();
    if has_reported && observed >= generation {
        return None;
    }
    let mut finalizers = view.meta.finalizers.iter().flatten();
    let has_begun = finalizers.any(|it| it == FINALIZER);
    let what = if has_reported {
        format!(
            "Its operator has not seen generation {generation} of the object: the status is about generation {observed}."
        )
    } else if has_begun {
        "Its operator has put its finalizer on the object, and nothing is recorded since: what it writes to the status is dropped or refused, or it has ended.".to_owned()
    } else {
        "No operator has reported on the object.".to_owned()
    };
    let mut remedies = match around.groups.as_deref() {
        Some([]) => vec![
            "no OKT operator with leader election has a lease for its kind in the cluster: start its operator"
                .to_owned(),
        ],
        Some(groups) => groups.iter().map(of_replicas).collect(),
        None => vec!["see whether its operator runs, and its log".to_owned()],
    };
    // An operator that has begun is stopped by a webhook more often than by its own end.
    let at = if has_begun { 0 } else { remedies.len() };
    remedies.splice(at..at, of_webhooks(around));
    Some(Cause { what, remedies })
}

/// Returns what to do about the webhooks that may change the status.
fn of_webhooks(around: &ObjectSurroundings) -> impl Iterator<Item = String> {
    around.webhooks.iter().map(|webhook| {
        format!(
            "the webhook {webhook} may change the status: if it drops fields, the operator can record nothing; exclude the status subresource in its rules"
        )
    })
}

/// Returns what the replicas of an operator lack.
fn of_replicas(group: &ReplicaGroup) -> String {
    let (namespace, name) = (&group.namespace, &group.name);
    let logs = format!("kubectl -n {namespace} logs -l app.kubernetes.io/name={name}");
    match (group.alive, group.ready) {
        (0, _) => format!(
            "no replica of {name} in the namespace {namespace} renews its lease: kubectl -n {namespace} get pods"
        ),
        (alive, 0) => format!(
            "none of the {alive} replicas of {name} in the namespace {namespace} is ready: its CRD may be older than the operator (apply the output of its subcommand `crd`), or its roles too few (`rbac`); its log says which: {logs}"
        ),
        (alive, ready) if group.kinds.is_empty() => format!(
            "{ready} of {alive} replicas of {name} in the namespace {namespace} act: if this is its operator, see its log"
        ),
        (alive, ready) => format!(
            "{ready} of {alive} replicas of {name} in the namespace {namespace} act; their log says what they could not write: {logs}"
        ),
    }
}

/// Returns the causes that the operator reports in the conditions.
fn reported(view: &View<'_>, around: &ObjectSurroundings, now: Timestamp) -> Vec<Cause> {
    let (status, _, message) = view.ready();
    if status == "True" {
        let mut causes = vec![cause(format!("Nothing is wrong: {message}."), [])];
        if view.is_paused() {
            causes.push(paused(view));
        }
        return causes;
    }
    let found = of_lifecycle(view, around, now)
        .or_else(|| of_resource(view))
        .unwrap_or_else(|| of_work(view, now));
    let pods = around.pods.iter().map(|pod| cause(pod, []));
    std::iter::once(found).chain(pods).collect()
}

/// Returns the cause if the graph in the cluster does not have the state that an operator recorded: the operator says so
/// itself only of its own graph.
fn of_another_release(view: &View<'_>) -> Option<Cause> {
    let (graph, state) = (view.kind.graph()?, view.state()?);
    let (_, reason, _) = view.ready();
    let is_known = graph.named(state).is_some();
    if is_known || reason == reasons::UNKNOWN_STATE || reason == reasons::UNFORESEEN_STATE {
        return None;
    }
    let crd = view.kind.id();
    Some(cause(
        format!(
            "The graph of {crd} in the cluster does not have {state}: the operator that recorded it is of another release than the definition."
        ),
        [
            "apply the CRD of the operator that is to run: the output of its subcommand `crd`",
            &format!("kubectl okt graph {crd} shows the states of the CRD"),
        ],
    ))
}

/// Returns what waits for a state whose trigger names a changed part of the spec.
fn part_waits(view: &View<'_>) -> Option<Cause> {
    let parts = view.waiting_parts();
    let waits = view.position().is_some_and(|it| it.waiting.is_some());
    if parts.is_empty() || view.is_deleting() || waits {
        return None;
    }
    let (graph, _) = view.place()?;
    let names = |state: &State<'_>| {
        let mut triggers = state.triggers.iter();
        triggers.any(|trigger| match trigger.cause {
            okt_core::Cause::OnChangeOf(these) => {
                these.names(graph.parts).any(|it| parts.contains(&it))
            }
            _ => false,
        })
    };
    let states = graph.states.iter().filter(|state| names(state));
    let states: Vec<&str> = states.map(|state| state.name).collect();
    Some(cause(
        format!(
            "A change of {} has taken no edge yet: the operator takes it when the object is in {}.",
            parts.join(", "),
            states.join(" or ")
        ),
        [],
    ))
}

fn paused(view: &View<'_>) -> Cause {
    let resume = format!("kubectl okt resume {}", view.arguments());
    cause("It is paused by the annotation okt.dev/paused.", [&resume])
}

/// Returns the cause if it is in the lifecycle, the operator or its writes.
fn of_lifecycle(view: &View<'_>, around: &ObjectSurroundings, now: Timestamp) -> Option<Cause> {
    let (_, reason, message) = view.ready();
    let id = view.arguments();
    let retry = format!("kubectl okt retry {id}");
    Some(match reason {
        reasons::PAUSED => paused(view),
        reasons::UNREACHABLE => sentence(
            view,
            "Its operator cannot reach the application",
            [
                "see whether the pods of the application run and whether a network policy lets the operator in; the operator tries again by itself",
            ],
        ),
        reasons::OBSERVATION_FAILED => sentence(
            view,
            "Its operator cannot observe the application",
            ["mend what the message names; the operator tries again by itself"],
        ),
        reasons::UNFORESEEN_STATE | reasons::UNKNOWN_STATE => sentence(
            view,
            "The graph does not have the state that the object is in",
            [
                "run a release of the operator whose graph has the state, by that name or by `#[was(..)]`",
                &format!(
                    "kubectl okt graph {} shows the states of the CRD",
                    view.kind.id()
                ),
            ],
        ),
        reasons::OBSERVED_ELSEWHERE | reasons::ABSENT => sentence(
            view,
            "The application is not what the status says",
            [&retry],
        ),
        reasons::UNKNOWN_DESIRED_STATE => sentence(
            view,
            "The graph does not have the desired state",
            [&format!(
                "kubectl okt go {id} STATE, with one of: {}",
                desirable(view)
            )],
        ),
        reasons::NO_ROUTE => {
            let remedy = match reachable(view) {
                Some(states) => {
                    &format!("kubectl okt go {id} STATE, with one that a route leads to: {states}")
                }
                None => "no route leads anywhere from here; only a deletion does",
            };
            sentence(view, "No route leads to the desired state", [remedy])
        }
        reasons::LOOP_DETECTED => sentence(
            view,
            "It repeats transitions",
            [&format!("kubectl okt trail {id} shows them"), &retry],
        ),
        reasons::REFUSED => sentence(
            view,
            "The API server refuses what the operator writes",
            ["apply the CRD of the operator's release: the output of its subcommand `crd`"],
        ),
        reasons::FORBIDDEN => forbidden(message),
        reasons::WRITE_FAILED => {
            let mut cause = sentence(
                view,
                "Its operator cannot record what it does",
                ["see the log of the API server; the operator tries again by itself"],
            );
            cause.remedies.splice(0..0, of_webhooks(around));
            cause
        }
        reasons::WAITING_FOR_WINDOW => before_window(view),
        reasons::WAITING_FOR_APPROVAL => before_approval(view),
        reasons::WAITING_FOR_LIMIT => before_limit(view, around, now),
        reasons::BAD_WINDOW => sentence(
            view,
            "A window of its spec never opens",
            [&format!("correct the window: kubectl edit {id}")],
        ),
        reasons::UNDECODABLE => sentence(
            view,
            "The operator cannot read the object",
            [&format!("correct the object: kubectl edit {id}")],
        ),
        reasons::INVALID => sentence(
            view,
            "The application refuses the object",
            [&format!("correct the object: kubectl edit {id}")],
        ),
        _ => return None,
    })
}

/// Returns the cause of an object that waits for a window, with the next times at which that opens.
fn before_window(view: &View<'_>) -> Cause {
    let (_, _, message) = view.ready();
    let waiting = view.position().and_then(|it| it.waiting.as_ref());
    let openings = waiting.map_or(&[][..], |it| &it.openings);
    let openings: Vec<String> = openings
        .iter()
        .map(|it| it.strftime("%a %Y-%m-%d %H:%M UTC").to_string())
        .collect();
    let then = match openings.as_slice() {
        [] => String::new(),
        openings => format!(" It opens on {}.", openings.join(", then on ")),
    };
    let id = view.arguments();
    cause(
        format!("{message}.{then}"),
        [&format!(
            "change the window if it has to be sooner: kubectl edit {id}"
        )],
    )
}

/// Returns the cause of an object that waits for the approval of its plan.
fn before_approval(view: &View<'_>) -> Cause {
    let (_, _, message) = view.ready();
    let waiting = view.position().and_then(|it| it.waiting.as_ref());
    let id = view.arguments();
    let Some(plan) = waiting.and_then(|it| it.plan.as_deref()) else {
        return cause(format!("{message}."), []);
    };
    let other = view.desired.approve.as_deref();
    let other = other
        .filter(|other| *other != plan)
        .map(|other| format!(" The spec approves {other}, which is no plan of the object now."));
    cause(
        format!("{message}.{}", other.unwrap_or_default()),
        [
            &format!("kubectl okt approve {id} shows the plan"),
            &format!("kubectl okt approve {id} {plan}"),
        ],
    )
}

/// Returns the cause of an object that waits for a place in a limit, with those that have one.
fn before_limit(view: &View<'_>, around: &ObjectSurroundings, now: Timestamp) -> Cause {
    let (_, _, message) = view.ready();
    let Some((limit, before)) = &around.limit else {
        return cause(format!("{message}."), []);
    };
    let places = limit.table.places.iter().take(NAMED);
    let places: Vec<String> = places
        .map(|place| {
            format!(
                "{} for {}",
                place.object,
                age(now.duration_since(place.since))
            )
        })
        .collect();
    let number = limit.number().unwrap_or_default();
    let taken = limit.table.places.len();
    let who = match places.as_slice() {
        [] => String::new(),
        places => format!(" ({})", places.join(", ")),
    };
    let others = match before {
        0 => "It is the next one.".to_owned(),
        1 => "One other object comes before it.".to_owned(),
        before => format!("{before} other objects come before it."),
    };
    let by_hand = limit.table.max.map_or("", |_| ", set by hand");
    cause(
        format!("{message}. Places taken: {taken} of {number}{by_hand}{who}. {others}"),
        [
            "see why those inside do not come out: kubectl okt why TYPE/NAME",
            &format!(
                "let more in: kubectl okt limit {} --max {}",
                limit.arguments(),
                number.saturating_add(1)
            ),
        ],
    )
}

/// Returns the cause of a write that is forbidden, whose message has the code and the words of the API server.
fn forbidden(message: &str) -> Cause {
    let answer = message.split_once("403 ").map_or(message, |it| it.1);
    let (what, remedy) = match Refusal::of_message(answer) {
        Refusal::Roles => ("The operator lacks a role", "apply the output of the operator's subcommand `rbac`"),
        Refusal::Quota => (
            "A quota is exhausted",
            "kubectl describe resourcequota shows the quota; raise it, or free some of it; the operator tries again by itself",
        ),
        other => (
            "The API server refuses what the operator writes",
            other.advice().unwrap_or("mend what the message names, or apply the output of the operator's subcommand `rbac`"),
        ),
    };
    cause(format!("{what}: {message}"), [remedy])
}

/// Returns the cause if it is an owned resource.
fn of_resource(view: &View<'_>) -> Option<Cause> {
    let (_, reason, message) = view.ready();
    let retry = format!("kubectl okt retry {}", view.arguments());
    Some(match reason {
        resources::NOT_OWNED => sentence(
            view,
            "An object that it needs belongs to another owner",
            [
                "delete or rename the object that the message names, or change the spec so that another name is used",
            ],
        ),
        resources::FORBIDDEN => forbidden(message),
        resources::REFUSED
        | resources::BAD_RESOURCE
        | resources::BAD_TEMPLATE
        | resources::IMMUTABLE => sentence(
            view,
            "A resource that it needs cannot be applied",
            [
                "change the spec that leads to this resource, or delete the resource if it may be made anew",
            ],
        ),
        resources::NOT_READY => sentence(
            view,
            "A resource that it needs has failed",
            [
                "read the events and the logs of the resource that the message names (kubectl describe, kubectl logs); after mending the cause:",
                &retry,
            ],
        ),
        resources::WAITING => sentence(
            view,
            "It waits for a resource",
            [
                "kubectl describe shows what the resource that the message names lacks (e.g. a Secret or a volume)",
            ],
        ),
        _ => return None,
    })
}

/// Returns the cause of an object whose work no retry helps.
fn failed_permanently(view: &View<'_>, state: &str, why: &str) -> Cause {
    let id = view.arguments();
    let mut failed = cause(
        format!("The work of {state} failed permanently: {why}"),
        [
            &*format!("correct the spec, and the work begins again: kubectl edit {id}"),
            &format!("or mend what the message names elsewhere, then: kubectl okt retry {id}"),
        ],
    );
    failed.remedies.extend(abandonment(view));
    failed
}

/// Returns the last remedy of an object that is being deleted and cannot end.
fn abandonment(view: &View<'_>) -> Option<String> {
    let id = view.arguments();
    view.is_deleting()
        .then(|| format!("if it cannot end, give the application up: kubectl okt abandon {id}"))
}

/// Returns the cause that the work of the state is, or that the state is.
fn of_work(view: &View<'_>, now: Timestamp) -> Cause {
    let (_, reason, message) = view.ready();
    let id = view.arguments();
    let retry = format!("kubectl okt retry {id}");
    let state = view.state().unwrap_or_default();
    let named = |failure: &RecordedFailure| format!("{}: {}", failure.reason, failure.message);
    let action = view.action();
    let failure = action.and_then(|action| action.failure.as_ref());
    if action.is_some_and(|action| action.phase == Phase::Failed) {
        let why = failure.map_or_else(|| format!("{reason}: {message}"), named);
        return failed_permanently(view, state, &why);
    }
    let place = view.place().and_then(|(graph, at)| graph.get(at));
    if place.is_some_and(|it| it.is(Mark::Hold)) && view.is_true("Stalled") {
        let fault = view.position().and_then(|it| it.failure.as_ref());
        let led = fault.map_or_else(String::new, |it| format!(" What led there: {}.", named(it)));
        let desirable = desirable(view);
        return cause(
            format!("{state} is a holding state: the object stays until a person decides.{led}"),
            [
                &*retry,
                &format!("or choose another state: kubectl okt go {id} STATE ({desirable})"),
            ],
        );
    }
    if let Some(action) = action {
        let since = action.started_at.map_or_else(String::new, |at| {
            format!(" since {} ago", age(now.duration_since(at)))
        });
        let failed = failure.map_or_else(String::new, |it| {
            format!("; the last error was {}", named(it))
        });
        let progress = match &*action.message {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let attempt = action.attempt;
        let mut under_way = cause(
            format!(
                "The work of {state} is under way{since}, attempt {attempt}{progress}{failed}."
            ),
            [],
        );
        let is_long = |at| now.duration_since(at) > LONG;
        if failure.is_some() || action.started_at.is_some_and(is_long) {
            under_way.remedies.extend(abandonment(view));
        }
        return under_way;
    }
    let what = format!("{reason}: {message}");
    if view.is_true("Stalled") {
        cause(what, [&*retry])
    } else {
        cause(what, [])
    }
}

fn names(graph: &Graph<'_>, states: impl Iterator<Item = StateId>) -> Option<String> {
    let names: Vec<&str> = states.map(|id| graph.name_of(id)).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Returns the states that a spec may ask for.
fn desirable(view: &View<'_>) -> String {
    let graph = view.kind.graph();
    let names = graph.and_then(|graph| names(graph, graph.desirable_states()));
    names.unwrap_or_else(|| "those of its graph".to_owned())
}

/// Returns the states that a spec may ask for and that a route leads to.
fn reachable(view: &View<'_>) -> Option<String> {
    let (graph, at) = view.place()?;
    names(
        graph,
        graph
            .desirable_states()
            .filter(|to| *to == at || graph.hop(at, *to).is_some()),
    )
}
