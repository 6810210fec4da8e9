//! The servers of queues in memory, for tests: they count every call, and have each effect once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use okt::Failure;
use okt_testing::ApiServer;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Servers;

/// How long a call takes.
const TAKES: Duration = Duration::from_secs(20);

/// The servers of one test; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Model(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    /// Every call, as `what id`, also one that was repeated.
    calls: Vec<String>,
    /// The answer to each call that had an effect, by its id.
    done: BTreeMap<String, Value>,
    /// What had an effect, in order.
    effects: Vec<String>,
    /// How often the next calls about a node fail.
    failing: BTreeMap<String, u32>,
}

impl Model {
    /// Returns every call, also one that was repeated under its id.
    #[must_use]
    pub fn calls(&self) -> Vec<String> {
        self.0.lock().calls.clone()
    }

    /// Returns what had an effect, in order.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        self.0.lock().effects.clone()
    }

    /// Lets the next calls about a node, or about the `user`, fail.
    pub fn fail(&self, node: &str, times: u32) {
        self.0.lock().failing.insert(node.to_owned(), times);
    }

    /// Has an effect once for each id, and answers.
    async fn call<T: Serialize + DeserializeOwned>(
        &self,
        (what, node): (&str, &str),
        id: &str,
        answer: impl FnOnce(usize) -> T,
    ) -> Result<T, Failure> {
        self.0.lock().calls.push(format!("{what} {id}"));
        sleep(TAKES).await;
        let mut log = self.0.lock();
        if let Some(left) = log.failing.get_mut(node).filter(|left| **left > 0) {
            *left -= 1;
            return Err(Failure::retry(
                "NodeBusy",
                format!("{node} does not answer"),
            ));
        }
        if !log.done.contains_key(id) {
            let number = log.done.len();
            log.done.insert(id.to_owned(), json!(answer(number)));
            log.effects.push(what.to_owned());
        }
        let answer = log.done[id].clone();
        serde_json::from_value(answer)
            .map_err(|error| Failure::permanent("OtherCall", error.to_string()))
    }
}

impl Servers for Model {
    async fn create_user(&self, queue: &str, id: &str) -> Result<String, Failure> {
        let what = format!("create user of {queue}");
        self.call((&what, "user"), id, |number| format!("user-{number}"))
            .await
    }

    async fn drain(&self, queue: &str, node: &str, id: &str) -> Result<u64, Failure> {
        let what = format!("drain {queue}/{node}");
        self.call((&what, node), id, |number| number as u64).await
    }

    async fn upgrade(
        &self,
        queue: &str,
        node: &str,
        version: &str,
        id: &str,
    ) -> Result<(), Failure> {
        let what = format!("upgrade {queue}/{node} to {version}");
        self.call((&what, node), id, |_| ()).await
    }

    async fn back_up(&self, queue: &str, bucket: &str, id: &str) -> Result<String, Failure> {
        let what = format!("back up {queue} to {bucket}");
        self.call((&what, bucket), id, |number| format!("{bucket}-{number}"))
            .await
    }

    async fn restore(&self, queue: &str, backup: &str, id: &str) -> Result<(), Failure> {
        let what = format!("restore {queue} from {backup}");
        self.call((&what, backup), id, |_| ()).await
    }
}

/// Returns whether no `StatefulSet` ever had fewer nodes than its queue remembered at that moment.
#[must_use]
pub fn no_node_went_early(server: &ApiServer) -> bool {
    let mut remembered = 0;
    server.versions().iter().all(|version| {
        let object = version.object();
        match version.resource.as_str() {
            "queues" => {
                let memory = &object["status"]["lifecycle"]["memory"]["value"];
                remembered = memory["nodes"].as_u64().unwrap_or_default();
                true
            }
            "statefulsets" => object["spec"]["replicas"].as_u64() >= Some(remembered),
            _ => true,
        }
    })
}
