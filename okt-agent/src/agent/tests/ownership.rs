//! The object that an agent belongs to, also after crashes, and how a person frees the agent.

use serde_json::{Value, json};

use super::super::{Agent, free};
use super::puppet::{Life, once};

/// Returns a request of the object with this uid, year of creation and name.
fn of(uid: &str, year: i64, name: &str) -> Value {
    let mut request = once(1, &json!({}));
    request["owner"]["uid"] = json!(uid);
    request["owner"]["createdAt"] = json!(format!("{year}-01-01T00:00:00Z"));
    request["owner"]["name"] = json!(name);
    request
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_an_agent_survives_a_crash() {
    let life = Life::new().await;
    assert_eq!(life.status().await["object"], Value::Null);
    for (id, uid) in [("a", "first"), ("b", "second")] {
        assert_eq!(life.put(id, of(uid, 2020, "orders")).await.status, 201);
        life.end(id).await;
    }
    let life = life.crash().await;
    let bound = json!({ "namespace": "shop", "name": "orders" });
    assert_eq!(life.status().await["object"], bound);
    let foreign = (412, "ForeignOwner");
    // Crash twice, so that the rewritten file is read too.
    let life = life.crash().await;
    assert_eq!(
        life.put("c", of("first", 2025, "orders")).await.code(),
        foreign
    );
    assert_eq!(
        life.put("c", of("third", 2025, "wishes")).await.code(),
        foreign
    );
    assert_eq!(life.put("c", of("third", 2025, "orders")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn a_creation_time_in_the_future_is_recorded_as_the_agents_own_time() {
    let life = Life::new().await;
    assert_eq!(life.put("a", of("first", 9000, "orders")).await.status, 201);
    life.end("a").await;
    let status = life.status().await;
    let recorded = status["owner"]["createdAt"].as_str().expect("a time");
    assert!(recorded < "9000", "{recorded}");
}

#[tokio::test(start_paused = true)]
async fn settings_bind_an_agent_before_the_first_request_and_override_its_journal() {
    let life = Life::with(|agent| agent.object("shop", "orders")).await;
    let bound = json!({ "namespace": "shop", "name": "orders" });
    assert_eq!(life.status().await["object"], bound);
    let foreign = (412, "ForeignOwner");
    assert_eq!(
        life.put("a", of("uid", 2020, "wishes")).await.code(),
        foreign
    );
    let mut far = of("uid", 2020, "orders");
    far["fence"]["epoch"] = json!(900_000);
    assert_eq!(life.put("a", far).await.status, 201);
    life.end("a").await;
    let set = |agent: Agent<_>| agent.object("shop", "wishes");
    let life = life.crash_into(set).await;
    assert_eq!(
        life.put("b", of("uid", 2020, "orders")).await.code(),
        foreign
    );
    // An older object in a lower epoch is taken, because epoch and owner were those of the other object.
    assert_eq!(life.put("b", of("other", 2010, "wishes")).await.status, 201);
}

#[tokio::test(start_paused = true)]
async fn freeing_a_stopped_agent_keeps_its_actions_done() {
    let life = Life::new().await;
    assert_eq!(life.put("a", of("first", 2020, "orders")).await.status, 201);
    life.end("a").await;
    assert!(free(life.directory.path()).is_err(), "it runs");
    drop(life.started);
    let (world, directory) = (life.world, life.directory);
    let owner = loop {
        // The dropped agent releases the lock when its threads have ended.
        match free(directory.path()) {
            Ok(owner) => break owner.expect("it had one"),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(owner.object().to_string(), "shop/orders");
    let life = Life::start(world, directory, |agent| agent).await;
    assert_eq!(life.status().await["object"], Value::Null);
    assert_eq!(life.put("b", of("other", 2010, "wishes")).await.status, 201);
    life.end("b").await;
    assert_eq!(life.put("a", of("first", 2020, "orders")).await.status, 200);
    assert_eq!(life.world.count("begin a"), 1);
}
