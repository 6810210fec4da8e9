//! `kubectl okt go` and `retry`: ask for a state, for a visit, or for another attempt.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use jiff::Timestamp;
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::Status;
use okt_core::record::VisitOutcome;
use okt_core::{Graph, Mark, StateId};
use okt_view::{Goal, Kind, RequestError, View, route, way};
use serde_json::{Map, Value, json};

use super::plan::{goal, no_route, place, state};
use crate::error::Error;
use crate::output::print;
use crate::select::One;

/// The field manager of the desired state. It is the same for every user, so that the last one wins.
pub(super) const MANAGER: &str = "okt-go";

/// Ask for a state, or for a visit to a state, after showing the route.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt go database/orders Stopped
  kubectl okt go database/orders Backup      a state that is visited once; then the object returns
  kubectl okt go database/orders Running --dry-run")]
pub(crate) struct Go {
    /// The object: TYPE/NAME, or NAME alone if only one object has it.
    #[arg(value_name = "TYPE/NAME")]
    object: String,
    /// The state.
    #[arg(value_name = "STATE")]
    state: String,
    /// The text of the request: the same state is visited once per text [default: the time]
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    request: Option<String>,
    /// Show the route, and let the API server check the change without storing it.
    #[arg(long)]
    dry_run: bool,
}

impl Go {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = One::named(&self.object).read(client, &kinds).await?;
        let (graph, at) = place(&view)?;
        let to = state(graph, &self.state)?;
        if view.is_deleting() {
            return Err(Error::Refused(format!(
                "{} is being deleted: it goes to its end",
                view.title()
            )));
        }
        if !graph.may_be_desired(to) {
            return Err(no_route(graph, at, to));
        }
        if graph.get(to).is_some_and(|state| state.is(Mark::Args)) {
            let mut kinds = view.kind.requests.iter();
            let kind = kinds.find(|it| graph.named(&it.state) == Some(to));
            let kind = kind.map_or("KIND", |it| it.kind.resource.kind.as_str());
            return Err(Error::Refused(format!(
                "{} is a visit with arguments: `kubectl okt request {} {}` asks for it",
                graph.name_of(to),
                kind.to_lowercase(),
                view.arguments()
            )));
        }
        let goal = goal(graph, to);
        let is_visit = matches!(goal, Goal::Visit(_));
        let states = route(graph, at, goal);
        if states.is_empty() && to != at {
            return Err(no_route(graph, at, to));
        }
        print(&format!(
            "{}: {}\n",
            view.title(),
            way(graph, std::iter::once(at).chain(states))
        ));
        if let Some(outcome) = self.served(&view, graph, to).filter(|_| is_visit) {
            return Err(Error::Refused(format!(
                "the object has served this request already, and the outcome is {outcome:?}: choose another text for --request"
            )));
        }
        let wanted = self.wanted(graph, at, to, is_visit);
        apply_owned(client, &view, wanted, self.dry_run).await?;
        let done = if self.dry_run {
            "may be asked for"
        } else {
            "is asked for"
        };
        print(&format!(
            "{} {done}; `kubectl okt wait {} {}` waits for it\n",
            graph.name_of(to),
            view.arguments(),
            graph.name_of(to)
        ));
        if view.is_paused() {
            print(&format!(
                "it is paused: `kubectl okt resume {}` ends that\n",
                view.arguments()
            ));
        }
        Ok(())
    }

    /// Returns the outcome of the visit with the text of the request; none if the object has served no such request.
    fn served(&self, view: &View<'_>, graph: &Graph<'_>, to: StateId) -> Option<VisitOutcome> {
        let visit = view.position()?.visit.as_ref()?;
        let is_it = graph.named(&visit.state) == Some(to)
            && self.request.as_ref() == Some(&visit.request)
            && visit.outcome != VisitOutcome::Pending;
        is_it.then_some(visit.outcome)
    }

    /// Returns the lifecycle field that asks for the state.
    fn wanted(&self, graph: &Graph<'_>, at: StateId, to: StateId, is_visit: bool) -> Value {
        let name = graph.name_of(to);
        let request = || self.request.clone().unwrap_or_else(now);
        if is_visit {
            return json!({ "visit": { "state": name, "request": request() } });
        }
        // A holding state, or a leaf, is left for a new request only.
        let holds = graph
            .get(at)
            .is_some_and(|state| state.is(Mark::Hold) || state.is(Mark::Leaf));
        match &self.request {
            Some(request) => json!({ "state": name, "request": request }),
            None if holds && to != at => json!({ "state": name, "request": now() }),
            None => json!({ "state": name }),
        }
    }
}

fn now() -> String {
    Timestamp::now().to_string()
}

/// Ask an object to try again: a new request leads out of a holding state or a leaf, and retries work that failed.
#[derive(Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    object: One,
    /// Let the API server check the change without storing it.
    #[arg(long)]
    dry_run: bool,
}

impl Retry {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let view = self.object.read(client, &kinds).await?;
        if view.kind.has_no_states() {
            return Err(Error::Refused(format!(
                "{} has no states: its operator runs a pass, and tries again by itself",
                view.kind.id()
            )));
        }
        apply_owned(client, &view, json!({ "request": now() }), self.dry_run).await?;
        let done = if self.dry_run {
            "may be asked"
        } else {
            "is asked"
        };
        print(&format!("{} {done} to try again\n", view.title()));
        Ok(())
    }
}

/// Applies fields of the lifecycle field under the manager of these commands; what they applied before stays.
async fn apply_owned(
    client: &Client,
    view: &View<'_>,
    wanted: Value,
    dry_run: bool,
) -> Result<(), Error> {
    let mut lifecycle = owned(view);
    lifecycle.extend(wanted.as_object().cloned().unwrap_or_default());
    apply(client, view, MANAGER, lifecycle.into(), dry_run).await
}

/// Applies the fields of the lifecycle field that belong to a manager.
pub(super) async fn apply(
    client: &Client,
    view: &View<'_>,
    manager: &str,
    lifecycle: Value,
    dry_run: bool,
) -> Result<(), Error> {
    let resource = &view.kind.resource;
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        // The uid makes sure that no object of the same name is created or changed.
        "metadata": { "name": view.name(), "uid": view.meta.uid },
        "spec": { (&view.kind.field): lifecycle },
    });
    let parameters = PatchParams {
        dry_run,
        field_manager: Some(manager.to_owned()),
        // A CRD without the field would drop it without an error.
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let api = view.kind.objects(client, view.namespace());
    let applied = api
        .patch(view.name(), &parameters, &Patch::Apply(&patch))
        .await;
    match applied {
        Ok(DynamicObject { .. }) => Ok(()),
        Err(kube::Error::Api(status)) if is_owned_by_another(&status) => {
            Err(Error::Refused(format!(
                "another manager owns the field: {}; change it there (e.g. in Git), or the two fight",
                status.message
            )))
        }
        Err(error) => Err(RequestError::new(format!("change {}", view.id()), &error).into()),
    }
}

/// Returns whether the API server refuses an apply because another manager owns a field.
fn is_owned_by_another(status: &Status) -> bool {
    let details = status.details.as_ref();
    let mut causes = details.into_iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "FieldManagerConflict")
}

/// Returns the fields of the lifecycle field that this command owns: an apply without them would remove them.
fn owned(view: &View<'_>) -> Map<String, Value> {
    let managers = view.meta.managed_fields.iter().flatten();
    let own = managers.filter(|entry| {
        entry.manager.as_deref() == Some(MANAGER) && entry.operation.as_deref() == Some("Apply")
    });
    let present = serde_json::to_value(&view.desired).unwrap_or_default();
    let mut fields = Map::new();
    for entry in own {
        let path = format!("/f:spec/f:{}", view.kind.field);
        let owned = entry
            .fields_v1
            .as_ref()
            .and_then(|fields| fields.0.pointer(&path));
        for name in owned
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            let name = name.trim_start_matches("f:");
            if let Some(value) = present.get(name) {
                fields.insert(name.to_owned(), value.clone());
            }
        }
    }
    fields
}
