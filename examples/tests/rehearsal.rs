//! Rehearsals of the operators of notebooks and of queues with injected faults; only the servers are models.
//!
//! The tour and `kills` run the operator of notebooks with real servers, by the clock.

use okt::Failure;
use okt_examples::notes_operator::{Keeper, Model, NotesState};
use okt_examples::queue::{self, QueueState, Queues, Servers, no_node_went_early};
use okt_examples::tents::v1::{Camp, TentState};
use okt_testing::Rehearsal;
use serde_json::{Value, json};

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_notebook_reaches_the_same_end_despite_every_fault() {
    Rehearsal::of(|| Keeper::of(Model::default()))
        .object(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Notes",
            "metadata": { "name": "diary" },
            "spec": {},
        }))
        .ask_for(json!({ "visit": { "state": "Servicing", "request": "nightly-1" } }))
        .patch(json!({ "spec": { "maximumBodyBytes": 4096 } }))
        .happens("a crash of the server", |keeper| {
            keeper.servers().crash("diary");
        })
        .ask_for(json!({ "state": "ReadOnly" }))
        .delete()
        .ends_in(NotesState::End)
        .effects(|keeper| keeper.servers().effects())
        .check();
}

fn orders() -> Value {
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Queue",
        "metadata": { "name": "orders" },
        "spec": { "nodes": 3, "version": "3.13" },
    })
}

#[test]
#[ignore = "takes minutes; run with --include-ignored"]
fn a_queue_reaches_the_same_end_with_the_same_effects_despite_every_fault() {
    Rehearsal::of(Queues::<queue::Model>::default)
        .object(orders())
        .patch(json!({ "spec": { "nodes": 1, "version": "4.0" } }))
        .request("Backup", "nightly-1", json!({ "bucket": "nightly" }))
        .request("Restore", "again", json!({ "backup": "nightly-6" }))
        .delete()
        .holds("no node goes before it is drained", no_node_went_early)
        .ends_in(QueueState::Gone)
        .effects(|queues| queues.servers.effects())
        .check();
}

#[test]
#[ignore = "takes a minute; run with --include-ignored"]
fn a_tent_whose_user_knows_only_the_oldest_version_reaches_the_same_end_despite_every_fault() {
    Rehearsal::of(|| Camp)
        .object(json!({
            "apiVersion": "demo.okt.dev/v1alpha1",
            "kind": "Tent",
            "metadata": { "name": "old" },
            "spec": { "size": 4, "site": "river/12", "stoves": 2, "color": "red" },
        }))
        .ask_for(json!({ "state": "Packed" }))
        .patch(json!({ "spec": { "size": 5 } }))
        .delete()
        .ends_in(TentState::Gone)
        .check();
}

/// Servers that do not know what they have done: a call that is repeated has its effect again.
#[derive(Clone, Debug, Default)]
struct Forgetful(queue::Model);

impl Forgetful {
    fn other_id(&self, id: &str) -> String {
        format!("{id} {}", self.0.calls().len())
    }
}

impl Servers for Forgetful {
    async fn create_user(&self, queue: &str, id: &str) -> Result<String, Failure> {
        self.0.create_user(queue, &self.other_id(id)).await
    }

    async fn drain(&self, queue: &str, node: &str, id: &str) -> Result<u64, Failure> {
        self.0.drain(queue, node, &self.other_id(id)).await
    }

    async fn upgrade(
        &self,
        queue: &str,
        node: &str,
        version: &str,
        id: &str,
    ) -> Result<(), Failure> {
        self.0
            .upgrade(queue, node, version, &self.other_id(id))
            .await
    }

    async fn back_up(&self, queue: &str, bucket: &str, id: &str) -> Result<String, Failure> {
        self.0.back_up(queue, bucket, &self.other_id(id)).await
    }

    async fn restore(&self, queue: &str, backup: &str, id: &str) -> Result<(), Failure> {
        self.0.restore(queue, backup, &self.other_id(id)).await
    }
}

#[test]
#[ignore = "takes half a minute; run with --include-ignored"]
fn the_rehearsal_finds_a_node_that_is_drained_twice() {
    let life = Rehearsal::of(Queues::<Forgetful>::default)
        .object(orders())
        .patch(json!({ "spec": { "nodes": 1 } }))
        .ends_in(QueueState::Running);
    let report = life.effects(|queues| queues.servers.0.effects()).run();
    let text = report.to_string();
    assert!(
        text.contains("its effects differ") && text.contains("2 times, undisturbed 1"),
        "{text}"
    );
}
