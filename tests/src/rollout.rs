//! A cluster for operators of different releases, and a witness of all their writes.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{WatchEvent, WatchParams};
use okt::{Lifecycle, Operator, StateOf};
use okt_core::{Graph, Mark};
use okt_testing::rehearsal::Rules;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::cluster::{Cluster, Served};
use crate::releases::{World, first};
use crate::tap::Tap;

/// A cluster on any server.
#[derive(Clone)]
pub struct Place {
    /// A client of the cluster.
    pub client: Client,
    /// The maximum wait for a condition.
    pub patience: Duration,
    /// Whether operators use tokio's clock.
    pub virtual_time: bool,
}

impl Place {
    /// Returns the view of an application's users.
    pub fn cluster<A: Served>(&self) -> Cluster<A> {
        Cluster::new(self.client.clone(), self.patience)
    }

    /// Starts an operator.
    pub fn operate<A: Served>(&self, application: A) -> Working {
        let tap = Tap::default();
        let mut operator = Operator::new(tap.on(&self.client), application);
        if self.virtual_time {
            operator = operator.virtual_time();
        }
        let task = tokio::spawn(async move {
            let run = operator.run(std::future::pending()).await;
            run.expect("the operator runs");
        });
        Working { tap, task }
    }
}

/// A running operator; it is killed when this value is dropped.
pub struct Working {
    /// The requests of the operator.
    pub tap: Tap,
    task: JoinHandle<()>,
}

impl Working {
    /// Kills the operator and all its work, as SIGKILL does.
    pub async fn kill(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Returns the paths of its writes to the object with this name.
    pub fn writes_to(&self, object: &str) -> Vec<String> {
        let writes = self.tap.writes().into_iter();
        let of = |path: &String| path.split('/').any(|part| part == object);
        writes.map(|write| write.path).filter(of).collect()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Records every version of every broker, and checks them at the end.
pub struct Witness {
    graphs: Vec<&'static Graph<'static>>,
    seen: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Witness {
    /// Starts to watch; every move must be an edge of one of two releases.
    pub fn of<Old: Served, New: Served>(place: &Place) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (versions, api) = (Arc::clone(&seen), place.cluster::<first::Brokers>().raw());
        let task = tokio::spawn(async move {
            let mut since = "0".to_owned();
            loop {
                // The kind may not exist yet.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let params = WatchParams::default();
                let Ok(stream) = api.watch(&params, &since).await else {
                    continue;
                };
                let mut events = stream.boxed();
                while let Ok(Some(event)) = events.try_next().await {
                    let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else {
                        continue;
                    };
                    since = object.metadata.resource_version.clone().unwrap_or(since);
                    let object = serde_json::to_value(object).expect("JSON");
                    versions.lock().push(object);
                }
            }
        });
        let graphs = vec![StateOf::<Old>::GRAPH, StateOf::<New>::GRAPH];
        Self { graphs, seen, task }
    }

    /// Checks all versions: edges, counters, conditions.
    pub async fn judge(self) {
        // The last write may not have arrived yet.
        tokio::time::sleep(Duration::from_millis(300)).await;
        self.task.abort();
        let rules = Rules::of::<first::BrokerState>();
        let mut before: BTreeMap<String, Value> = BTreeMap::new();
        let seen = std::mem::take(&mut *self.seen.lock());
        assert!(!seen.is_empty(), "the witness saw nothing");
        for object in seen {
            let name = object["metadata"]["name"]
                .as_str()
                .expect("a name")
                .to_owned();
            let last = before.insert(name.clone(), object.clone());
            if last.as_ref() == Some(&object) {
                continue;
            }
            // A deletion, a new desired state or a label does not come from the operator.
            let reported = last.as_ref().map(|last| &last["status"]) != Some(&object["status"]);
            if reported && object["status"]["observedGeneration"] != -1 {
                let broken = rules.broken(last.as_ref(), &object);
                assert!(broken.is_empty(), "{name}: {broken:?} in {object:#}");
            }
            let from = last.map(|last| last["status"]["lifecycle"].clone());
            let (from, to) = (from.unwrap_or_default(), &object["status"]["lifecycle"]);
            if !from.is_null() {
                self.judge_move(&name, &from, to);
            }
        }
    }

    fn judge_move(&self, name: &str, from: &Value, to: &Value) {
        let number = |of: &Value, field: &str| of[field].as_u64().expect("a number");
        let state = |of: &Value| of["state"].as_str().expect("a state").to_owned();
        let (was, is) = (state(from), state(to));
        let steps = number(to, "transition") - number(from, "transition");
        let jumped = number(to, "jumps") - number(from, "jumps");
        let what = format!("{name} from {was} to {is}: {steps} transitions, {jumped} jumps");
        println!("{what}");
        if steps == 0 {
            let same = |graph: &&Graph<'_>| {
                let (was, is) = (graph.named(&was), graph.named(&is));
                was.is_some() && was == is
            };
            assert_eq!(jumped, 0, "{what}");
            assert!(was == is || self.graphs.iter().any(same), "{what}");
            return;
        }
        let edge = |graph: &&Graph<'static>| {
            let (Some(was), Some(is)) = (graph.named(&was), graph.named(&is)) else {
                return false;
            };
            let Some(state) = graph.get(was) else {
                return false;
            };
            let reentry = state.is(Mark::Leaf) && graph.entry() == Some(is);
            reentry || state.targets().any(|to| to == is)
        };
        assert_eq!(steps, 1, "{what}");
        assert!(jumped == 1 || self.graphs.iter().any(edge), "{what}");
    }
}

impl World {
    /// Checks that no action was started twice, except to resume it.
    pub fn began_nothing_twice(&self) {
        let mut ids = BTreeMap::new();
        for ran in self.ran().into_iter().filter(|ran| !ran.resumed) {
            let other = ids.insert(ran.id.clone(), ran.clone());
            assert_eq!(other, None, "twice: {ran:?}");
        }
    }
}
