//! Runs operations on both servers, one after another, and compares the results.

use std::collections::{BTreeMap, BTreeSet};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube::Client;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::difference::{self, Divergence};
use crate::generator::{self, Scene};
use crate::kinds::Kind;
use crate::model::Model;
use crate::normal;
use crate::operation::{Operation, Slot};
use crate::side::{Answer, Side};
use crate::watches::{Events, Watches};

/// The number of operations between two comparisons of the watches.
const BATCH: usize = 30;

/// A run of operations in its own namespace.
pub(crate) struct Lane {
    number: usize,
    namespace: String,
    kinds: Vec<Kind>,
    /// The real server.
    left: Side,
    /// The double.
    right: Side,
    dice: Dice,
    model: Model,
    watches: Option<(Watches, Watches)>,
    /// The objects that were written while the second changed; the servers may have stored different times.
    turned: BTreeSet<Slot>,
    /// The objects that are no longer compared in this batch of events.
    given_up: BTreeSet<Slot>,
    pub(crate) outcome: Outcome,
}

/// The result of a lane.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) operations: usize,
    pub(crate) divergences: Vec<Divergence>,
    pub(crate) known: BTreeMap<&'static str, usize>,
    pub(crate) verbs: BTreeMap<String, usize>,
}

impl Lane {
    pub(crate) fn new(
        number: usize,
        seed: u64,
        namespace: String,
        real: Client,
        double: Client,
    ) -> Self {
        Self {
            number,
            namespace,
            kinds: crate::kinds::all(),
            left: Side::new(real),
            right: Side::new(double),
            dice: Dice::new(seed.wrapping_add(number as u64 * 1_000_003)),
            model: Model::default(),
            watches: None,
            turned: BTreeSet::new(),
            given_up: BTreeSet::new(),
            outcome: Outcome::default(),
        }
    }

    /// Creates the namespace, the object that stays in it, and the watches.
    pub(crate) async fn prepare(&mut self) {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace } });
        let mut make = self.anchor();
        make.slot = None;
        "/api/v1/namespaces".clone_into(&mut make.path);
        make.body = Some(namespace);
        for side in [&mut self.left, &mut self.right] {
            let made = side.perform(&make, None).await;
            assert_eq!(made.code, 201, "the namespace is created: {}", made.body);
        }
        let anchor = self.anchor();
        for side in [&mut self.left, &mut self.right] {
            let made = side.perform(&anchor, None).await;
            assert_eq!(made.code, 201, "the anchor is created: {}", made.body);
        }
        self.watches = Some((
            Watches::start(&self.left, &self.kinds, &self.namespace).await,
            Watches::start(&self.right, &self.kinds, &self.namespace).await,
        ));
    }

    /// Returns the creation of the object that others name as their owner.
    fn anchor(&self) -> Operation {
        let slot = Slot {
            plural: "configmaps".to_owned(),
            name: "anchor".to_owned(),
        };
        let kinds = crate::kinds::every();
        let kind = kinds.iter().find(|kind| kind.plural == slot.plural);
        let kind = kind.expect("config maps are among the kinds");
        let scene = Scene {
            kind,
            namespace: &self.namespace,
            slot,
        };
        let mut create = scene.operation("create", "POST", "");
        create.path = kind.path(&self.namespace);
        create.body = Some(
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "anchor" } }),
        );
        create
    }

    pub(crate) async fn run(&mut self, operations: usize) {
        for number in 0..operations {
            let total: Vec<_> = self
                .kinds
                .iter()
                .enumerate()
                .map(|(i, kind)| (kind.weight, i))
                .collect();
            let kind = self.kinds[self.dice.weighted(&total)].clone();
            let operation =
                generator::next(&mut self.dice, &mut self.model, &kind, &self.namespace);
            // After the deletion of a collection, a list shows the remaining objects.
            let list = (operation.verb == "delete collection").then(|| Operation {
                verb: "list",
                method: "GET",
                query: Vec::new(),
                body: None,
                ..operation.clone()
            });
            self.step(number, operation).await;
            if let Some(list) = list {
                self.step(number, list).await;
            }
            if number % BATCH == BATCH - 1 || number + 1 == operations {
                self.compare_watches(number).await;
            }
        }
    }

    async fn step(&mut self, number: usize, operation: Operation) {
        self.outcome.operations += 1;
        let verb = format!("{} ({})", operation.verb, operation.door());
        *self.outcome.verbs.entry(verb).or_default() += 1;
        if let Some(slot) = &operation.slot {
            self.model.entry(slot).history.push(operation.clone());
        }
        self.left.catch_up(&operation).await;
        let second = avoid_the_turn_of_a_second().await;
        let (left, right) = self.both(&operation).await;
        if let Some(slot) = operation
            .slot
            .as_ref()
            .filter(|_| second != this_second().0)
        {
            self.turned.insert(slot.clone());
        }
        let turned = operation
            .slot
            .as_ref()
            .is_some_and(|slot| self.turned.contains(slot));
        if std::env::var_os("OKT_TRACE").is_some() {
            eprintln!("{number} {operation}\n  -> {} {}", left.code, left.body);
        }
        if left == right {
            self.model.learn(&operation, &left);
        } else if let Some(reason) = difference::known(&operation, &left, &right, turned) {
            *self.outcome.known.entry(reason).or_default() += 1;
            self.give_up(&operation).await;
        } else {
            let spots = difference::spots(&left, &right);
            let history = operation
                .slot
                .as_ref()
                .map_or(&[][..], |slot| self.model.history(slot));
            self.outcome.divergences.push(Divergence {
                lane: self.number,
                number,
                kind: difference::name(&operation, &spots),
                operation: operation.to_string(),
                spots,
                history: history.to_vec(),
            });
            self.give_up(&operation).await;
        }
    }

    /// Runs an operation on both servers.
    async fn both(&mut self, operation: &Operation) -> (Answer, Answer) {
        let (left, right) = (&mut self.left, &mut self.right);
        let (mut a, mut b) = tokio::join!(
            left.perform(operation, None),
            right.perform(operation, None)
        );
        // The next pages belong to the same operation.
        while a == b
            && let (Some(x), Some(y)) = (a.next.0.clone(), b.next.0.clone())
        {
            (a, b) = tokio::join!(
                left.perform(operation, Some(&x)),
                right.perform(operation, Some(&y))
            );
        }
        if operation.verb == "create generated" {
            for (side, answer) in [(left, &a), (right, &b)] {
                if let Some(name) = &answer.generated.0 {
                    let mut remove = operation.clone();
                    remove.method = "DELETE";
                    remove.path = format!("{}/{name}", operation.path);
                    remove.query.clear();
                    remove.body = None;
                    strip(side, &remove).await;
                }
            }
        }
        (a, b)
    }

    /// Removes an object that the servers disagree about, and retires its name.
    async fn give_up(&mut self, operation: &Operation) {
        let Some(slot) = operation.slot.clone() else {
            return;
        };
        self.reset(operation, &slot).await;
        self.model.retire(&slot);
        self.turned.remove(&slot);
        self.given_up.insert(slot);
    }

    async fn reset(&mut self, operation: &Operation, slot: &Slot) {
        let kind = self.kinds.iter().find(|kind| kind.plural == slot.plural);
        let kind = kind.expect("operations are about these kinds");
        let remove = Operation {
            method: "DELETE",
            path: format!("{}/{}", kind.path(&self.namespace), slot.name),
            query: Vec::new(),
            body: None,
            ..operation.clone()
        };
        for side in [&mut self.left, &mut self.right] {
            strip(side, &remove).await;
            side.names.forget(slot);
        }
    }

    async fn compare_watches(&mut self, number: usize) {
        let Some((mut left, mut right)) = self.watches.take() else {
            return;
        };
        let (a, b) = tokio::join!(
            left.gather(&self.left, &self.kinds, &self.namespace),
            right.gather(&self.right, &self.kinds, &self.namespace),
        );
        self.watches = Some((left, right));
        let (a, b) = (self.by_object(a, true), self.by_object(b, false));
        let mut keys: Vec<_> = a.keys().chain(b.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (x, y) = (a.get(&key).cloned(), b.get(&key).cloned());
            let (x, y) = (x.unwrap_or_default(), y.unwrap_or_default());
            if x == y || self.given_up.contains(&key.0) {
                continue;
            }
            let (slot, which) = key;
            let mut spots = Vec::new();
            difference::differ("", &x.clone().into(), &y.clone().into(), &mut spots);
            self.outcome.divergences.push(Divergence {
                lane: self.number,
                number,
                kind: format!("watch {which} of {}", slot.plural),
                operation: format!("events of {slot}"),
                spots,
                history: self.model.history(&slot).to_vec(),
            });
        }
        self.given_up.clear();
    }

    /// Groups the events by object, and normalizes them.
    fn by_object(&mut self, all: Events, left: bool) -> BTreeMap<(Slot, usize), Vec<Value>> {
        let names = if left {
            &mut self.left.names
        } else {
            &mut self.right.names
        };
        let mut found = BTreeMap::<_, Vec<Value>>::new();
        for (kind, which, events) in all {
            for mut event in events {
                let plural = &self.kinds[kind].plural;
                normal::object(names, plural, &mut event["object"]);
                let name = event
                    .pointer("/object/metadata/name")
                    .and_then(Value::as_str);
                let slot = Slot {
                    plural: plural.clone(),
                    name: name.unwrap_or_default().to_owned(),
                };
                found.entry((slot, which)).or_default().push(event);
            }
        }
        found
    }

    /// Returns the shortest history that still ends in a difference.
    pub(crate) async fn shrink(&mut self, history: &[Operation]) -> Vec<Operation> {
        let mut kept = history.to_vec();
        if !self.replay(&kept).await {
            return kept;
        }
        let mut at = kept.len().saturating_sub(1);
        while at > 0 {
            at -= 1;
            let mut shorter = kept.clone();
            shorter.remove(at);
            if self.replay(&shorter).await {
                kept = shorter;
            }
        }
        kept
    }

    /// Whether the servers disagree after the last of these operations, and not before.
    async fn replay(&mut self, operations: &[Operation]) -> bool {
        let Some((last, before)) = operations.split_last() else {
            return false;
        };
        let Some(slot) = last.slot.clone() else {
            return false;
        };
        self.reset(last, &slot).await;
        for operation in before {
            self.left.catch_up(operation).await;
            avoid_the_turn_of_a_second().await;
            let (a, b) = self.both(operation).await;
            if a != b {
                return false;
            }
        }
        self.left.catch_up(last).await;
        avoid_the_turn_of_a_second().await;
        let (a, b) = self.both(last).await;
        a != b
    }
}

/// Waits if a second is about to end; returns the current second.
///
/// Servers write times in seconds, and a write that changes only a time is no change within the same second. So both
/// servers should use the same second.
async fn avoid_the_turn_of_a_second() -> u64 {
    let (second, millis) = this_second();
    if millis <= 930 {
        return second;
    }
    tokio::time::sleep(Duration::from_millis(u64::from(1001 - millis))).await;
    this_second().0
}

/// Returns the current second, and the milliseconds since its start.
fn this_second() -> (u64, u32) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or((0, 0), |now| (now.as_secs(), now.subsec_millis()))
}

/// Removes an object with its finalizers.
async fn strip(side: &mut Side, remove: &Operation) {
    let mut free = remove.clone();
    free.method = "PATCH";
    free.media = "application/merge-patch+json";
    free.body = Some(json!({ "metadata": { "finalizers": null } }));
    side.send(&free, None).await;
    side.send(remove, None).await;
}
