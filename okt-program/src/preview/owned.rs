//! The owned resources that a release would change: the code of the operator itself applies them, by a client whose
//! writes are only tried.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use http::Method;
use kube::Client;
use okt_core::{Lifecycle, StateId};
use okt_runtime::__program::{AllowedWrites, Cluster, Inventory, OwnedMemory, Owner, Pace, Site};
use okt_runtime::Application;
use okt_runtime::{Context, StateOnRecord};
use okt_runtime::{Resources, Watches};
use okt_sharding::gate::Gate;
use okt_sharding::ranges::Ranges;
use okt_telemetry::Telemetry;
use okt_wire::clock::Clock;
use okt_wire::object::lifecycle_of;
use okt_wire::texts::{panic_text, qualified, seconds};
use okt_wire::watch::Connection;
use serde::Serialize;
use serde_json::Value;

use super::difference::difference;
use super::dry_run::{Record, Tried};

/// How long the lists of other kinds may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// A change of an owned resource.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnedChange {
    /// The kind, the namespace and the name (e.g. `ConfigMap demo/settings`).
    pub(super) resource: String,
    /// The owner; none for what the program does when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<String>,
    pub(super) what: What,
    /// Whether it waits for a state in which the resource may change (`changes_in`).
    pub(super) waits: bool,
    /// What differs, in lines.
    pub(super) difference: String,
}

/// What would happen to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum What {
    Created,
    Changed,
    Deleted,
}

/// An application, and the caches of the kinds that it uses.
pub(super) struct Owned<'a, A: Application> {
    application: &'a A,
    client: &'a Client,
    cluster: Arc<Cluster>,
    record: &'a Record,
}

impl<'a, A: Application> Owned<'a, A> {
    /// Lists the kinds that an application uses, in one namespace or in all.
    ///
    /// # Errors
    ///
    /// If they are not listed within a minute.
    pub(super) async fn listed(
        application: &'a A,
        (client, record): (&'a Client, &'a Record),
        is_namespaced: bool,
        namespace: Option<String>,
    ) -> Result<Self, String> {
        let watches = A::watches(Watches::default());
        let cluster = Arc::new(Cluster::new(watches, is_namespaced, namespace));
        let listed = async {
            let mut becoming = cluster.becoming_known();
            while cluster.known() != Ranges::ALL && becoming.next().await.is_some() {}
        };
        let connection = Connection::new(client);
        tokio::select! {
            () = listed => {}
            () = cluster.watch(&connection, &Gate::Always, &|_| ()) => {}
            () = tokio::time::sleep(PATIENCE) => {
                let kinds = cluster.awaited_kinds().join(", ");
                return Err(format!("{kinds} objects were not listed within a minute"));
            }
        }
        Ok(Self {
            application,
            client,
            cluster,
            record,
        })
    }

    /// Returns the kinds that cannot be listed, each with the reason.
    pub(super) fn unlisted(&self) -> Vec<String> {
        self.cluster.unlisted_kinds()
    }

    /// Returns the workloads that a deletion of their owner in the foreground would take away, by kind.
    pub(super) fn exposed(&self) -> Vec<String> {
        self.cluster.exposed.kinds()
    }

    /// Returns what the application would change of the resources of an object, and what fails.
    pub(super) async fn changes(
        &self,
        object: A::Resource,
        owner: &str,
    ) -> (Vec<OwnedChange>, Vec<String>) {
        let object = Arc::new(object);
        self.cluster.note_references(Owner::of(&*object));
        self.cluster.note_recorded(Owner::of(&*object));
        let cx = Context::new(
            Arc::clone(&object),
            self.client.clone(),
            Arc::clone(&self.cluster),
            Clock::wall(),
            Gate::Always,
            Telemetry::none(Clock::wall()),
        );
        // Nothing is created for an object that is being deleted, or whose state is not known.
        let StateOnRecord::Known(state) = cx.state() else {
            return (Vec::new(), Vec::new());
        };
        if cx.is_deleting() {
            return (Vec::new(), Vec::new());
        }
        let limit = self.application.answer_limit();
        let declared = AssertUnwindSafe(self.application.resources(&cx, state)).catch_unwind();
        let declared = match tokio::time::timeout(limit, declared).await {
            Ok(Ok(Ok(declared))) => declared,
            Ok(Ok(Err(failure))) => return (Vec::new(), vec![failure.to_string()]),
            Ok(Err(panic)) => return (Vec::new(), vec![panic_text(&*panic)]),
            Err(_) => {
                let why = format!(
                    "`resources` did not answer for {} within {}",
                    state.name(),
                    seconds(limit)
                );
                return (Vec::new(), vec![why]);
            }
        };
        let life = lifecycle_of::<A::Resource>();
        self.cluster.exposed.note(life, &declared);
        let of = Owner::of(&*object);
        let (outdated, failures) = self.apply(of, state.id(), true, &declared).await;
        let mut changes = self.tried(owner);
        if outdated {
            self.apply(of, state.id(), false, &declared).await;
            let at_once: BTreeSet<_> = changes.iter().map(|it| it.resource.clone()).collect();
            let later = self.tried(owner).into_iter();
            let later = later.filter(|it| !at_once.contains(&it.resource));
            changes.extend(later.map(|it| OwnedChange { waits: true, ..it }));
        }
        (changes, failures)
    }

    /// Returns what was tried since the last call.
    fn tried(&self, owner: &str) -> Vec<OwnedChange> {
        let tried = self.record.take().into_iter();
        tried.filter_map(|it| change(&it, Some(owner))).collect()
    }

    /// Applies what is declared, what may change `now` or all of it; the writes are only tried.
    ///
    /// Returns whether anything waits for another state, and what fails.
    async fn apply(
        &self,
        owner: Owner<'_>,
        state: StateId,
        now: bool,
        declared: &Resources,
    ) -> (bool, Vec<String>) {
        let pace = Pace {
            occasion: (owner.meta.generation, state),
            backoff: okt_core::backoff::Backoff::default(),
            seed: 0,
        };
        let leave = AllowedWrites {
            creates: true,
            prunes: true,
            state: now.then_some(state),
        };
        let mut recorded = owner.recorded.to_vec();
        loop {
            let mut memory = OwnedMemory::default();
            let site = Site {
                client: self.client,
                cluster: &self.cluster,
                owner: owner.with_recorded(&recorded),
                may_write: &|| true,
            };
            let report = memory.apply(site, pace, leave, declared).await;
            // An unowned object is made only after the status of its owner records it.
            let to_record = memory.to_record.unwrap_or_default();
            if Inventory::of(&recorded).includes(&Inventory::of(&to_record)) {
                let failures = report.failures.iter();
                let failures = failures.map(|(_, failure)| failure.to_string()).collect();
                return (report.has_outdated(), failures);
            }
            let all: BTreeSet<String> = recorded.into_iter().chain(to_record).collect();
            recorded = all.into_iter().collect();
            self.cluster.note_recorded(owner.with_recorded(&recorded));
            // What was tried is tried again.
            self.record.take();
        }
    }
}

/// Returns the change that a write would be; none if it would change nothing that a user sees.
pub(super) fn change(tried: &Tried, owner: Option<&str>) -> Option<OwnedChange> {
    let (what, after) = match (&tried.method, &tried.before) {
        (&Method::DELETE, _) => (What::Deleted, None),
        (_, None) => (What::Created, Some(&tried.after)),
        (_, Some(_)) => (What::Changed, Some(&tried.after)),
    };
    let before = tried.before.as_ref();
    let difference = difference(before, after)?;
    Some(OwnedChange {
        resource: named(after.or(before)?),
        owner: owner.map(str::to_owned),
        what,
        waits: false,
        difference,
    })
}

fn named(object: &Value) -> String {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let name = qualified(metadata["namespace"].as_str(), name);
    format!("{} {name}", object["kind"].as_str().unwrap_or_default())
}
