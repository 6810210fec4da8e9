//! `kubectl okt diff`: what another release of a graph changes, and which live objects it touches.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use okt_core::Graph;
use okt_core::evolution::{Change, changes};
use okt_view::{Kind, RequestError, View};
use okt_wire::desired::StateName;
use okt_wire::keys::{REQUEST_OF_ANNOTATION, SCHEDULE_OF_ANNOTATION};
use serde_json::Value;

use crate::error::Error;
use crate::output::print;
use crate::select::{known_graph, list, open};

/// Compare the graphs of another release with those in the cluster.
///
/// It prints what changes in each graph, and which live objects have a state, or ask for one, that the new graph does
/// not have. It writes nothing. It exits with 3 if objects lose something.
#[derive(Args)]
#[command(after_help = "Examples:
  my-operator crd | kubectl okt diff -
  kubectl okt diff crds-v2.yaml
  kubectl okt diff crds-v2.yaml --old crds-v1.yaml    two files, without a cluster")]
pub(crate) struct Diff {
    /// The CRDs of the new release, as the subcommand `crd` prints them; `-` is the standard input.
    #[arg(value_name = "FILE")]
    new: PathBuf,
    /// The CRDs of the old release [default: those in the cluster]
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
}

impl Diff {
    /// Returns whether the command needs a cluster.
    pub(crate) fn needs_cluster(&self) -> bool {
        self.old.is_none()
    }

    pub(crate) async fn run(&self, client: Option<&Client>) -> Result<(), Error> {
        let new = kinds(&self.new)?;
        let old = match (&self.old, client) {
            (Some(path), _) => kinds(path)?,
            (None, Some(client)) => Kind::all(client).await?,
            (None, None) => Vec::new(),
        };
        let mut differences = Differences::default();
        for kind in &new {
            let graph = known_graph(kind)?;
            let Some(before) = old.iter().find(|old| old.id() == kind.id()) else {
                differences.add(kind, "+ the kind is new", None);
                continue;
            };
            let lost = match client {
                Some(client) => lost(client, before, graph).await?,
                None => BTreeMap::new(),
            };
            differences.compare(kind, &changes(known_graph(before)?, graph), &lost);
        }
        // A cluster has kinds of other operators too; two files are two releases of one.
        if self.old.is_some() {
            let is_removed = |old: &&Kind| !new.iter().any(|new| new.id() == old.id());
            let risk = "its objects, if there are any, have no operator any more";
            for kind in old.iter().filter(is_removed) {
                differences.add(kind, "- the kind is removed", Some(risk));
            }
        }
        print(&differences.text);
        differences.verdict()
    }
}

/// What differs between two releases.
#[derive(Default)]
struct Differences {
    text: String,
    /// The kind that the last lines are about.
    kind: String,
    count: usize,
    risks: usize,
    /// The objects that a release would lose.
    touched: BTreeSet<String>,
}

impl Differences {
    fn compare(&mut self, kind: &Kind, found: &[Change], lost: &BTreeMap<String, Vec<String>>) {
        for change in found {
            let line = format!("{} {}", change.kind.sign(), change.subject);
            self.add(kind, &line, change.risk);
        }
        for (why, names) in lost {
            let touched = names.iter().map(|name| format!("{} {name}", kind.id()));
            self.touched.extend(touched);
            self.begin(kind);
            self.text += &format!("  ! {why}: {}\n", names.join(", "));
        }
    }

    fn add(&mut self, kind: &Kind, line: &str, risk: Option<&str>) {
        self.count += 1;
        self.begin(kind);
        self.text += &format!("  {line}\n");
        if let Some(risk) = risk {
            self.risks += 1;
            self.text += &format!("      {risk}\n");
        }
    }

    fn begin(&mut self, kind: &Kind) {
        let id = kind.id();
        if self.kind != id {
            self.text += &format!("{id}\n");
            self.kind = id;
        }
    }

    fn verdict(&self) -> Result<(), Error> {
        let (count, risks) = (self.count, self.risks);
        match (count, risks, self.touched.len()) {
            (0, _, 0) => {
                eprintln!("no differences in the graphs");
                Ok(())
            }
            (_, 0, 0) => Ok(()),
            (_, _, 0) => Err(Error::Refused(format!(
                "stored objects may lose something by {risks} of {count} changes"
            ))),
            (_, _, 1) => Err(Error::Refused(
                "1 object is in or asks for a state that the new graph does not have".to_owned(),
            )),
            (_, _, touched) => Err(Error::Refused(format!(
                "{touched} objects: each is in or asks for a state that the new graph does not have"
            ))),
        }
    }
}

/// Reads the kinds of the CRDs in a file.
fn kinds(path: &Path) -> Result<Vec<Kind>, Error> {
    let cannot = |why: &dyn std::fmt::Display| {
        Error::Failed(format!("cannot read CRDs from {}: {why}", path.display()))
    };
    let mut text = String::new();
    let read = open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| cannot(&error))?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| cannot(&error))?;
    let lists = documents.into_iter().flat_map(|mut document| {
        match document.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => vec![document],
        }
    });
    let mut kinds = Vec::new();
    for document in lists.filter(|document| document["kind"] == "CustomResourceDefinition") {
        let crd: CustomResourceDefinition =
            serde_json::from_value(document).map_err(|error| cannot(&error))?;
        let of_requests = [REQUEST_OF_ANNOTATION, SCHEDULE_OF_ANNOTATION];
        let mut annotations = crd.metadata.annotations.iter().flatten();
        // Requests and their schedules have no graph.
        if !annotations.any(|(name, _)| of_requests.contains(&name.as_str())) {
            kinds.extend(Kind::of_crd(&crd));
        }
    }
    if kinds.is_empty() {
        return Err(cannot(&"there are none in it"));
    }
    Ok(kinds)
}

/// Returns the objects that are in a state, or ask for one, that the new graph does not have, by what is missing.
async fn lost(
    client: &Client,
    kind: &Kind,
    new: &Graph<'_>,
) -> Result<BTreeMap<String, Vec<String>>, Error> {
    let mut lost: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let listed = list(client, kind, None, None).await;
    let failed = |error: kube::Error| RequestError::new(format!("list {}", kind.id()), &error);
    for object in listed.map_err(failed)? {
        let view = View::of(kind, object);
        let name = match view.namespace() {
            Some(namespace) => format!("{namespace}/{}", view.name()),
            None => view.name().to_owned(),
        };
        let desired = view.desired.state.as_ref().map(StateName::as_str);
        let places = [
            ("in the state", view.state()),
            ("with the desired state", desired),
            ("with a visit to", view.pending_visit()),
        ];
        for (what, state) in places {
            if let Some(state) = state.filter(|state| new.named(state).is_none()) {
                let why = format!("objects {what} {state}, which the new graph does not have");
                lost.entry(why).or_default().push(name.clone());
            }
        }
    }
    Ok(lost)
}
