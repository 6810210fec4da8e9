//! Asks the webhooks that are configured for a write.

mod hook;
mod request;
mod review;

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use serde_json::Value;

use self::hook::Hook;
pub(crate) use self::request::RequestOptions;
use self::request::{AdmissionRequest, Change};
use crate::builtin::ADMISSION;
use crate::calls::WebhookCalls;
use crate::kind::{KindId, ServedKind};
use crate::refusal::Refusal;
use crate::schema;
use crate::store::{Key, Store};
use crate::stored::StoredObject;
use crate::types;
use crate::{object, patch};

const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// How often a mutating webhook may be called for one write.
const ROUNDS: usize = 2;

/// What is asked of webhooks about one request.
#[derive(Debug)]
pub(crate) struct Admission {
    request: AdmissionRequest,
    mutating: Vec<Arc<StoredObject>>,
    validating: Vec<Arc<StoredObject>>,
}

impl Admission {
    pub(crate) fn of(
        store: &Store,
        calls: &Arc<WebhookCalls>,
        kind: &Arc<ServedKind>,
        key: &Key,
        options: RequestOptions,
    ) -> Self {
        let configured = |plural: &str| -> Vec<Arc<StoredObject>> {
            if kind.group == ADMISSION {
                // No webhook can keep itself from being changed.
                return Vec::new();
            }
            let id = KindId::new(ADMISSION, plural);
            let configurations = store.list(&id, None);
            configurations
                .map(|(_, stored)| Arc::clone(stored))
                .collect()
        };
        let namespaces = KindId::new("", "namespaces");
        let within = store.get(&namespaces, &Key::new("", &key.namespace));
        Self {
            mutating: configured(MUTATING),
            validating: configured(VALIDATING),
            request: AdmissionRequest {
                calls: Arc::clone(calls),
                kind: Arc::clone(kind),
                key: key.clone(),
                options,
                within: within.filter(|_| kind.namespaced).cloned(),
            },
        }
    }

    pub(crate) fn calls(&self) -> &WebhookCalls {
        &self.request.calls
    }

    /// Lets the mutating webhooks change an object before it is checked.
    ///
    /// # Errors
    /// A webhook refuses the write, fails, or is yet to be called.
    pub(crate) fn mutate(&self, old: Option<&Value>, new: &mut Value) -> Result<(), Refusal> {
        if self.mutating.is_empty() || self.is_closed(old) {
            return Ok(());
        }
        // Without the answers so far, the object may not be what it will be.
        self.calls().check_made()?;
        let hooks = hooks(&self.mutating);
        let mut object = mem::take(new);
        let mut invoked = BTreeSet::new();
        let mut again = BTreeSet::new();
        for round in 0..ROUNDS {
            for hook in &hooks {
                if round > 0 && !again.contains(&hook.id()) {
                    continue;
                }
                let Some((change, steps)) = self.ask(hook, old, Some(&object), round)? else {
                    continue;
                };
                if let Some(patched) = self.patched(hook, &change, steps)? {
                    if Some(&patched) != change.new.as_deref() {
                        again.append(&mut invoked);
                    }
                    object = patched;
                }
                if hook.is_reinvoked() {
                    invoked.insert(hook.id());
                }
            }
        }
        let own = self.request.kind.api_version();
        *new = self.request.in_version(&object, &own)?.into_owned();
        Ok(())
    }

    /// Asks the validating webhooks about a write, all at the same time.
    ///
    /// # Errors
    /// A webhook refuses the write, fails, or is yet to be called.
    pub(crate) fn validate(&self, old: Option<&Value>, new: &Value) -> Result<(), Refusal> {
        self.calls().check_made()?;
        if self.is_closed(old) {
            return Ok(());
        }
        self.ask_validating(old, Some(new))
    }

    fn ask_validating(&self, old: Option<&Value>, new: Option<&Value>) -> Result<(), Refusal> {
        let mut first = Ok(());
        for hook in hooks(&self.validating) {
            // All are asked before the first refusal is returned.
            first = first.and(self.ask(&hook, old, new, 0).map(drop));
        }
        first
    }

    /// Asks all webhooks about the deletion of an object.
    ///
    /// # Errors
    /// A webhook refuses it, fails, or is yet to be called.
    pub(crate) fn check_deletion(&self, old: &Value) -> Result<(), Refusal> {
        for hook in hooks(&self.mutating) {
            if let Some((change, steps)) = self.ask(&hook, Some(old), None, 0)? {
                self.patched(&hook, &change, steps)?;
            }
        }
        self.ask_validating(Some(old), None)
    }

    /// Whether the namespace does not exist, or takes no new object: then the write fails, and no webhook is asked.
    fn is_closed(&self, old: Option<&Value>) -> bool {
        let within = self.request.within.as_ref();
        self.request.kind.namespaced
            && within.is_none_or(|within| old.is_none() && within.is_deleting())
    }

    /// Asks a webhook, if it is for this request, and returns what it was asked about, with the steps of its patch.
    fn ask<'v>(
        &self,
        hook: &Hook,
        old: Option<&'v Value>,
        new: Option<&'v Value>,
        round: usize,
    ) -> Result<Option<(Change<'v>, Option<Value>)>, Refusal> {
        let request = &self.request;
        let Some(version) = hook.wanted_version(request, old, new) else {
            return Ok(None);
        };
        let change = Change::of(request, version, old, new)?;
        if !hook.meets_conditions(request, &change)? {
            return Ok(None);
        }
        let steps = review::ask(request, hook, &change, round)?;
        Ok(Some((change, steps)))
    }

    /// Returns the object as a webhook has patched it, if it has.
    fn patched(
        &self,
        hook: &Hook,
        change: &Change<'_>,
        steps: Option<Value>,
    ) -> Result<Option<Value>, Refusal> {
        let Some(steps) = steps else {
            return Ok(None);
        };
        let Some(object) = change.new.as_deref() else {
            let name = hook.name();
            return Err(Refusal::internal_error(&format!(
                "admission webhook {name:?} attempted to modify the object, which is not supported for this operation"
            )));
        };
        let kind = &self.request.kind;
        let mut patched = object.clone();
        patch::json(&mut patched, &steps)
            .map_err(|refusal| Refusal::internal_error(refusal.message()))?;
        if let Some(go_type) = kind.go_type {
            types::decode(go_type, &mut patched).map_err(|why| Refusal::internal_error(&why))?;
        } else if let Some(schema) = kind.schema_of(&change.version) {
            schema::prune(schema, &mut patched);
            schema::drop_nulls(schema, &mut patched);
            schema::apply_defaults(schema, &mut patched);
        }
        object::tidy_metadata(&mut patched);
        Ok(Some(patched))
    }
}

/// Returns the webhooks of configurations, in order.
fn hooks(configurations: &[Arc<StoredObject>]) -> Vec<Hook> {
    let read = configurations.iter().map(|stored| stored.read());
    read.flat_map(|configuration| Hook::all(&configuration))
        .collect()
}
