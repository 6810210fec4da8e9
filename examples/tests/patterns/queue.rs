//! A queue and its operator: no message is lost, and each step has its effect once, whatever crashes.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use okt::{Application, Operator, RequestOutcome, Requests, crd};
use okt_examples::queue::{
    Backup, BackupArgs, Model, Queue, QueueMemory, QueueState, Queues, Restore, RestoreArgs,
    no_node_went_early,
};
use okt_testing::ApiServer;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

const NAME: &str = "orders";

/// A cluster with one queue.
struct Land {
    server: ApiServer,
    servers: Model,
    queues: Api<Queue>,
    operator: JoinHandle<()>,
}

impl Land {
    async fn with_nodes(nodes: u32) -> Self {
        let server = ApiServer::new();
        let user = server.client();
        let mut definitions = vec![crd::<Queue>().expect("a CRD")];
        for kind in Queues::<Model>::requests(Requests::default()).kinds {
            definitions.extend(kind.crds().expect("CRDs"));
        }
        for definition in definitions {
            let made = Api::all(user.clone())
                .create(&PostParams::default(), &definition)
                .await;
            made.expect("the CRD is accepted");
        }
        let servers = Model::default();
        let land = Self {
            operator: start(&server, &servers),
            queues: Api::default_namespaced(user),
            server,
            servers,
        };
        let queue = json!({
            "apiVersion": "demo.okt.dev/v1", "kind": "Queue",
            "metadata": { "name": NAME }, "spec": { "nodes": nodes, "version": "3.13" },
        });
        let queue = serde_json::from_value(queue).expect("a queue");
        let made = land.queues.create(&PostParams::default(), &queue).await;
        made.expect("it is accepted");
        land
    }

    /// Ends the operator as SIGKILL would, and starts another one.
    async fn kill(&mut self) {
        self.operator.abort();
        let _ = (&mut self.operator).await;
        self.operator = start(&self.server, &self.servers);
    }

    async fn edit(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let edited = self
            .queues
            .patch(NAME, &PatchParams::default(), &patch)
            .await;
        edited.expect("it is accepted");
    }

    async fn queue(&self) -> Option<Queue> {
        self.queues.get_opt(NAME).await.expect("an answer")
    }

    /// Returns the state on record, and what is remembered.
    async fn remembered(&self) -> (Option<QueueState>, QueueMemory) {
        let status = self.queue().await.and_then(|queue| queue.status);
        let position = status.and_then(|status| status.lifecycle);
        position.map_or_else(Default::default, |position| {
            let memory = position.memory.map(|memory| memory.value);
            let memory = memory.map(|it| serde_json::from_value(it).expect("a memory"));
            (position.state.known(), memory.unwrap_or_default())
        })
    }

    /// Waits until something is so; it is looked at every second.
    async fn until(&mut self, what: &str, mut so: impl AsyncFnMut(&mut Self) -> bool) {
        let since = Instant::now();
        while !so(self).await {
            let status = json!(self.queue().await.map(|queue| queue.status));
            let waits = since.elapsed() < Duration::from_hours(3);
            assert!(waits, "waited in vain until {what}: {status:#}");
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns whether the queue rests with what its spec asks for.
    async fn is_settled(&self) -> bool {
        let (state, memory) = self.remembered().await;
        let spec = self.queue().await.expect("a queue").spec;
        let is_so = memory.nodes == spec.nodes && memory.version == spec.version;
        state == Some(QueueState::Running) && is_so
    }

    async fn until_settled(&mut self) {
        let settled = async |land: &mut Self| land.is_settled().await;
        self.until("it is settled", settled).await;
    }

    /// Returns how many writes of the status the operator has made, and how many transitions there were.
    async fn costs(&self) -> (usize, u64) {
        let requests = self.server.requests().into_iter();
        let of_status = requests.filter(|request| {
            request.is_write()
                && request.resource == "queues"
                && request.subresource.as_deref() == Some("status")
        });
        let status = self.queue().await.and_then(|queue| queue.status);
        let transition = status.and_then(|it| it.lifecycle).map(|it| it.transition);
        (of_status.count(), transition.unwrap_or_default())
    }
}

fn start(server: &ApiServer, servers: &Model) -> JoinHandle<()> {
    let queues = Queues {
        servers: servers.clone(),
    };
    let operator = Operator::new(server.client_named("operator"), queues).virtual_time();
    tokio::spawn(async move { operator.run(pending()).await.expect("it runs") })
}

#[tokio::test(start_paused = true)]
async fn nodes_are_drained_before_they_go_and_upgraded_one_after_the_other() {
    let mut land = Land::with_nodes(4).await;
    land.until_settled().await;
    land.edit(json!({ "nodes": 2, "version": "4.0" })).await;
    land.until_settled().await;
    let drained_last = [
        "create user of orders",
        "upgrade orders/node-3 to 4.0",
        "upgrade orders/node-2 to 4.0",
        "upgrade orders/node-1 to 4.0",
        "upgrade orders/node-0 to 4.0",
        "drain orders/node-3",
        "drain orders/node-2",
    ];
    assert_eq!(land.servers.effects(), drained_last);
    let sets: Api<StatefulSet> = Api::default_namespaced(land.server.client());
    let set = sets.get(NAME).await.expect("a StatefulSet");
    assert_eq!(set.spec.replicas, Some(2));
    assert!(no_node_went_early(&land.server));
    let deleted = land.queues.delete(NAME, &DeleteParams::default()).await;
    deleted.expect("a deletion");
    land.until("it is gone", async |land| land.queue().await.is_none())
        .await;
    assert_eq!(
        land.servers.effects().last().expect("an effect"),
        "drain orders/node-1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_transition_is_one_write_and_each_step_one_more() {
    let mut land = Land::with_nodes(5).await;
    land.until_settled().await;
    let (writes, transitions) = land.costs().await;
    land.edit(json!({ "nodes": 2 })).await;
    land.until_settled().await;
    let (after, now) = land.costs().await;
    assert_eq!(now - transitions, 2, "to Resizing and back");
    // One more says that the StatefulSet is as declared again.
    let (steps, resources) = (3, 1);
    assert_eq!((after - writes) as u64, 2 + steps + resources);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_be_drained_keeps_all_nodes_and_is_named() {
    let mut land = Land::with_nodes(4).await;
    land.until_settled().await;
    land.servers.fail("node-2", 100);
    land.edit(json!({ "nodes": 1 })).await;
    let failed = async |land: &mut Land| land.remembered().await.0 == Some(QueueState::Failed);
    land.until("it has failed", failed).await;
    assert_eq!(land.remembered().await.1.nodes, 4);
    let status = land.queue().await.and_then(|queue| queue.status);
    let ready = status.expect("a status").conditions;
    let ready = ready.iter().find(|it| it.type_ == "Ready").expect("Ready");
    assert!(ready.message.contains("drain/node-2"), "{}", ready.message);
    let drains = land.servers.calls();
    let of_node = |node: &str| {
        let is_of = |call: &&String| call.starts_with(&format!("drain orders/{node} "));
        drains.iter().filter(is_of).count()
    };
    assert_eq!(
        [of_node("node-3"), of_node("node-2"), of_node("node-1")],
        [1, 5, 0]
    );
    // Somebody mends the node, and lets the queue go on.
    land.servers.fail("node-2", 0);
    land.edit(json!({ "lifecycle": { "state": "Running", "request": "mended" } }))
        .await;
    land.until_settled().await;
    assert!(no_node_went_early(&land.server));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_failed_before_it_had_a_user_gets_one_when_somebody_lets_it_go_on() {
    let mut land = Land::with_nodes(2).await;
    land.servers.fail("user", 5);
    let failed = async |land: &mut Land| land.remembered().await.0 == Some(QueueState::Failed);
    land.until("it has failed", failed).await;
    land.edit(json!({ "lifecycle": { "state": "Running", "request": "mended" } }))
        .await;
    land.until_settled().await;
    assert_eq!(land.remembered().await.1.user, "user-0");
    assert_eq!(land.servers.effects(), ["create user of orders"]);
}

#[tokio::test(start_paused = true)]
async fn a_backup_is_taken_and_restored_by_requests_whatever_crashes_between() {
    let mut land = Land::with_nodes(1).await;
    land.until_settled().await;
    let backups: Api<Backup> = Api::default_namespaced(land.server.client());
    let bucket = "nightly".to_owned();
    let backup = Backup::new("nightly", NAME, BackupArgs { bucket });
    let made = backups.create(&PostParams::default(), &backup).await;
    made.expect("it is accepted");
    land.kill().await;
    let taken = async |_: &mut Land| {
        let backup = backups.get("nightly").await.expect("it is there");
        let outcome = backup.status.and_then(|it| it.outcome);
        outcome == Some(RequestOutcome::Reached)
    };
    land.until("a backup is taken", taken).await;
    let status = backups.get("nightly").await.expect("it is there").status;
    let backup = status.expect("a status").result.expect("a result").backup;
    let remembered = land.remembered().await.1.backups;
    assert_eq!(remembered, std::slice::from_ref(&backup));

    let restores: Api<Restore> = Api::default_namespaced(land.server.client());
    for (name, backup) in [("other", "none".to_owned()), ("own", backup.clone())] {
        let restore = Restore::new(name, NAME, RestoreArgs { backup });
        let made = restores.create(&PostParams::default(), &restore).await;
        made.expect("it is accepted");
    }
    let failed = async |_: &mut Land| {
        let restore = restores.get("other").await.expect("it is there");
        restore.status.and_then(|it| it.outcome) == Some(RequestOutcome::Failed)
    };
    land.until("there is no such backup", failed).await;
    // The queue holds after a restore that failed; somebody lets it go on.
    land.edit(json!({ "lifecycle": { "state": "Running", "request": "go on" } }))
        .await;
    let restored = format!("restore {NAME} from {backup}");
    let own = async |land: &mut Land| land.servers.effects().last() == Some(&restored);
    land.until("it is restored", own).await;
}

/// Kills the operator at random moments. `OKT_QUEUE_KILLS` sets how often, `OKT_SEED` the moments.
#[tokio::test(start_paused = true)]
async fn killed_at_random_every_step_has_its_effect_once() {
    let number = |name: &str, usual: u64| -> u64 {
        let set = std::env::var(name).ok();
        set.map_or(usual, |text| text.parse().expect("a number"))
    };
    let (kills, mut seed) = (number("OKT_QUEUE_KILLS", 40), number("OKT_SEED", 7));
    println!("OKT_QUEUE_KILLS={kills} OKT_SEED={seed}");
    let mut random = move |below: u64| {
        // xorshift64*: <https://doi.org/10.18637/jss.v072.i06>
        seed ^= seed >> 12;
        seed ^= seed << 25;
        seed ^= seed >> 27;
        seed.wrapping_mul(0x2545_F491_4F6C_DD1D) % below
    };
    let mut land = Land::with_nodes(3).await;
    land.until_settled().await;
    let (mut killed, mut version) = (0, 0);
    while killed < kills {
        let before = land.servers.effects().len();
        let (nodes, memory) = (1 + random(6), land.remembered().await.1);
        version += 1;
        let spec = json!({ "nodes": nodes, "version": version.to_string() });
        land.edit(spec).await;
        let settled = async |land: &mut Land| {
            if killed < kills && random(30) == 0 {
                killed += 1;
                sleep(Duration::from_millis(random(1000))).await;
                land.kill().await;
            }
            land.is_settled().await
        };
        land.until("it is settled", settled).await;
        let mut expected: Vec<String> = (0..memory.nodes)
            .rev()
            .map(|node| format!("upgrade {NAME}/node-{node} to {version}"))
            .collect();
        let surplus = nodes..u64::from(memory.nodes);
        expected.extend(
            surplus
                .rev()
                .map(|node| format!("drain {NAME}/node-{node}")),
        );
        assert_eq!(
            land.servers.effects()[before..],
            expected,
            "after {killed} kills"
        );
    }
    assert!(no_node_went_early(&land.server));
    let (calls, effects) = (land.servers.calls().len(), land.servers.effects().len());
    println!("{killed} kills: {effects} effects by {calls} calls");
    assert!(calls > effects, "some call was repeated under its id");
}
