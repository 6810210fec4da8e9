//! The tables of places on the API server: one lease for each limit and group, changed by compare-and-swap.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use okt_wire::keys::PLACES_LABEL;
use okt_wire::places::{LimitKey, LimitPlace, LimitTable};
use okt_wire::scope::with_name;
use okt_wire::texts::{LastError, api_message};
use okt_wire::watch::{Connection, retried};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

/// How long a free place may wait for the first object before others pass it.
const GRACE: Duration = Duration::from_secs(30);

/// How long a table without places is kept.
const KEPT: Duration = Duration::from_hours(24);

/// How long nothing is given out after somebody has deleted a table with places: moves by them may be on their way.
const LOST: Duration = Duration::from_secs(15);

/// How often a table is read again because somebody else has changed it, before the caller is told so.
const ATTEMPTS: u32 = 5;

/// The tables of the limits of an operator.
pub(super) struct Tables {
    /// The group of replicas.
    replicas: String,
    crd: String,
    leases: Api<Lease>,
    known: Mutex<BTreeMap<String, KnownTable>>,
    /// The leases that are no tables that this release can read.
    unreadable: Mutex<BTreeSet<String>>,
    /// The tables that others have deleted although they had places, and when.
    lost: Mutex<BTreeMap<String, Instant>>,
}

/// A table as it was seen last.
#[derive(Clone)]
pub(super) struct KnownTable {
    pub(super) key: LimitKey,
    pub(super) table: LimitTable,
    version: String,
    uid: String,
    /// When it was written, by the clock of the writer.
    written: Option<Timestamp>,
    /// When this process has seen its content change.
    pub(super) changed: Instant,
}

impl KnownTable {
    /// Returns whether the first one that waits has not moved for so long that others pass it.
    pub(super) fn passes(&self) -> bool {
        self.changed.elapsed() >= GRACE
    }

    /// Returns whether it has had no places for long.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let is_old = self.written.is_some_and(|written| {
            let age: Result<Duration, _> = now.duration_since(written).try_into();
            age.is_ok_and(|age| age > KEPT)
        });
        let waits = self.table.rows.iter().any(|row| row.first.is_some());
        self.table.places.is_empty() && self.table.max.is_none() && !waits && is_old
    }
}

impl Tables {
    pub(super) fn new(client: &Client, (replicas, namespace): (&str, &str), crd: &str) -> Self {
        Self {
            replicas: replicas.to_owned(),
            crd: crd.to_owned(),
            leases: Api::namespaced(client.clone(), namespace),
            known: Mutex::default(),
            unreadable: Mutex::default(),
            lost: Mutex::default(),
        }
    }

    /// Watches the tables; `seen` is called after each change.
    pub(super) async fn watch(&self, connection: &Connection, seen: impl Fn()) {
        let config =
            watcher::Config::default().labels(&format!("{PLACES_LABEL}={}", self.replicas));
        let client = connection.for_watch("Lease");
        let namespace = self.leases.namespace().unwrap_or_default();
        let leases: Api<Lease> = Api::namespaced(client, namespace);
        let mut events = retried(watcher(leases, config)).boxed();
        let (mut list, mut errors) = (Vec::new(), LastError::default());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => list.clear(),
                Ok(Event::InitApply(lease)) => list.push(lease),
                Ok(Event::InitDone) => {
                    errors.end();
                    for name in self.names() {
                        let mut names = list.iter().map(|lease| lease.metadata.name.as_ref());
                        if !names.any(|listed| listed == Some(&name)) {
                            self.forget(&name);
                        }
                    }
                    list.drain(..).for_each(|lease| self.note(&lease));
                }
                Ok(Event::Apply(lease)) => self.note(&lease),
                Ok(Event::Delete(lease)) => {
                    self.forget(lease.metadata.name.as_deref().unwrap_or_default());
                }
                Err(error) => {
                    errors.warn("cannot watch the places of limits", &self.replicas, &error);
                    continue;
                }
            }
            seen();
        }
    }

    /// Notes a lease as the API server has it.
    fn note(&self, lease: &Lease) {
        let name = lease.metadata.name.clone().unwrap_or_default();
        let Some((key, table)) = LimitTable::read(lease) else {
            self.known.lock().remove(&name);
            self.unreadable.lock().insert(name);
            return;
        };
        self.unreadable.lock().remove(&name);
        if key.crd != self.crd {
            return;
        }
        let mut known = self.known.lock();
        let before = known.get(&name);
        let changed = before
            .filter(|before| before.table == table)
            .map_or_else(Instant::now, |before| before.changed);
        let written = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.renew_time.as_ref());
        let seen = KnownTable {
            key,
            table,
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
            uid: lease.metadata.uid.clone().unwrap_or_default(),
            written: written.map(|time| time.0),
            changed,
        };
        known.insert(name, seen);
    }

    /// Notes that there is no such lease.
    fn forget(&self, name: &str) {
        self.unreadable.lock().remove(name);
        let gone = self.known.lock().remove(name);
        if gone.is_some_and(|gone| !gone.table.places.is_empty()) {
            self.lost.lock().insert(name.to_owned(), Instant::now());
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.known.lock().keys().cloned().collect();
        names.extend(self.unreadable.lock().iter().cloned());
        names
    }

    /// Returns whether somebody has just deleted a table with places.
    pub(super) fn is_lost(&self, key: &LimitKey) -> bool {
        let mut lost = self.lost.lock();
        lost.retain(|_, at| at.elapsed() < LOST);
        lost.contains_key(&key.lease(&self.replicas))
    }

    /// Returns all tables.
    pub(super) fn all(&self) -> Vec<KnownTable> {
        self.known.lock().values().cloned().collect()
    }

    /// Returns a table.
    pub(super) fn get(&self, key: &LimitKey) -> Option<KnownTable> {
        self.known.lock().get(&key.lease(&self.replicas)).cloned()
    }

    /// Returns the place of an object in a limit, with the table that has it.
    pub(super) fn place(&self, limit: &str, uid: &str) -> Option<(LimitKey, LimitPlace)> {
        let known = self.known.lock();
        let mut tables = known.values().filter(|it| it.key.limit == limit);
        tables.find_map(|it| Some((it.key.clone(), it.table.of(uid)?.clone())))
    }

    /// Returns whether an object has a place in any limit.
    pub(super) fn has(&self, uid: &str) -> bool {
        let known = self.known.lock();
        known.values().any(|it| it.table.of(uid).is_some())
    }

    /// Changes a table, which is created if it is missing. `change` returns nothing if the table is to stay as it is, and
    /// is called again with what is there if somebody else has changed it meanwhile.
    ///
    /// # Errors
    ///
    /// Why the table cannot be written. A retry may help.
    pub(super) async fn change(
        &self,
        key: &LimitKey,
        now: Timestamp,
        mut change: impl FnMut(&LimitTable) -> Option<LimitTable>,
    ) -> Result<(), String> {
        let name = key.lease(&self.replicas);
        for attempt in 0..ATTEMPTS {
            if self.unreadable.lock().contains(&name) {
                return Err(format!(
                    "the Lease {name} cannot be read: bring back the release that wrote it, or delete it"
                ));
            }
            let known = self.get(key);
            let before = known.as_ref().map(|it| &it.table);
            let Some(after) = change(before.unwrap_or(&LimitTable::default())) else {
                return Ok(());
            };
            if before == Some(&after) {
                return Ok(());
            }
            let written = match &known {
                Some(known) => self.replace(known, key, &after, now).await,
                None => self.create(key, &after, now).await,
            };
            match written {
                Ok(lease) => {
                    self.note(&lease);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                    self.read(key).await.map_err(|error| api_message(&error))?;
                }
                Err(error) if attempt == 0 => {
                    // The answer may be lost: an entry with the own uid is the own place (L5).
                    let why = api_message(&error);
                    self.read(key).await.map_err(|_| why.clone())?;
                    let is_written = self.get(key).is_some_and(|it| it.table == after);
                    return if is_written { Ok(()) } else { Err(why) };
                }
                Err(error) => return Err(api_message(&error)),
            }
        }
        Err("other replicas change the table all the time".to_owned())
    }

    async fn replace(
        &self,
        known: &KnownTable,
        key: &LimitKey,
        table: &LimitTable,
        now: Timestamp,
    ) -> kube::Result<Lease> {
        let patch = json!({
            "metadata": {
                "uid": known.uid,
                "resourceVersion": known.version,
                "annotations": table.annotations(key),
            },
            "spec": spec(table, now),
        });
        let name = key.lease(&self.replicas);
        let patch = Patch::Merge(patch);
        self.leases
            .patch(&name, &PatchParams::default(), &patch)
            .await
    }

    async fn create(
        &self,
        key: &LimitKey,
        table: &LimitTable,
        now: Timestamp,
    ) -> kube::Result<Lease> {
        let lease = json!({
            "metadata": {
                "name": key.lease(&self.replicas),
                "labels": { (PLACES_LABEL): self.replicas },
                "annotations": table.annotations(key),
            },
            "spec": spec(table, now),
        });
        let lease = serde_json::from_value(lease).map_err(kube::Error::SerdeError)?;
        self.leases.create(&PostParams::default(), &lease).await
    }

    /// Reads a table again.
    async fn read(&self, key: &LimitKey) -> kube::Result<()> {
        let name = key.lease(&self.replicas);
        let found = self.leases.list(&with_name(&name)).await?.items;
        match found.first() {
            Some(lease) => self.note(lease),
            None => self.forget(&name),
        }
        Ok(())
    }

    /// Deletes a table, if it is still as it was seen.
    pub(super) async fn delete(&self, known: &KnownTable) {
        let name = known.key.lease(&self.replicas);
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: Some(known.uid.clone()),
            resource_version: Some(known.version.clone()),
        });
        if let Err(error) = self.leases.delete(&name, &params).await {
            tracing::debug!(lease = name, "not deleted: {}", api_message(&error));
        }
    }
}

/// Returns the spec of a lease, for people.
fn spec(table: &LimitTable, now: Timestamp) -> serde_json::Value {
    let number = table.max.or(table.number).unwrap_or_default();
    json!({
        "holderIdentity": format!("{} of {number} inside", table.places.len()),
        "renewTime": format!("{now:.6}"),
    })
}
