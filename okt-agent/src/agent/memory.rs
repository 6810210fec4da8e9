//! The memory of an agent: whose requests it takes, and the actions that it must not begin again.
//!
//! Only [`MemoryChange`]s modify it. Each of them is a line of the journal, so the memory and the file are built in the
//! same way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::wire::{ActionId, ActionReport, Fence, ObjectRef, Owner};

/// The number of forgettable actions that are kept for people.
const KEPT: usize = 32;

/// The limit for all remembered actions. It is reached only if an operator never acknowledges.
pub(super) const REMEMBERED_LIMIT: usize = 512;

/// The number of ids kept that were cancelled before they were requested. A request on its way arrives soon.
const WITHDRAWN: usize = 64;

/// The number of uids kept of earlier owners, which never get the agent back.
const SUPERSEDED: usize = 64;

/// The memory of an agent.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct AgentMemory {
    /// The owner of the last request taken. The agent belongs to its namespace and name.
    pub(super) owner: Option<Owner>,
    /// The fence of the last request taken, with the highest epoch.
    pub(super) fence: Fence,
    /// The uids of earlier owners, the newest last.
    superseded: VecDeque<String>,
    /// The actions, in the order in which their last attempts were recorded.
    actions: Vec<Arc<Remembered>>,
    /// The ids that were cancelled before they were requested, the newest last.
    withdrawn: VecDeque<ActionId>,
}

/// A remembered action.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remembered {
    /// The report.
    pub(super) report: ActionReport,
    /// The object that requested it.
    pub(super) owner: Owner,
    /// The fence of the request for its last attempt.
    pub(super) fence: Fence,
    /// The hash of its input; see [`fingerprint`].
    pub(super) fingerprint: String,
    /// The input; empty after the action has ended.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) input: Map<String, Value>,
    /// The notes of its work; empty after the action has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) notes: BTreeMap<String, Value>,
}

/// One change of the memory, which is applied as a whole or not at all.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MemoryChange {
    /// The new owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
    /// The fence of the last request taken, with the highest epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<Fence>,
    /// The uids of owners that a newer owner has superseded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) superseded: Vec<String>,
    /// The new state of an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<Remembered>,
    /// A note of an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<Note>,
    /// The actions to forget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) forgotten: Vec<ActionId>,
    /// The actions that were cancelled before they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) withdrawn: Vec<ActionId>,
}

/// A note of an action.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Note {
    /// The id of the action.
    pub(super) id: ActionId,
    /// The key. A later note under the same key replaces the earlier one.
    pub(super) key: String,
    /// The value.
    pub(super) value: Value,
}

impl MemoryChange {
    /// Returns the change to this new state of an action.
    pub(super) fn of(action: Remembered) -> Self {
        Self {
            action: Some(action),
            ..Self::default()
        }
    }
}

impl AgentMemory {
    /// Returns all actions, in the order in which their last attempts were recorded.
    pub(super) fn actions(&self) -> &[Arc<Remembered>] {
        &self.actions
    }

    /// Returns the action of this id.
    pub(super) fn action(&self, id: &ActionId) -> Option<&Arc<Remembered>> {
        self.actions.iter().find(|action| action.report.id == *id)
    }

    /// Returns the running action.
    pub(super) fn under_way(&self) -> Option<&Arc<Remembered>> {
        // It is the newest one, because nothing begins while another action runs.
        let last = self.actions.last();
        last.filter(|action| !action.report.phase.is_final())
    }

    /// Returns whether an action was cancelled before it was requested.
    pub(super) fn is_withdrawn(&self, id: &ActionId) -> bool {
        self.withdrawn.contains(id)
    }

    /// Applies a change.
    pub(super) fn apply(&mut self, change: MemoryChange) {
        let MemoryChange {
            owner,
            fence,
            superseded,
            action,
            note,
            forgotten,
            withdrawn,
        } = change;
        if owner.is_some() {
            self.owner = owner;
        }
        if let Some(fence) = fence {
            self.fence = fence;
        }
        if let Some(action) = action {
            self.withdrawn.retain(|id| *id != action.report.id);
            let mut known = self.actions.iter();
            let place = known.position(|known| known.report.id == action.report.id);
            match place {
                Some(place) if self.actions[place].report.attempt == action.report.attempt => {
                    self.actions[place] = Arc::new(action);
                }
                Some(place) => {
                    self.actions.remove(place);
                    self.actions.push(Arc::new(action));
                }
                None => self.actions.push(Arc::new(action)),
            }
        }
        if let Some(Note { id, key, value }) = note {
            let mut known = self.actions.iter_mut();
            if let Some(action) = known.find(|action| action.report.id == id) {
                Arc::make_mut(action).notes.insert(key, value);
            }
        }
        if !forgotten.is_empty() {
            let forgotten: BTreeSet<_> = forgotten.into_iter().collect();
            let is_kept = |action: &Arc<Remembered>| !forgotten.contains(&action.report.id);
            self.actions.retain(is_kept);
        }
        extend(&mut self.withdrawn, withdrawn, WITHDRAWN);
        extend(&mut self.superseded, superseded, SUPERSEDED);
    }

    /// Returns the change that takes an attempt of a request, at this time of the agent's clock.
    pub(super) fn taken(&self, action: Remembered, now: Timestamp) -> MemoryChange {
        let (owner, superseded) = match &self.owner {
            // Keep the owner as it was first recorded.
            Some(owner) if owner.uid == action.owner.uid => (owner.clone(), Vec::new()),
            before => {
                let mut owner = action.owner.clone();
                // A time in the future would keep every later object out until then.
                owner.created_at = owner.created_at.min(now);
                let uids = before.iter().map(|before| before.uid.clone());
                (owner, uids.collect())
            }
        };
        MemoryChange {
            owner: Some(owner),
            fence: Some(action.fence),
            superseded,
            forgotten: self.forgettable(&action.owner, action.fence),
            action: Some(action),
            ..MemoryChange::default()
        }
    }

    /// Returns the namespace and name that the agent belongs to: those of its settings, or else of its owner.
    pub(super) fn object(&self, of_settings: Option<&ObjectRef>) -> Option<ObjectRef> {
        let of_owner = || self.owner.as_ref().map(Owner::object);
        of_settings.cloned().or_else(of_owner)
    }

    /// Returns whether another owner has superseded the one with this uid.
    pub(super) fn is_superseded(&self, uid: &str) -> bool {
        self.superseded.iter().any(|past| past == uid)
    }

    /// Forgets the owner and the fence, but keeps the actions.
    pub(super) fn free(&mut self) -> Option<Owner> {
        self.fence = Fence::default();
        self.superseded.clear();
        self.owner.take()
    }

    /// Returns the changes that build this memory from an empty one.
    pub(super) fn changes(&self) -> impl Iterator<Item = MemoryChange> {
        let first = MemoryChange {
            owner: self.owner.clone(),
            fence: Some(self.fence),
            withdrawn: self.withdrawn.iter().cloned().collect(),
            superseded: self.superseded.iter().cloned().collect(),
            ..MemoryChange::default()
        };
        let known = self.actions.iter();
        let actions = known.map(|action| MemoryChange::of(Remembered::clone(action)));
        std::iter::once(first).chain(actions)
    }

    /// Returns the actions to forget when a request of this owner and fence is taken.
    /// It keeps actions that run or are at least as new as the request, those whose end is not acknowledged, and the
    /// last [`KEPT`] for people.
    pub(super) fn forgettable(&self, owner: &Owner, fence: Fence) -> Vec<ActionId> {
        let is_old = |action: &&Arc<Remembered>| {
            let newest = action.owner.uid == owner.uid
                && (action.fence.transition, action.fence.run) >= (fence.transition, fence.run);
            // An object that is gone does not ask for its action's end any more.
            let awaited = action.owner.uid == owner.uid && !action.report.acknowledged;
            action.report.phase.is_final() && !newest && !awaited
        };
        let old = self.actions.iter().filter(is_old);
        let mut ids: Vec<_> = old.map(|action| action.report.id.clone()).collect();
        ids.truncate(ids.len().saturating_sub(KEPT));
        ids
    }
}

/// Appends values, and drops the oldest beyond `most`.
fn extend<T>(to: &mut VecDeque<T>, new: Vec<T>, most: usize) {
    to.extend(new);
    let many = to.len().saturating_sub(most);
    to.drain(..many);
}

/// Returns a hash of an input that does not depend on the order of its fields.
pub(super) fn fingerprint(input: &Map<String, Value>) -> String {
    fn object(fields: &Map<String, Value>, digest: &mut Sha256) {
        // Sort by name, because a feature of another crate can make `serde_json` keep the order of the text.
        let sorted: BTreeMap<_, _> = fields.iter().collect();
        digest.update(format!("{{{}:", sorted.len()));
        for (name, value) in sorted {
            digest.update(format!("{}:{name}", name.len()));
            any(value, digest);
        }
    }
    fn any(value: &Value, digest: &mut Sha256) {
        match value {
            Value::Object(fields) => object(fields, digest),
            Value::Array(items) => {
                digest.update(format!("[{}:", items.len()));
                for item in items {
                    any(item, digest);
                }
            }
            Value::String(text) => digest.update(format!("\"{}:{text}", text.len())),
            Value::Number(number) => digest.update(format!("#{number};")),
            Value::Bool(value) => digest.update(if *value { "t" } else { "f" }),
            Value::Null => digest.update("n"),
        }
    }
    let mut digest = Sha256::new();
    object(input, &mut digest);
    let bytes = digest.finalize();
    let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
    bytes.iter().fold(String::new(), hex)
}
