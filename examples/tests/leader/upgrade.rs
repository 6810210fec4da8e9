//! An upgrade from the first version of a kind to the last one: replica by replica, once back, and to the end.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, CustomResourceExt, ResourceExt};
use okt_examples::tents::{v1, v1alpha1, v1beta1};
use okt_testing::{FeatureGate, Kubernetes, free_ports};
use rustix::process::Signal;
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::chaos::number;
use crate::replica::Replica;
use crate::tents::{apply, converted_at, specs, tents};
use crate::{STAGE, in_time, show_logs, until};

/// How many tents there are; `OKT_TENTS` sets another number.
const TENTS: usize = 40;

/// How often the user of all versions lists them.
const LISTED: Duration = Duration::from_secs(1);

/// The Service of the webhooks: it leads to a replica that accepts connections.
#[derive(Clone)]
struct Service {
    /// The port of each replica.
    ports: Arc<parking_lot::Mutex<BTreeMap<&'static str, u16>>>,
    port: u16,
}

impl Service {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let ports = Arc::default();
        let service = Self { ports, port };
        let led = service.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let led = led.clone();
                tokio::spawn(async move { led.lead(client).await });
            }
        });
        service
    }

    async fn lead(self, mut client: TcpStream) {
        let ports = self.ports.lock().clone();
        for port in ports.into_values() {
            if let Ok(mut replica) = TcpStream::connect(("127.0.0.1", port)).await {
                let _ended = copy_bidirectional(&mut client, &mut replica).await;
                return;
            }
        }
    }
}

/// A release of the operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Release {
    First,
    Last,
}

/// Three replicas on a real API server, and what the users see.
struct Camp {
    kubernetes: Kubernetes,
    service: Service,
    replicas: BTreeMap<&'static str, Replica>,
    ended: Vec<Replica>,
    users: Users,
}

impl Camp {
    /// Returns a camp without replicas, with tents of the first version.
    async fn pitched(kubernetes: Kubernetes, tents: usize) -> Self {
        let client = kubernetes.client();
        let crd = okt::crd::<v1alpha1::Tent>().expect("a CRD");
        apply(&client, &crd).await;
        Self {
            users: Users::arrive(client, tents).await,
            service: Service::open().await,
            replicas: BTreeMap::new(),
            ended: Vec::new(),
            kubernetes,
        }
    }

    /// Replaces a replica by one of a release.
    async fn replace(&mut self, name: &'static str, release: Release) {
        if let Some(mut before) = self.replicas.remove(name) {
            // Another program may come to listen there.
            self.service.ports.lock().remove(name);
            before.signal(Signal::TERM);
            assert!(before.end().await.success());
            self.ended.push(before);
        }
        let mut program = match release {
            Release::First => Command::new(env!("CARGO_BIN_EXE_tents-v1alpha1")),
            Release::Last => Command::new(env!("CARGO_BIN_EXE_tents")),
        };
        program
            .args(["run", "--leader-election", "--shards", "auto"])
            .args(["--lease-name", "tents"]);
        if release == Release::Last {
            let [port] = free_ports().expect("a port");
            self.service.ports.lock().insert(name, port);
            program.args(["--webhook-address", &format!("127.0.0.1:{port}")]);
        }
        let replica = Replica::start_program(name, self.kubernetes.kubeconfig(), program);
        self.replicas.insert(name, replica);
    }

    /// Waits until a replica acts on its part of the objects.
    async fn acts(&self, name: &str) {
        let what = format!("{name} acts");
        until(&what, async || {
            (self.replicas[name].ranges() > 0).then_some(())
        })
        .await;
    }

    /// Runs a subcommand of the last release.
    async fn last(&self, subcommand: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tents"));
        program
            .args(subcommand)
            .env("KUBECONFIG", self.kubernetes.kubeconfig())
            .kill_on_drop(true);
        let what = format!("{subcommand:?} has ended");
        in_time(&what, program.output()).await.expect("it runs")
    }

    async fn definition(&self) -> CustomResourceDefinition {
        let crds: Api<CustomResourceDefinition> = Api::all(self.kubernetes.client());
        crds.get(v1::Tent::crd_name()).await.expect("it is there")
    }

    /// Applies what `crd --union` of the last release prints, and lets the users have its versions.
    async fn apply_union(&self) {
        let union = okt::crd_union::<v1::Tent>(&self.definition().await).expect("a union");
        let client = self.kubernetes.client();
        apply(&client, &converted_at(self.service.port, union)).await;
        until("the definition trusts the webhook", async || {
            specs::<v1::Tent>(&client).await.ok()
        })
        .await;
        *self.users.versions.lock().await = vec!["v1alpha1", "v1beta1", "v1"];
    }

    /// Brings all objects over, and returns what was done.
    async fn migrate(&self, options: &[&str]) -> String {
        self.migrate_and_say(options).await.0
    }

    /// Brings all objects over, and returns what was done, and what was said meanwhile.
    async fn migrate_and_say(&self, options: &[&str]) -> (String, String) {
        let migrated = self.last(&[&["migrate"], options].concat()).await;
        assert!(migrated.status.success(), "{migrated:?}");
        let said = String::from_utf8_lossy(&migrated.stdout);
        let said = said.strip_prefix("tents.demo.okt.dev: ");
        let done = said.expect("the name of the definition").trim_end();
        let meanwhile = String::from_utf8_lossy(&migrated.stderr);
        (done.to_owned(), meanwhile.into_owned())
    }

    /// Replaces the definition: an apply would not remove what the webhook has written.
    async fn replace_definition(&self, mut definition: CustomResourceDefinition) {
        definition.metadata.resource_version = self.definition().await.resource_version();
        let crds: Api<CustomResourceDefinition> = Api::all(self.kubernetes.client());
        let name = v1::Tent::crd_name();
        let replaced = crds
            .replace(name, &PostParams::default(), &definition)
            .await;
        replaced.expect("it is accepted");
    }

    /// Checks that no piece of work was begun twice, by whichever replica.
    fn assert_each_work_begun_once(&self) {
        let mut begun = BTreeSet::new();
        let all = self.ended.iter().chain(self.replicas.values());
        let all = all.flat_map(|replica| replica.texts("a tent is "));
        let twice: Vec<_> = all.filter(|line| !begun.insert(line.clone())).collect();
        for line in twice.iter().take(1) {
            let uid = line.split(['"', '/']).nth(1).expect("the uid of a tent");
            for replica in self.ended.iter().chain(self.replicas.values()) {
                let lines = replica.texts("").into_iter();
                for line in lines.filter(|it| {
                    it.contains(uid)
                        || it.contains("ready")
                        || it.contains("stopping")
                        || it.contains("acts on")
                        || it.contains("go back")
                }) {
                    println!("{}: {line}", replica.name);
                }
            }
        }
        assert!(twice.is_empty(), "begun twice: {twice:#?}");
        println!("{} pieces of work, each begun once", begun.len());
    }
}

/// Users of all versions, who neither lose anything nor meet an error.
struct Users {
    client: Client,
    count: usize,
    /// The versions that are listed.
    versions: Arc<Mutex<Vec<&'static str>>>,
    laps: Arc<Mutex<usize>>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Users {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn name_of(number: usize) -> String {
    format!("tent-{number:04}")
}

impl Users {
    /// Creates tents of the first version, each with a field that later versions do not have.
    async fn arrive(client: Client, count: usize) -> Self {
        let api: Api<v1alpha1::Tent> = Api::default_namespaced(client.clone());
        for number in 0..count {
            let tent = json!({
                "apiVersion": "demo.okt.dev/v1alpha1", "kind": "Tent",
                "metadata": { "name": name_of(number) },
                "spec": { "size": 1, "site": format!("river/{number}"), "stoves": 1, "color": "red" },
            });
            let tent = serde_json::from_value(tent).expect("a tent");
            let created = api.create(&PostParams::default(), &tent).await;
            created.expect("it is accepted");
        }
        let mut users = Self {
            client,
            count,
            versions: Arc::new(Mutex::new(vec!["v1alpha1"])),
            laps: Arc::default(),
            tasks: Vec::new(),
        };
        users.list_all_versions();
        users
    }

    /// Lists all versions once a second.
    fn list_all_versions(&mut self) {
        let (client, count) = (self.client.clone(), self.count);
        let (versions, laps) = (Arc::clone(&self.versions), Arc::clone(&self.laps));
        let task = tokio::spawn(async move {
            loop {
                let versions = versions.lock().await;
                for version in &*versions {
                    let listed = match *version {
                        "v1" => specs::<v1::Tent>(&client).await,
                        "v1beta1" => specs::<v1beta1::Tent>(&client).await,
                        _ => specs::<v1alpha1::Tent>(&client).await,
                    };
                    assert_eq!(listed.expect("a list").len(), count);
                }
                drop(versions);
                *laps.lock().await += 1;
                sleep(LISTED).await;
            }
        });
        self.tasks.push(task.abort_handle());
    }

    /// Asks for another state of every tent, and changes a field that has another name later.
    async fn change_all(&self, state: &str, size: usize) {
        let api: Api<v1alpha1::Tent> = Api::default_namespaced(self.client.clone());
        let change =
            Patch::Merge(json!({ "spec": { "size": size, "lifecycle": { "state": state } } }));
        for number in 0..self.count {
            let changed = api
                .patch(&name_of(number), &PatchParams::default(), &change)
                .await;
            changed.expect("it is accepted");
        }
    }

    /// Tells the guests of one tent something, which only the last version can.
    async fn put_up_a_notice(&self) {
        let api: Api<v1::Tent> = Api::default_namespaced(self.client.clone());
        let notice = Patch::Merge(json!({ "spec": { "notice": "Quiet!" } }));
        let put = api
            .patch(&name_of(0), &PatchParams::default(), &notice)
            .await;
        put.expect("it is accepted");
    }

    /// Asks for tents that stand, in the last version, and waits until they do.
    async fn pitch_all(&self) {
        let api: Api<v1::Tent> = Api::default_namespaced(self.client.clone());
        let standing = Patch::Merge(json!({ "spec": { "lifecycle": { "state": "Standing" } } }));
        for number in 0..self.count {
            let changed = api
                .patch(&name_of(number), &PatchParams::default(), &standing)
                .await;
            changed.expect("it is accepted");
        }
        until("all tents stand", async || {
            sleep(Duration::from_millis(200)).await;
            let all = tents::<v1::Tent>(&self.client).await;
            let state = |tent: &v1::Tent| {
                let status = tent.status.as_ref()?.lifecycle.as_ref()?;
                status.state.known()
            };
            let stands = |tent| state(tent) == Some(v1::TentState::Standing);
            all.iter().all(stands).then_some(())
        })
        .await;
    }

    /// Waits until all tents are in a state, by its name in the first version.
    async fn see_all(&self, state: &str) {
        until(&format!("all tents are {state}"), async || {
            let all = tents::<v1alpha1::Tent>(&self.client).await;
            let is_there = |tent: &v1alpha1::Tent| {
                let status = tent.status.as_ref()?.lifecycle.as_ref()?;
                (format!("{:?}", status.state.known()?) == state).then_some(())
            };
            sleep(Duration::from_millis(200)).await;
            all.iter().all(|it| is_there(it).is_some()).then_some(())
        })
        .await;
    }

    /// Checks that every tent has what the users gave it, in the first version and in the last one.
    async fn assert_all_is_there(&self, state: &str, size: usize) {
        let first = specs::<v1alpha1::Tent>(&self.client).await.expect("a list");
        for number in 0..self.count {
            let spec = json!({
                "size": size, "site": format!("river/{number}"), "stoves": 1, "color": "red",
                "lifecycle": { "state": state },
            });
            assert_eq!(first[&name_of(number)], spec);
        }
    }
}

/// Returns the transitions and generations of all tents, by name.
async fn positions(client: &Client) -> BTreeMap<String, (u64, Option<i64>, u64)> {
    let all = tents::<v1::Tent>(client).await.into_iter();
    let position = |tent: v1::Tent| {
        let status = tent.status.as_ref().and_then(|it| it.lifecycle.clone());
        let status = status.expect("a position");
        let seen = (status.transition, tent.metadata.generation, status.jumps);
        (tent.name_any(), seen)
    };
    all.map(position).collect()
}

/// Counts the changes of all tents, by name.
fn count_changes(client: &Client) -> Arc<parking_lot::Mutex<BTreeMap<String, usize>>> {
    let counted = Arc::<parking_lot::Mutex<BTreeMap<_, _>>>::default();
    let (changes, api) = (
        Arc::clone(&counted),
        Api::<v1::Tent>::default_namespaced(client.clone()),
    );
    tokio::spawn(async move {
        let events = watcher(api, watcher::Config::default()).default_backoff();
        let mut events = events.boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::InitApply(tent)) => _ = changes.lock().insert(tent.name_any(), 0),
                Ok(Event::Apply(tent)) => *changes.lock().entry(tent.name_any()).or_default() += 1,
                _ => {}
            }
        }
    });
    counted
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn a_kind_goes_from_v1alpha1_to_v1_replica_by_replica_and_once_back() {
    let _stage = STAGE.lock().await;
    let Some(kubernetes) = Kubernetes::start_or_skip("upgrade")
        .await
        .expect("a server")
    else {
        return;
    };
    show_logs();
    let client = kubernetes.client();
    let mut camp = Camp::pitched(kubernetes, number("OKT_TENTS", TENTS)).await;
    for name in ["a", "b", "c"] {
        camp.replace(name, Release::First).await;
    }
    camp.users.see_all("Standing").await;

    // Forward, while all tents are on their way.
    let preview = camp.last(&["preview"]).await;
    let preview = String::from_utf8_lossy(&preview.stdout).into_owned();
    assert!(
        preview.contains("apply the output of `crd --union`"),
        "{preview}"
    );
    assert!(!preview.contains("cannot read it"), "{preview}");
    assert!(!preview.contains("would lose data"), "{preview}");
    camp.users.change_all("Packed", 2).await;
    camp.replace("a", Release::Last).await;
    camp.apply_union().await;
    camp.acts("a").await;
    camp.replace("b", Release::Last).await;
    camp.acts("b").await;
    camp.users.put_up_a_notice().await;
    camp.users.see_all("Packed").await;
    camp.users.assert_all_is_there("Packed", 2).await;

    // Back to the first release, again on their way.
    camp.users.change_all("Standing", 3).await;
    *camp.users.versions.lock().await = vec!["v1alpha1"];
    let done = camp.migrate(&["--to", "v1alpha1"]).await;
    assert_eq!(done, "all objects are stored as v1alpha1");
    for name in ["a", "b"] {
        camp.replace(name, Release::First).await;
    }
    let first = okt::crd::<v1alpha1::Tent>().expect("a CRD");
    camp.replace_definition(first).await;
    for name in ["a", "b"] {
        camp.acts(name).await;
    }
    camp.users.see_all("Standing").await;
    camp.users.assert_all_is_there("Standing", 3).await;

    // Forward to the end.
    camp.users.change_all("Packed", 4).await;
    camp.replace("c", Release::Last).await;
    camp.apply_union().await;
    for name in ["a", "b"] {
        camp.replace(name, Release::Last).await;
        camp.acts(name).await;
    }
    camp.acts("c").await;
    camp.users.see_all("Packed").await;
    let crd = okt::crd::<v1::Tent>().expect("a CRD");
    apply(&client, &converted_at(camp.service.port, crd.clone())).await;
    migrated(&camp).await;
    camp.users.assert_all_is_there("Packed", 4).await;
    let stowed = positions(&client).await;
    assert!(
        stowed.values().all(|(_, _, jumps)| *jumps == 0),
        "{stowed:?}"
    );

    // Nobody uses the earlier versions any more.
    *camp.users.versions.lock().await = vec!["v1"];
    let mut unserved = converted_at(camp.service.port, crd);
    for version in &mut unserved.spec.versions {
        version.served = version.storage;
    }
    apply(&client, &unserved).await;
    let done = camp.migrate(&[]).await;
    assert_eq!(done, "all objects are stored as v1");
    unserved.spec.versions.retain(|it| it.storage);
    unserved.spec.conversion = None;
    camp.replace_definition(unserved).await;
    camp.users.pitch_all().await;
    let last = specs::<v1::Tent>(&client).await.expect("a list");
    assert_eq!(last[&name_of(0)]["notice"], "Quiet!");
    assert_eq!(last.len(), camp.users.count);
    camp.assert_each_work_begun_once();
    let lister = &camp.users.tasks[0];
    assert!(!lister.is_finished(), "a list failed");
    println!(
        "{} tents, listed {} times in all versions, each time without an error",
        camp.users.count,
        camp.users.laps.lock().await
    );
    camp.kubernetes.stop().await;
}

#[tokio::test]
#[ignore = "needs a real API server; run with --include-ignored"]
async fn kubernetes_itself_brings_all_objects_over_where_it_can() {
    let _stage = STAGE.lock().await;
    let options = Kubernetes::options().feature_gate(FeatureGate::StorageVersionMigrator, true);
    let Some(kubernetes) = options.start_or_skip("migration").await.expect("a server") else {
        return;
    };
    show_logs();
    let client = kubernetes.client();
    let mut camp = Camp::pitched(kubernetes, 10).await;
    camp.replace("a", Release::Last).await;
    camp.apply_union().await;
    camp.acts("a").await;
    camp.users.see_all("Standing").await;
    let crd = okt::crd::<v1::Tent>().expect("a CRD");
    apply(&client, &converted_at(camp.service.port, crd)).await;
    let before = positions(&client).await;
    let (done, meanwhile) = camp.migrate_and_say(&[]).await;
    assert_eq!(done, "all objects are stored as v1, none as v1alpha1");
    for own in ["does not bring", "are written as"] {
        assert!(!meanwhile.contains(own), "{meanwhile}");
    }
    let stored = camp.definition().await.status;
    let stored = stored.and_then(|it| it.stored_versions);
    assert_eq!(stored, Some(vec!["v1".to_owned()]));
    assert_eq!(positions(&client).await, before);
    camp.kubernetes.stop().await;
}

/// Lets all tents be stored as `v1`: nobody acts upon that.
async fn migrated(camp: &Camp) {
    let client = camp.kubernetes.client();
    let changes = count_changes(&client);
    until("the changes are watched", async || {
        (changes.lock().len() == camp.users.count).then_some(())
    })
    .await;
    let before = positions(&client).await;
    let begun = Instant::now();
    let done = camp.migrate(&[]).await;
    assert_eq!(done, "all objects are stored as v1, none as v1alpha1");
    let stored = camp
        .definition()
        .await
        .status
        .and_then(|it| it.stored_versions);
    assert_eq!(stored, Some(vec!["v1".to_owned()]));
    assert_eq!(positions(&client).await, before);
    until("each tent was written once", async || {
        let changes = changes.lock();
        assert!(changes.values().all(|it| *it <= 1), "{changes:?}");
        changes.values().all(|it| *it == 1).then_some(())
    })
    .await;
    println!("migrated in {:?}", begun.elapsed());
    // Once more there is nothing to do.
    let done = camp.migrate(&[]).await;
    assert_eq!(done, "all objects are stored as v1 already");
}
