//! Answers requests whose body is not stored: bindings and evictions of Pods, tokens, reviews of access.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::deletion;
use super::resource::ResourceRequest;
use crate::answer::ApiAnswer;
use crate::causes::Causes;
use crate::delete;
use crate::kind::{KindId, ServedKind};
use crate::object::{self, at, put, set_condition, text};
use crate::record::Verb;
use crate::refusal::{Refusal, Subject};
use crate::selector;
use crate::store::{Key, Store};
use crate::write::Precondition;

/// The user of a token that names no account.
const USER: &str = "admin";

/// The plural of the budgets that evictions use up.
const BUDGETS: &str = "poddisruptionbudgets";

impl ResourceRequest<'_> {
    /// Answers a request whose body is not stored; `None` for any other request. A review is answered with `is_allowed`.
    pub(super) fn act(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        is_allowed: bool,
    ) -> Option<Result<ApiAnswer, Refusal>> {
        let path = self.path;
        let namespace = path.namespace.as_deref().unwrap_or_default();
        let key = Key::new(namespace, path.name.as_deref().unwrap_or_default());
        let subresource = path.subresource.as_deref().unwrap_or_default();
        Some(
            match (kind.plural.as_str(), subresource, self.record.verb) {
                ("bindings", "", Verb::Create) => {
                    let binding = self.call.typed_object(kind);
                    binding.and_then(|binding| {
                        bind(
                            store,
                            &Key::new(namespace, object::name(&binding)),
                            &binding,
                        )
                    })
                }
                (_, "", Verb::Create) if kind.is_action => {
                    let asked = self.call.typed_object(kind);
                    let client = &self.record.client;
                    asked.and_then(|asked| {
                        review(&kind.kind, asked, is_allowed, client).map(ApiAnswer::created)
                    })
                }
                ("pods", "binding", Verb::Create) => {
                    let binding = self.call.body_of("v1", "Binding");
                    binding.and_then(|binding| bind(store, &key, &binding))
                }
                ("pods", "eviction", Verb::Create) => {
                    let eviction = self.call.body_of("policy/v1", "Eviction");
                    eviction.and_then(|eviction| self.evict(store, kind, &key, &eviction))
                }
                ("serviceaccounts", "token", Verb::Create) => {
                    let request = self
                        .call
                        .body_of("authentication.k8s.io/v1", "TokenRequest");
                    request.and_then(|request| issue_token(store, kind, &key, request))
                }
                ("namespaces", "finalize", Verb::Update) => {
                    let namespace = self.call.typed_object(kind);
                    namespace.and_then(|namespace| finalize(store, kind, &key, &namespace))
                }
                _ => return None,
            },
        )
    }

    /// Deletes a Pod, unless a budget forbids it.
    fn evict(
        &mut self,
        store: &mut Store,
        kind: &Arc<ServedKind>,
        key: &Key,
        eviction: &Value,
    ) -> Result<ApiAnswer, Refusal> {
        let Some(pod) = store.get(&kind.id(), key).map(|stored| stored.read()) else {
            return Err(Refusal::not_found(kind.subject(&key.name)));
        };
        let needs_budget = !matches!(
            text(&pod, &["status", "phase"]),
            "Succeeded" | "Failed" | "Pending"
        ) && !object::is_deleting(&pod);
        let given = object::name(eviction);
        if given != key.name {
            let why = "name in URL does not match name in Eviction object";
            return Err(Refusal::bad_request(why));
        }
        // A request that waits for a webhook begins anew: nothing is written until the deletion is allowed.
        let budget = if needs_budget {
            used_budget(store, &pod)?
        } else {
            None
        };
        let options = eviction.get("deleteOptions").cloned();
        let mut options = options.unwrap_or_else(|| json!({}));
        if self.call.dry_run() {
            options["dryRun"] = json!(["All"]);
        }
        let (mut allowed, deletion) = deletion::of_eviction(
            store,
            self.calls,
            self.call,
            kind,
            key,
            &options,
            self.record,
        )?;
        self.record.dry_run = deletion.dry_run;
        if !deletion.dry_run {
            if let Some(mut budget) = budget {
                store.put(&KindId::new("policy", BUDGETS), &mut budget);
            }
            mark_evicted(store, kind, allowed.object());
        }
        delete::delete(store, kind, allowed, &deletion);
        Ok(success())
    }
}

/// Returns the answer of a creation that has nothing to show.
fn success() -> ApiAnswer {
    ApiAnswer::created(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    }))
}

/// Assigns a Pod to a node.
fn bind(store: &mut Store, key: &Key, binding: &Value) -> Result<ApiAnswer, Refusal> {
    let pods = KindId::new("", "pods");
    let subject = Subject {
        group: "",
        kind: "Pod",
        plural: "pods/binding",
        name: &key.name,
    };
    if object::name(binding) != key.name {
        let why = "name in URL does not match name in Binding object";
        return Err(Refusal::bad_request(why));
    }
    let Some(stored) = store.get(&pods, key) else {
        return Err(Refusal::not_found(Subject {
            plural: "pods",
            ..subject
        }));
    };
    let mut pod = stored.read();
    let assigned = text(&pod, &["spec", "nodeName"]);
    let name = &key.name;
    if object::is_deleting(&pod) {
        return Err(Refusal::conflict(
            subject,
            &format!("pod {name} is being deleted, cannot be assigned to a host"),
        ));
    }
    if !assigned.is_empty() {
        return Err(Refusal::conflict(
            subject,
            &format!("pod {name} is already assigned to node {assigned:?}"),
        ));
    }
    let node = text(binding, &["target", "name"]);
    if node.is_empty() {
        let subject = Subject {
            group: "",
            kind: "Binding",
            plural: "bindings",
            name,
        };
        let mut causes = Causes::default();
        causes.required("target.name", "");
        return Err(Refusal::invalid(subject, &causes));
    }
    put(&mut pod, &["spec", "nodeName"], node.into());
    for (key, value) in object::entries(binding, &["metadata", "annotations"]) {
        put(&mut pod, &["metadata", "annotations", key], value.clone());
    }
    let now = store.clock.text();
    let condition = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    set_condition(&mut pod, condition);
    store.put(&pods, &mut pod);
    Ok(success())
}

/// Sets the finalizers of a namespace.
fn finalize(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &Key,
    given: &Value,
) -> Result<ApiAnswer, Refusal> {
    let key = Key::new("", &key.name);
    let Some(stored) = store.get(&kind.id(), &key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let mut namespace = stored.read();
    Precondition::of(given).check_version(kind, &namespace)?;
    let finalizers = at(given, &["spec", "finalizers"]).cloned();
    object::set(
        object::fields(&mut namespace["spec"]),
        "finalizers",
        finalizers,
    );
    store.put(&kind.id(), &mut namespace);
    Ok(ApiAnswer::ok(namespace))
}

/// Checks that the budget of a Pod allows its eviction, and returns it as it is afterwards.
fn used_budget(store: &Store, pod: &Value) -> Result<Option<Value>, Refusal> {
    let id = KindId::new("policy", BUDGETS);
    let all = store.list(&id, Some(object::namespace(pod)));
    let matching = all.map(|(_, stored)| stored.read()).filter(|budget| {
        at(budget, &["spec", "selector"]).is_some_and(|it| selector::selects(it, pod))
    });
    let mut matching: Vec<_> = matching.collect();
    if matching.len() > 1 {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Refusal::internal_error(why));
    }
    let Some(mut budget) = matching.pop() else {
        return Ok(None);
    };
    let name = object::name(&budget).to_owned();
    let number = |key: &str| budget["status"][key].as_i64().unwrap_or(0);
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or(0);
    if number("observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Refusal::over_budget(why).retry_after(10));
    }
    let (allowed, healthy) = (number("disruptionsAllowed"), number("currentHealthy"));
    if allowed <= 0 {
        let needed = number("desiredHealthy");
        return Err(Refusal::over_budget(if healthy <= needed {
            format!(
                "The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
            )
        } else {
            format!("The disruption budget {name} does not allow evicting pods currently")
        }));
    }
    let now = store.clock.text();
    if allowed == 1 {
        let generation = number("observedGeneration");
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
            "message": "", "observedGeneration": generation, "lastTransitionTime": now,
        });
        set_condition(&mut budget, condition);
    }
    put(
        &mut budget,
        &["status", "disruptionsAllowed"],
        (allowed - 1).into(),
    );
    let disrupted = ["status", "disruptedPods", object::name(pod)];
    put(&mut budget, &disrupted, now.into());
    Ok(Some(budget))
}

/// Reports in the status of a Pod that it is evicted.
fn mark_evicted(store: &mut Store, kind: &ServedKind, pod: &mut Value) {
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null,
        "lastTransitionTime": store.clock.text(),
    });
    set_condition(pod, condition);
    store.put(&kind.id(), pod);
}

/// Returns a token of a service account. Nobody signed it: it is for clients that read it, and for token reviews here.
fn issue_token(
    store: &Store,
    kind: &ServedKind,
    key: &Key,
    mut request: Value,
) -> Result<ApiAnswer, Refusal> {
    let Some(account) = store.get(&kind.id(), key) else {
        return Err(Refusal::not_found(kind.subject(&key.name)));
    };
    let seconds = request["spec"]["expirationSeconds"]
        .as_i64()
        .unwrap_or(3600);
    if seconds < 600 {
        let subject = Subject {
            group: "authentication.k8s.io",
            kind: "TokenRequest",
            plural: "tokenrequests",
            name: "",
        };
        let detail = "may not specify a duration less than 10 minutes";
        return Err(Refusal::invalid_field(
            subject,
            "spec.expirationSeconds",
            seconds,
            detail,
        ));
    }
    let audiences = request["spec"]
        .get("audiences")
        .filter(|it| it.is_array())
        .cloned();
    let audiences = audiences.unwrap_or_else(|| json!(["https://kubernetes.default.svc"]));
    let now = store.clock.now();
    let expires = now + SignedDuration::from_secs(seconds);
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let token = format!(
        "{}.{}.",
        part(json!({ "alg": "none" })),
        part(json!({
            "iss": "https://kubernetes.default.svc",
            "sub": format!("system:serviceaccount:{}:{}", key.namespace, key.name),
            "aud": audiences,
            "iat": now.as_second(),
            "nbf": now.as_second(),
            "exp": expires.as_second(),
            "kubernetes.io": {
                "namespace": key.namespace, "serviceaccount": { "name": key.name, "uid": account.uid() },
            },
        }))
    );
    request["metadata"]["name"] = key.name.as_str().into();
    request["metadata"]["namespace"] = key.namespace.as_str().into();
    request["metadata"]["creationTimestamp"] = store.clock.text().into();
    request["spec"]["audiences"] = audiences;
    request["spec"]["expirationSeconds"] = seconds.into();
    request["status"] = json!({ "token": token, "expirationTimestamp": format!("{expires:.0}") });
    Ok(ApiAnswer::created(request))
}

/// Answers a review of a token or of an access.
fn review(kind: &str, mut review: Value, is_allowed: bool, client: &str) -> Result<Value, Refusal> {
    let user = |name: &str| {
        json!({
            "username": name, "groups": ["system:masters", "system:authenticated"],
        })
    };
    review["status"] = match kind {
        "TokenReview" if is_allowed => {
            let name = account_of(text(&review, &["spec", "token"]));
            json!({ "authenticated": true, "user": user(name.as_deref().unwrap_or(USER)) })
        }
        "TokenReview" => json!({ "user": {}, "error": "invalid bearer token" }),
        "SelfSubjectReview" => json!({ "userInfo": user(client) }),
        "SelfSubjectRulesReview" => {
            if text(&review, &["spec", "namespace"]).is_empty() {
                return Err(Refusal::bad_request("no namespace on request"));
            }
            let rule = |resources: Value| {
                if is_allowed {
                    json!([resources])
                } else {
                    json!([])
                }
            };
            json!({
                "incomplete": false,
                "resourceRules": rule(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] })),
                "nonResourceRules": rule(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] })),
            })
        }
        _ => json!({ "allowed": is_allowed }),
    };
    Ok(review)
}

/// Returns the service account of a token of this server.
fn account_of(token: &str) -> Option<String> {
    let payload = BASE64_URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?)
        .ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    payload["sub"].as_str().map(str::to_owned)
}
