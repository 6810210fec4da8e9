//! What an agent remembers: whose requests it takes, and the actions that it must not begin again.
//!
//! It changes by [`Change`]s only, each of which is a line of the journal: what is on disk and what is in memory
//! come about in the same way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::wire::{ActionId, ActionReport, Fence, ObjectRef, Owner};

/// How many actions are remembered that may be forgotten, for people.
const KEPT: usize = 32;

/// How many actions are remembered in all; more of them than this must not be forgotten only where an operator
/// never acknowledges.
pub(super) const REMEMBERED_LIMIT: usize = 512;

/// How many ids are remembered that were cancelled before they were asked for: a request on its way arrives soon.
const WITHDRAWN: usize = 64;

/// How many uids of earlier owners are remembered: none of them comes back.
const SUPERSEDED: usize = 64;

/// What an agent remembers.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Memory {
    /// Whose request was taken last; its namespace and name are those that the agent belongs to.
    pub(super) owner: Option<Owner>,
    /// The last request that was taken, with the highest epoch.
    pub(super) fence: Fence,
    /// The uids of earlier owners, the newest last.
    superseded: VecDeque<String>,
    /// In the order in which their last attempts were recorded.
    actions: Vec<Arc<Remembered>>,
    /// Cancelled before they were asked for, the newest last.
    withdrawn: VecDeque<ActionId>,
}

/// An action that is remembered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remembered {
    /// What is told of it.
    pub(super) report: ActionReport,
    /// For which object.
    pub(super) owner: Owner,
    /// How new the request for its last attempt was.
    pub(super) fence: Fence,
    /// Of its input; see [`fingerprint`].
    pub(super) fingerprint: String,
    /// Empty once it has ended.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) input: Map<String, Value>,
    /// What its work remembered; empty once it has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) notes: BTreeMap<String, Value>,
}

/// One step from what was remembered to what is remembered next: all of it or nothing.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Change {
    /// From now on the requests of this owner are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<Owner>,
    /// The last request that was taken, with the highest epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<Fence>,
    /// The uids of owners that another one has superseded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) superseded: Vec<String>,
    /// An action as it is from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) action: Option<Remembered>,
    /// What the work of an action remembers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<Note>,
    /// Actions that are remembered no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) forgotten: Vec<ActionId>,
    /// Actions that were cancelled and not asked for yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) withdrawn: Vec<ActionId>,
}

/// What the work of an action remembers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Note {
    /// Of which action.
    pub(super) id: ActionId,
    /// A later note under the same key takes the place of the earlier one.
    pub(super) key: String,
    /// What is remembered.
    pub(super) value: Value,
}

impl Memory {
    /// All actions, in the order in which their last attempts were recorded.
    pub(super) fn actions(&self) -> &[Arc<Remembered>] {
        &self.actions
    }

    /// The action of this id.
    pub(super) fn action(&self, id: &ActionId) -> Option<&Arc<Remembered>> {
        self.actions.iter().find(|action| action.report.id == *id)
    }

    /// The action that is under way.
    pub(super) fn under_way(&self) -> Option<&Arc<Remembered>> {
        // The newest one: nothing is begun while another one is under way.
        (self.actions.last()).filter(|action| !action.report.phase.is_final())
    }

    /// Whether an action was cancelled before it was asked for.
    pub(super) fn is_withdrawn(&self, id: &ActionId) -> bool {
        self.withdrawn.contains(id)
    }

    /// Takes a step.
    pub(super) fn apply(&mut self, change: Change) {
        let Change {
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
            let place = (self.actions.iter()).position(|known| known.report.id == action.report.id);
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
        if let Some(Note { id, key, value }) = note
            && let Some(action) = (self.actions.iter_mut()).find(|action| action.report.id == id)
        {
            Arc::make_mut(action).notes.insert(key, value);
        }
        if !forgotten.is_empty() {
            let forgotten: BTreeSet<_> = forgotten.into_iter().collect();
            (self.actions).retain(|action| !forgotten.contains(&action.report.id));
        }
        extend(&mut self.withdrawn, withdrawn, WITHDRAWN);
        extend(&mut self.superseded, superseded, SUPERSEDED);
    }

    /// The step that takes an attempt of a request, at this moment by the agent's clock.
    pub(super) fn taken(&self, action: Remembered, now: Timestamp) -> Change {
        let (owner, superseded) = match &self.owner {
            // As it was recorded first.
            Some(owner) if owner.uid == action.owner.uid => (owner.clone(), Vec::new()),
            before => {
                let mut owner = action.owner.clone();
                // A time that has not come yet would keep every later object out until it has.
                owner.created_at = owner.created_at.min(now);
                let uids = before.iter().map(|before| before.uid.clone());
                (owner, uids.collect())
            }
        };
        Change {
            owner: Some(owner),
            fence: Some(action.fence),
            superseded,
            forgotten: self.forgettable(&action.owner, action.fence),
            action: Some(action),
            ..Change::default()
        }
    }

    /// The namespace and name that the agent belongs to: those of its settings, or of its owner.
    pub(super) fn object(&self, of_settings: Option<&ObjectRef>) -> Option<ObjectRef> {
        (of_settings.cloned()).or_else(|| self.owner.as_ref().map(Owner::object))
    }

    /// Whether another owner has taken the place of the one with this uid.
    pub(super) fn is_superseded(&self, uid: &str) -> bool {
        self.superseded.iter().any(|past| past == uid)
    }

    /// Forgets to whom the agent belongs and which requests are too old; what was done is remembered.
    pub(super) fn free(&mut self) -> Option<Owner> {
        self.fence = Fence::default();
        self.superseded.clear();
        self.owner.take()
    }

    /// The steps that lead here from nothing.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change> {
        let first = Change {
            owner: self.owner.clone(),
            fence: Some(self.fence),
            withdrawn: self.withdrawn.iter().cloned().collect(),
            superseded: self.superseded.iter().cloned().collect(),
            ..Change::default()
        };
        let actions = self.actions.iter().map(|action| Change {
            action: Some((**action).clone()),
            ..Change::default()
        });
        std::iter::once(first).chain(actions)
    }

    /// What may be forgotten when a request of this owner and fence is taken: neither an action that is as new as
    /// the newest, nor one whose end nobody has acknowledged, nor those that people may want to see.
    pub(super) fn forgettable(&self, owner: &Owner, fence: Fence) -> Vec<ActionId> {
        let old: Vec<_> = (self.actions.iter())
            .filter(|action| {
                let newest = action.owner.uid == owner.uid
                    && (action.fence.transition, action.fence.run) >= (fence.transition, fence.run);
                // Whoever asked for the action of an object that is gone does not come back for its end.
                let awaited = action.owner.uid == owner.uid && !action.report.acknowledged;
                action.report.phase.is_final() && !newest && !awaited
            })
            .map(|action| action.report.id.clone())
            .collect();
        let many = old.len().saturating_sub(KEPT);
        old.into_iter().take(many).collect()
    }
}

/// Adds these, and forgets the oldest beyond `most`.
fn extend<T>(to: &mut VecDeque<T>, new: Vec<T>, most: usize) {
    to.extend(new);
    let many = to.len().saturating_sub(most);
    to.drain(..many);
}

/// Tells two inputs apart, whatever the order of their fields.
pub(super) fn fingerprint(input: &Map<String, Value>) -> String {
    fn object(fields: &Map<String, Value>, digest: &mut Sha256) {
        // In the order of their names: other crates can turn on that serde_json keeps the order of a text.
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
    (digest.finalize().iter()).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
