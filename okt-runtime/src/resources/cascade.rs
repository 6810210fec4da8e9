//! Workloads that `kubectl delete --cascade=foreground` takes away while work on the way out still runs.

use std::collections::BTreeSet;

use okt_core::{Graph, Mark};
use parking_lot::Mutex;

use super::declared::{Declared, DeclaredOwner, Resources};

/// The kinds of workloads that go before their owner when that is deleted in the foreground, as Argo CD does by default.
#[derive(Debug, Default)]
pub struct Exposed(Mutex<BTreeSet<String>>);

impl Exposed {
    /// Notes the workloads among declared resources; warns of each kind once.
    pub fn note(&self, graph: Option<&Graph<'_>>, resources: &Resources) {
        if !graph.is_some_and(works_on_the_way_out) {
            return;
        }
        for declared in &resources.declared {
            let Some(kind) = workload(declared) else {
                continue;
            };
            let mut kinds = self.0.lock();
            if kinds.insert(kind.to_owned()) {
                tracing::warn!(
                    kind,
                    "`kubectl delete --cascade=foreground` of its owner deletes it while the work on the way out runs: if that work needs it, declare it `unowned`"
                );
            }
        }
    }

    /// Returns the kinds so far.
    pub fn kinds(&self) -> Vec<String> {
        let kinds = self.0.lock();
        kinds.iter().cloned().collect()
    }
}

/// Returns whether an object that is deleted has work to do before it is gone.
fn works_on_the_way_out(graph: &Graph<'_>) -> bool {
    graph.iter().any(|(from, state)| {
        let out = graph.out(from).and_then(|to| graph.get(to));
        !state.is(Mark::Leaf) && out.is_some_and(|state| !state.is(Mark::Idle))
    })
}

/// Returns the kind of a workload that has an owner reference.
fn workload(declared: &Declared) -> Option<&str> {
    const WORKLOADS: [(&str, &str); 6] = [
        ("v1", "Pod"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "Job"),
    ];
    let object = declared.object.as_ref().ok()?;
    let (version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let is_exposed = declared.owner != DeclaredOwner::None && WORKLOADS.contains(&(version, kind));
    is_exposed.then_some(kind)
}
