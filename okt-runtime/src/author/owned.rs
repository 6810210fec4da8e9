//! The cached resources of an object: those it owns, those it refers to, and those that are not ready.

use std::fmt;

use kube::Resource;
use kube::core::{ApiResource, DynamicObject, TypeMeta};
use kube::runtime::reflector::ObjectRef;
use okt_core::reasons;
use okt_reach::Failure;
use okt_wire::object::LifecycleObject;
use okt_wire::texts::qualified;
use serde::de::DeserializeOwned;

use crate::author::context::{Action, Context};
use crate::resources::{Lack, Owner, decoded, is_name, listed, placed};

/// A selection of the resources that an object owns.
///
/// ```
/// use k8s_openapi::api::{apps::v1::StatefulSet, batch::v1::Job};
/// use okt::{Action, Failure, LifecycleObject, Which};
///
/// # async fn example<K: LifecycleObject>(cx: &Action<K>) -> Result<(), Failure> {
/// cx.wait_ready(&[Which::of::<StatefulSet>(), Which::of::<Job>().named("schema")]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Which {
    api: Option<ApiResource>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Which {
    /// Selects all owned resources.
    pub fn all() -> Self {
        Self {
            api: None,
            namespace: None,
            name: None,
        }
    }

    /// Selects the owned resources of a kind; at least one must exist.
    pub fn of<T: Resource<DynamicType = ()>>() -> Self {
        Self::of_dynamic(ApiResource::erase::<T>(&()))
    }

    /// Does the same as [`of`](Self::of) for a kind without a Rust type.
    pub fn of_dynamic(api: ApiResource) -> Self {
        Self {
            api: Some(api),
            namespace: None,
            name: None,
        }
    }

    /// Selects only the resource with this name, which must exist.
    ///
    /// It is the one in the object's own namespace, or a cluster-scoped one, unless [`within`](Self::within) names
    /// another namespace.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Selects the resource of [`named`](Self::named) in this namespace instead of the object's own.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

/// An owned resource that is not ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unready {
    /// Its kind, if it is known.
    pub kind: Option<String>,
    /// Its name, prefixed with its namespace if that is not the owner's.
    pub name: String,
    /// Why it is not ready, for people.
    pub why: String,
    /// Whether it will not become ready by itself.
    pub is_stuck: bool,
}

impl fmt::Display for Unready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind} ")?;
        }
        write!(f, "{}: {}", self.name, self.why)
    }
}

impl<K: LifecycleObject> Context<K> {
    /// Returns the owned resources of a kind, from the cache.
    ///
    /// # Errors
    ///
    /// A permanent failure, if [`watches`](crate::Application::watches) does not declare the kind as owned, or only its
    /// metadata.
    pub fn owned<T>(&self) -> Result<Vec<T>, Failure>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.owned_of(&ApiResource::erase::<T>(&()))
    }

    /// Returns the same for a kind without a Rust type.
    ///
    /// # Errors
    ///
    /// As for [`owned`](Self::owned).
    pub fn owned_dynamic(&self, api: &ApiResource) -> Result<Vec<DynamicObject>, Failure> {
        let mut owned: Vec<DynamicObject> = self.owned_of(api)?;
        for object in &mut owned {
            object.types = Some(types(api));
        }
        Ok(owned)
    }

    fn owned_of<T: DeserializeOwned>(&self, api: &ApiResource) -> Result<Vec<T>, Failure> {
        let kind = &api.kind;
        let Some(number) = self.cluster.number_of(api) else {
            return Err(undeclared(
                kind,
                &format!("does not declare that kind: add `.owns::<{kind}>()`"),
            ));
        };
        if self.cluster.is_bare(number) {
            return Err(undeclared(
                kind,
                "declares only the metadata of that kind: use `owns` instead of `owns_meta`",
            ));
        }
        if let Some(why) = self.cluster.failing_kind(number) {
            self.cluster.wait_for_list(number, Owner::of(self.object()));
            return Err(Failure::retry(reasons::resources::NOT_WATCHED, why));
        }
        let owned = self.cluster.owned(self.object().meta());
        let of_kind = owned.iter().filter(|(key, _)| key.0 == number);
        let decoded = of_kind.filter_map(|(_, kept)| decoded(api, &kept.text()));
        Ok(decoded.collect())
    }

    /// Returns an object that this one refers to, from the cache; none if it does not exist.
    ///
    /// `name` names an object in this object's namespace, or a cluster-scoped one. Any other text names nothing.
    ///
    /// # Errors
    ///
    /// A permanent failure, if [`watches`](crate::Application::watches) does not declare the kind as referred to.
    pub fn referred<T>(&self, name: &str) -> Result<Option<T>, Failure>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.referred_of(&ApiResource::erase::<T>(&()), false, (None, name))
    }

    /// Returns an object in any namespace that this one refers to, from the cache; none if it does not exist.
    ///
    /// The notes on who can read which object at [`Watches::refers_across`](crate::Watches::refers_across) apply here.
    /// A reference without a namespace means the object's own.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::runtime::reflector::ObjectRef;
    /// use okt::{Context, Failure, LifecycleObject};
    ///
    /// # fn example<K: LifecycleObject>(cx: &Context<K>) -> Result<Option<Secret>, Failure> {
    /// cx.referred_across(&ObjectRef::<Secret>::new("issuer").within("certificates"))
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A permanent failure, if [`watches`](crate::Application::watches) does not declare the kind with `refers_across`.
    pub fn referred_across<T>(&self, object: &ObjectRef<T>) -> Result<Option<T>, Failure>
    where
        T: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let name = (object.namespace.as_deref(), &*object.name);
        self.referred_of(&ApiResource::erase::<T>(&()), true, name)
    }

    /// Returns the same as [`referred`](Self::referred) for a kind without a Rust type.
    ///
    /// # Errors
    ///
    /// As for [`referred`](Self::referred).
    pub fn referred_dynamic(
        &self,
        api: &ApiResource,
        name: &str,
    ) -> Result<Option<DynamicObject>, Failure> {
        let mut object: Option<DynamicObject> = self.referred_of(api, false, (None, name))?;
        if let Some(object) = &mut object {
            object.types = Some(types(api));
        }
        Ok(object)
    }

    fn referred_of<T: DeserializeOwned>(
        &self,
        api: &ApiResource,
        across: bool,
        name: (Option<&str>, &str),
    ) -> Result<Option<T>, Failure> {
        if !self.cluster.refers_to(api, across) {
            let kind = &api.kind;
            let how = if across { "refers_across" } else { "refers" };
            return Err(undeclared(
                kind,
                &format!("does not declare that kind: add `.{how}::<{kind}>(..)`"),
            ));
        }
        if let Some(why) = self.cluster.failing_reference(api) {
            return Err(Failure::retry(reasons::resources::NOT_WATCHED, why));
        }
        let kept = self
            .cluster
            .referred(Owner::of(self.object()), api, across, name);
        Ok(kept.and_then(|kept| decoded(api, &kept.text())))
    }

    /// Returns the selected owned resources that are not ready, from the cache.
    ///
    /// Readiness is decided as for [`apply_ready`](crate::Resources::apply_ready).
    pub fn unready(&self, which: &[Which]) -> Vec<Unready> {
        let mut unready = Vec::new();
        for which in which {
            for one in self.unready_of(which) {
                if !unready.contains(&one) {
                    unready.push(one);
                }
            }
        }
        unready
    }

    fn unready_of(&self, which: &Which) -> Vec<Unready> {
        let lacking = |why: &str, is_stuck| {
            let kind = which.api.as_ref().map(|api| api.kind.clone());
            vec![Unready {
                name: match &which.name {
                    Some(name) => qualified(which.namespace.as_deref(), name),
                    None => "(any)".to_owned(),
                },
                kind,
                why: why.to_owned(),
                is_stuck,
            }]
        };
        let number = match &which.api {
            None => None,
            Some(api) => match self.cluster.number_of(api) {
                None => return lacking("`watches` does not declare its kind as owned", true),
                Some(number) if self.cluster.is_bare(number) => {
                    return lacking("only the metadata of its kind is watched", true);
                }
                Some(number) => Some(number),
            },
        };
        let meta = self.object().meta();
        let own = meta.namespace.as_deref();
        let kinds = &self.cluster.watches.owned;
        let owned = self.cluster.owned(meta);
        let mut is_there = false;
        let mut unready = Vec::new();
        for (key, kept) in &owned {
            let kind = &kinds[key.0];
            let is_named = which.name.as_deref().is_none_or(|name| {
                let placed = placed(kind, own, which.namespace.as_deref(), name);
                placed.is_some_and(|placed| placed == (key.1.clone(), key.2.clone()))
            });
            if number.is_some_and(|number| number != key.0) || !is_named {
                continue;
            }
            is_there = true;
            if self.cluster.is_bare(key.0) {
                continue;
            }
            let lack = match kept.value() {
                Ok(object) => self.cluster.lack(key.0, &object),
                Err(why) => Some(Lack::Pending(format!("it cannot be read: {why}"))),
            };
            let (why, is_stuck) = match lack {
                None => continue,
                Some(Lack::Pending(why)) => (why, false),
                Some(Lack::Failed(why)) => (why, true),
            };
            let elsewhere = key.1.as_deref().filter(|it| own != Some(*it));
            unready.push(Unready {
                kind: Some(kind.to_string()),
                name: qualified(elsewhere, &key.2),
                why,
                is_stuck,
            });
        }
        match which.name.as_deref() {
            Some(name) if !is_name(name) => lacking("no object can have this name", true),
            Some(_) if !is_there => lacking("it does not exist", false),
            None if which.api.is_some() && !is_there => lacking("none exists", false),
            Some(_) | None => unready,
        }
    }
}

impl<K: LifecycleObject> Action<K> {
    /// Waits until the selected owned resources are ready, and reports as progress for which it waits.
    ///
    /// Use it in a handler that continues once they are ready. If the handler has nothing to do before that, declare
    /// them with [`apply_ready`](crate::Resources::apply_ready) instead, which needs no handler that waits.
    ///
    /// # Errors
    ///
    /// If one of them will not become ready by itself, or if the work was cancelled.
    pub async fn wait_ready(&self, which: &[Which]) -> Result<(), Failure> {
        let mut heard = self.cluster.heard();
        loop {
            // An event from here on leads to another check.
            heard.borrow_and_update();
            let unready = self.unready(which);
            if unready.is_empty() {
                return Ok(());
            }
            let stuck_objects = unready.iter().filter(|it| it.is_stuck);
            let stuck: Vec<String> = stuck_objects.map(ToString::to_string).collect();
            if !stuck.is_empty() {
                return Err(Failure::retry(
                    reasons::resources::NOT_READY,
                    listed(&stuck),
                ));
            }
            let waits: Vec<String> = unready.iter().map(ToString::to_string).collect();
            self.progress(listed(&waits));
            tokio::select! {
                () = self.cancelled() => {
                    return Err(Failure::retry(reasons::CANCELLED, "the work was cancelled"));
                }
                heard = heard.changed() => heard?,
            }
        }
    }
}

/// Returns the failure of code that asks for a kind that `watches` does not declare.
fn undeclared(kind: &str, why: &str) -> Failure {
    Failure::permanent(
        reasons::resources::NOT_DECLARED,
        format!("the operator's code asks for {kind} objects, and its `watches` {why}"),
    )
}

fn types(api: &ApiResource) -> TypeMeta {
    TypeMeta {
        api_version: api.api_version.clone(),
        kind: api.kind.clone(),
    }
}
