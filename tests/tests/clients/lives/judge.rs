//! Judges a life by what the double has recorded.

use std::collections::BTreeSet;

use serde_json::Value;

use super::api::{Api, Kind};
use super::operator::Framework;

/// The recorded life of one website.
pub(super) struct Recording<'a> {
    pub(super) api: &'a Api,
    pub(super) framework: &'a Framework,
    pub(super) name: &'a str,
}

/// What is alive: the kind, the namespace and the name of each object.
type Alive = BTreeSet<String>;

impl Recording<'_> {
    /// The operator commits nothing from this mark on; a write that changes nothing commits nothing.
    ///
    /// The leases and the events of an operator are not of the website.
    pub(super) async fn nothing_was_written_since(&self, mark: u64) {
        let requests = self.requests(mark).await;
        let writes: Vec<_> = requests
            .iter()
            .filter(|it| !it["committed"].is_null() && it["name"] == *self.name)
            .filter(|it| it["resource"] != "leases" && it["resource"] != "events")
            .collect();
        assert!(
            writes.is_empty(),
            "{} writes at rest: {writes:#?}",
            self.framework.name
        );
    }

    /// The finalizer is there until the clean-up is done.
    pub(super) async fn the_clean_up_came_before_the_end_of_the_finalizer(&self) {
        let record = format!("{}-deleted", self.name);
        let records = self.api.versions(Kind::ConfigMap, &record).await;
        let cleaned = version(&records[0]);
        let websites = self.api.versions(Kind::Website, self.name).await;
        let held = websites.iter().rev();
        let held = held.skip_while(|it| finalizers(it) == 0 || it["type"] == "DELETED");
        let last = held.map(version).next().expect("it had a finalizer");
        let freed = websites.iter().map(version).find(|it| *it > last);
        let freed = freed.expect("the finalizer is gone");
        assert!(
            cleaned < freed,
            "the clean-up is version {cleaned}, and the finalizer went with {freed}"
        );
        let deletes = websites.iter();
        let marked = deletes.filter(|it| !it["object"]["metadata"]["deletionTimestamp"].is_null());
        let marked = marked.map(version).next().expect("it was deleted");
        assert!(
            marked < cleaned,
            "the clean-up is version {cleaned}, before the deletion {marked}"
        );
    }

    /// The operator deletes nothing: what it owns goes with its owner.
    pub(super) async fn the_operator_deleted_nothing(&self) {
        let deletes: Vec<_> = self
            .requests(0)
            .await
            .into_iter()
            .filter(|it| {
                let verb = it["verb"].as_str().unwrap_or_default();
                verb.starts_with("delete") && it["resource"] != "leases"
            })
            .collect();
        assert!(deletes.is_empty(), "{deletes:#?}");
    }

    /// The Deployment is created once, and once more after each deletion by another.
    pub(super) async fn the_deployment_was_created(&self, times: usize) {
        let deployments = self.api.versions(Kind::Deployment, self.name).await;
        let created = deployments.iter().filter(|it| it["type"] == "ADDED");
        assert_eq!(created.count(), times, "times the Deployment was created");
    }

    /// No Deployment gets an older spec than it had: neither a write that is repeated, nor a stale cache, nor the
    /// process before takes back what the user changed.
    pub(super) async fn the_deployment_never_went_back(&self) {
        let order = self.specs().await;
        let mut newest = 0;
        for deployment in self.api.versions(Kind::Deployment, self.name).await {
            if deployment["type"] == "DELETED" {
                continue;
            }
            let spec = deployment_spec(&deployment["object"]);
            let place = order.iter().rposition(|(_, it)| *it == spec);
            let place = place.unwrap_or_else(|| panic!("nobody asked for {spec:?}: {order:?}"));
            assert!(
                place >= newest,
                "back from {:?} to {spec:?}, version {}",
                order[newest],
                version(&deployment)
            );
            newest = place;
        }
    }

    /// The status reports a generation only once the Deployment has the spec of that generation, or a newer one.
    pub(super) async fn the_status_never_ran_ahead(&self) {
        let order = self.specs().await;
        let deployments = self.api.versions(Kind::Deployment, self.name).await;
        for website in self.api.versions(Kind::Website, self.name).await {
            let Some(observed) = website["object"]["status"]["observedGeneration"].as_u64() else {
                continue;
            };
            let at = version(&website);
            let before = deployments.iter().rev().find(|it| version(it) <= at);
            let before = before.expect("the Deployment comes before the status");
            let spec = deployment_spec(&before["object"]);
            let has = order.iter().rposition(|(_, it)| *it == spec);
            let reported = order.iter().rposition(|(it, _)| *it == observed);
            assert!(
                has >= reported,
                "version {at} reports generation {observed} while the Deployment has {spec:?}"
            );
        }
    }

    /// Returns the specs that the user asked for with their generations, oldest first.
    async fn specs(&self) -> Vec<(u64, (String, u64, u64))> {
        let mut specs = Vec::new();
        for website in self.api.versions(Kind::Website, self.name).await {
            let (spec, metadata) = (&website["object"]["spec"], &website["object"]["metadata"]);
            let generation = metadata["generation"].as_u64().expect("a generation");
            let spec = (
                text(&spec["image"]),
                number(&spec["replicas"]),
                number(&spec["port"]),
            );
            if specs.last().is_none_or(|(last, _)| *last != generation) {
                specs.push((generation, spec));
            }
        }
        specs
    }

    /// Returns the requests of the operator.
    async fn requests(&self, since: u64) -> Vec<Value> {
        let mut requests = self.api.requests(since).await;
        requests.retain(|it| {
            let client = it["client"].as_str().unwrap_or_default();
            self.framework.clients.contains(&client)
        });
        requests
    }
}

/// Returns the objects that are alive, but leases and events, which belong to no website.
pub(super) async fn alive(api: &Api) -> Alive {
    let mut alive = Alive::new();
    for version in api.all_versions().await {
        let (object, metadata) = (&version["object"], &version["object"]["metadata"]);
        let kind = text(&object["kind"]);
        if kind == "Lease" || kind == "Event" {
            continue;
        }
        let name = format!("{kind} {}", text(&metadata["name"]));
        if version["type"] == "DELETED" {
            alive.remove(&name);
        } else {
            alive.insert(name);
        }
    }
    alive
}

/// Returns the image, the replicas and the port of a Deployment.
fn deployment_spec(deployment: &Value) -> (String, u64, u64) {
    let spec = &deployment["spec"];
    let container = &spec["template"]["spec"]["containers"][0];
    (
        text(&container["image"]),
        number(&spec["replicas"]),
        number(&container["ports"][0]["containerPort"]),
    )
}

fn finalizers(version: &Value) -> usize {
    let finalizers = version["object"]["metadata"]["finalizers"].as_array();
    finalizers.map_or(0, Vec::len)
}

fn version(version: &Value) -> u64 {
    version["version"].as_u64().expect("a version")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
