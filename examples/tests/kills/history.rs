//! Every version of every notebook, and which lifecycle rules it broke.

use std::collections::BTreeMap;
use std::time::Instant;

use kube::Resource;
use kube::api::DynamicObject;
use okt::{FINALIZER, Lifecycle};
use okt_core::Mark;
use okt_examples::notes_operator::NotesState;
use okt_testing::rehearsal::Rules;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

/// The history of the notebooks so far.
pub(crate) struct History(Mutex<Seen>);

pub(crate) struct Seen {
    rules: Rules,
    /// The existing notebooks, by uid, each as last observed.
    pub(crate) alive: BTreeMap<String, Value>,
    /// The version of the cluster up to which everything was observed.
    pub(crate) version: u64,
    /// How many versions of notebooks were observed and checked.
    pub(crate) versions: u64,
    /// How many versions of the cluster were forgotten before they could be observed.
    pub(crate) unseen: u64,
    pub(crate) transitions: u64,
    pub(crate) jumps: u64,
    /// The state of each action id, and whether the record says that the action is done.
    actions: BTreeMap<String, (String, bool)>,
    /// The backups that the record reports: the notebook and the id.
    pub(crate) backups: Vec<(String, String)>,
    pub(crate) last_change: Instant,
    pub(crate) broken: Vec<String>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Seen {
            rules: Rules::of::<NotesState>(),
            alive: BTreeMap::new(),
            version: 0,
            versions: 0,
            unseen: 0,
            transitions: 0,
            jumps: 0,
            actions: BTreeMap::new(),
            backups: Vec::new(),
            last_change: Instant::now(),
            broken: Vec::new(),
        }))
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }
}

impl Seen {
    /// Processes the next version of a notebook.
    pub(crate) fn see(&mut self, object: &DynamicObject) {
        let mut after = serde_json::to_value(object).expect("an object is JSON");
        after["metadata"]["managedFields"].take();
        let uid = text(&after, "/metadata/uid").to_owned();
        let version = number(&after, "/metadata/resourceVersion");
        self.version = self.version.max(version);
        let before = self.alive.get(&uid);
        if before.is_some_and(|before| number(before, "/metadata/resourceVersion") >= version) {
            return;
        }
        self.versions += 1;
        self.last_change = Instant::now();
        let before = self.alive.insert(uid, after.clone());
        let name = text(&after, "/metadata/name").to_owned();
        for rule in self.judge(before.as_ref(), &after) {
            let status = &after["status"];
            self.broken
                .push(format!("{name} {version}: {rule}, in {status}"));
        }
    }

    /// Processes the removal of a notebook, which must be in a leaf or without a record.
    pub(crate) fn gone(&mut self, uid: &str) {
        let Some(last) = self.alive.remove(uid) else {
            return;
        };
        self.last_change = Instant::now();
        if !is_over(&last) {
            let (name, position) = (&last["metadata"]["name"], &last["status"]["lifecycle"]);
            self.broken.push(format!("{name} is gone from {position}"));
        }
    }

    /// Processes all notebooks at a version of the cluster.
    pub(crate) fn see_all(&mut self, version: u64, objects: &[DynamicObject]) {
        let here: Vec<_> = objects
            .iter()
            .filter_map(|one| one.meta().uid.clone())
            .collect();
        let gone: Vec<_> = (self.alive.keys())
            .filter(|uid| !here.contains(uid))
            .cloned()
            .collect();
        for uid in gone {
            self.gone(&uid);
        }
        for object in objects {
            self.see(object);
        }
        self.version = self.version.max(version);
    }

    /// Skips a version of the cluster that cannot be read any more; the next version is not compared with the one
    /// before.
    pub(crate) fn miss(&mut self, version: u64) {
        self.unseen += 1;
        self.version = self.version.max(version);
        self.alive.clear();
    }

    fn judge(&mut self, before: Option<&Value>, after: &Value) -> Vec<String> {
        let Some(before) = before else {
            return Vec::new();
        };
        let mut broken = Vec::new();
        if before["status"] != after["status"] {
            broken.extend(self.rules.broken(Some(before), after));
        }
        let is_held = |object: &Value| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|all| all.iter().any(|one| one == FINALIZER))
        };
        if is_held(before) && !is_held(after) && !is_over(before) {
            broken.push("lost its finalizer before its end".to_owned());
        }
        let (last, next) = (
            &before["status"]["lifecycle"],
            &after["status"]["lifecycle"],
        );
        if next.is_null() {
            if !last.is_null() {
                broken.push("lost its position".to_owned());
            }
            return broken;
        }
        broken.extend(self.act(next));
        broken.extend(self.step(last, next));
        let served = text(last, "/state") == "Servicing" && text(next, "/state") == "Running";
        if served && after["metadata"]["deletionTimestamp"].is_null() {
            let name = text(after, "/metadata/name").to_owned();
            self.backups
                .push((name, text(last, "/action/id").to_owned()));
        }
        broken
    }

    /// Checks one write of a position.
    fn step(&mut self, last: &Value, next: &Value) -> Vec<String> {
        let mut broken = Vec::new();
        let (from, to) = (text(last, "/state"), text(next, "/state"));
        let count = |key| (number(last, key), number(next, key));
        let (transitions, jumps) = (count("/transition"), count("/jumps"));
        let jumped = jumps.1 > jumps.0;
        if jumps.1 < jumps.0 || jumps.1 > jumps.0 + 1 {
            broken.push(format!("jumps went from {} to {}", jumps.0, jumps.1));
        }
        if transitions.0 == transitions.1 {
            if from != to || jumped {
                broken.push(format!("from {from} to {to} without a transition"));
            }
            return broken;
        }
        if transitions.1 != transitions.0 + 1 {
            broken.push(format!(
                "transition {} came after {}",
                transitions.1, transitions.0
            ));
        }
        self.transitions += 1;
        self.jumps += u64::from(jumped);
        let entry = NotesState::GRAPH.entry();
        let here = NotesState::from_name(from).and_then(|here| NotesState::GRAPH.get(here.id()));
        let there = NotesState::from_name(to).map(Lifecycle::id);
        let is_declared = match here {
            Some(here) => {
                there.is_some_and(|there| here.targets().any(|target| target == there))
                    || here.is(Mark::Leaf) && there == entry
            }
            None => last.is_null() && there == entry,
        };
        if !is_declared && !jumped {
            broken.push(format!("from {from:?} to {to}: no such edge"));
        }
        broken
    }

    /// Checks that an id is one piece of work, which is done once.
    fn act(&mut self, position: &Value) -> Option<String> {
        let action = &position["action"];
        let (id, state) = (text(action, "/id"), text(position, "/state"));
        if id.is_empty() {
            return None;
        }
        let done = text(action, "/phase") == "Done";
        let known = self.actions.entry(id.to_owned());
        let known = known.or_insert_with(|| (state.to_owned(), done));
        let broken = if known.0 != state {
            Some(format!("{id} is work of {} and of {state}", known.0))
        } else if known.1 && !done {
            Some(format!("{id} was done and is {}", action["phase"]))
        } else {
            None
        };
        known.1 |= done;
        broken
    }
}

/// Returns whether a notebook is in a leaf or has no record.
fn is_over(object: &Value) -> bool {
    let position = &object["status"]["lifecycle"];
    let state = NotesState::from_name(text(position, "/state"));
    let leaf = state
        .and_then(|state| NotesState::GRAPH.get(state.id()))
        .is_some_and(|state| state.is(Mark::Leaf));
    position.is_null() || leaf
}

/// Returns a text in JSON, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns a number in JSON, also from a text; 0 if there is none.
pub(crate) fn number(value: &Value, path: &str) -> u64 {
    match value.pointer(path) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(value) => value.as_u64().unwrap_or(0),
        None => 0,
    }
}
