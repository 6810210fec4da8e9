//! A rehearsal of the operator of notebooks with injected faults; only the servers are a model.
//!
//! The tour and `kills` run the same operator with real servers, by the clock.

use okt_examples::notes_operator::{Keeper, Model, NotesState};
use okt_testing::Rehearsal;
use serde_json::json;

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
