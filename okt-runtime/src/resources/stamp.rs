//! The labels and annotations of every applied object: its owner, and a hash of the declaration.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use okt_core::reasons::resources as reasons;
use okt_reach::Failure;
use okt_sharding::ranges::{Ranges, prefix};
use okt_wire::digest::hex;
use okt_wire::keys::{
    APPLIED_ANNOTATION, CONTENT_ANNOTATION, OWNER_HASH_LABEL, OWNER_KIND_LABEL, OWNER_LABEL,
    OWNER_NAME_ANNOTATION, PROPAGATION_ANNOTATION, PRUNE_ANNOTATION, READY_WHEN_ANNOTATION,
    TAKES_OVER_ANNOTATION, UNOWNED_ANNOTATION, WAVE_ANNOTATION,
};
use okt_wire::object::LifecycleObject;
use okt_wire::texts::qualified;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::declared::{Declared, DeclaredOwner};
use super::kind::ResourceKind;
use super::managers::take_at;
use super::names::{Key, Name};
use super::owner::Owner;
use super::plain::{clean, encode, entry, field};

/// The value of [`PRUNE_ANNOTATION`].
pub(crate) const PRUNE_ALLOWED: &str = "allowed";

/// The prefix of OKT's field managers.
pub(crate) const MANAGER_PREFIX: &str = "okt/";

/// The longest value of a label, in bytes.
const LABEL_LIMIT: usize = 63;

/// The longest name of a field manager, in bytes.
const MANAGER_LIMIT: usize = 128;

/// The field manager and the owner label for the objects of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) manager: String,
    pub(crate) owner_kind: String,
    /// The kind of the owners.
    pub(crate) owner: ApiResource,
}

impl Identity {
    pub(crate) fn of<K: LifecycleObject>() -> Self {
        Self {
            manager: fitting(
                format!("{MANAGER_PREFIX}{}", K::crd_name()),
                MANAGER_LIMIT,
                MANAGER_PREFIX,
            ),
            owner_kind: fitting(
                format!("{}.{}", K::kind(&()), K::group(&())),
                LABEL_LIMIT,
                "",
            ),
            owner: ApiResource::erase::<K>(&()),
        }
    }

    /// Returns the label selector of objects that are owned by objects of this kind, in these ranges.
    pub(crate) fn selector(&self, ranges: Ranges) -> String {
        let of_kind = format!("{OWNER_KIND_LABEL}={}", self.owner_kind);
        if ranges == Ranges::ALL {
            return of_kind;
        }
        let prefixes: Vec<String> = ranges.prefixes().collect();
        format!("{of_kind},{OWNER_HASH_LABEL} in ({})", prefixes.join(","))
    }
}

/// Returns a name, or the prefix and a hash if the name is too long.
fn fitting(name: String, limit: usize, prefix: &str) -> String {
    if name.len() <= limit {
        name
    } else {
        format!("{prefix}{}", &hex(&Sha256::digest(name))[..40])
    }
}

/// An object as it is applied.
pub(crate) struct Applied {
    pub(crate) key: Key,
    /// The body of the apply request.
    pub(crate) body: Value,
    /// A hash of the declaration.
    pub(crate) hash: String,
    /// The fields that are only set at first, each with its place.
    pub(crate) initial: Vec<(String, Value)>,
    /// A hash of the declaration without what OKT adds to it, if the object is done once.
    pub(crate) content: Option<String>,
}

/// The owner of declared objects, and the scope of the operator.
pub(crate) struct Stamper<'a> {
    pub(crate) owner: Owner<'a>,
    pub(crate) kinds: &'a [ResourceKind],
    pub(crate) identity: &'a Identity,
    /// The only watched namespace, if the operator is limited to one.
    pub(crate) namespace: Option<&'a str>,
}

impl Stamper<'_> {
    /// Converts a declaration into the object to apply.
    ///
    /// # Errors
    ///
    /// A permanent failure: only another declaration helps.
    pub(crate) fn stamped(&self, declared: &Declared) -> Result<Applied, Failure> {
        let wrong = |what: String| Failure::permanent(reasons::BAD_RESOURCE, what);
        let mut body = declared.object.clone().map_err(wrong)?;
        let word = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Err(wrong("a resource has no `apiVersion` or no `kind`".into()));
        }
        let found = self.kinds.iter().position(|it| it.is(&api_version, &kind));
        let Some(index) = found else {
            return Err(wrong(format!(
                "{kind} ({api_version}) is declared as a resource, but not among what `watches` says is owned"
            )));
        };
        clean(&mut body);
        if (&*api_version, &*kind) == ("v1", "Secret") {
            encode(&mut body);
        }
        let mut initial = Vec::new();
        for pointer in &declared.initial {
            let value = take_at(&mut body, pointer)
                .map_err(|why| wrong(format!("a {kind} cannot be declared: {why}")))?;
            initial.extend(value.map(|value| (pointer.clone(), value)));
        }
        let content = declared
            .is_done_once(&self.kinds[index], &body)
            .then(|| short_hash(&body));
        let (namespace, name) = self.mark(declared, index, &mut body, content.clone())?;
        let hash = short_hash(&body);
        body["metadata"]["annotations"][APPLIED_ANNOTATION] = hash.clone().into();
        Ok(Applied {
            key: (index, namespace, name),
            body,
            hash,
            initial,
            content,
        })
    }

    /// Writes the namespace, the labels, annotations and owner reference of OKT into an object, and returns its place.
    fn mark(
        &self,
        declared: &Declared,
        index: usize,
        body: &mut Value,
        content: Option<String>,
    ) -> Result<Name, Failure> {
        let wrong = |what: String| Failure::permanent(reasons::BAD_RESOURCE, what);
        let kind = &self.kinds[index];
        let metadata = field(body, "metadata")
            .ok_or_else(|| wrong(format!("the metadata of a {kind} is no object")))?;
        let text = |name: &str| {
            metadata
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("name").to_owned();
        if name.is_empty() {
            return Err(wrong(format!("a {kind} has no name; give it one")));
        }
        let namespace = self.namespace_of(kind, text("namespace"), &name)?;
        let what = format!("{kind} {name}");
        let reference = self.reference(declared.owner, namespace.as_deref(), &what)?;
        match &namespace {
            Some(namespace) => metadata.insert("namespace".into(), namespace.clone().into()),
            None => metadata.remove("namespace"),
        };
        let meta = self.owner.meta;
        let uid = meta.uid.clone().unwrap_or_default();
        let unlike = |it: &str| wrong(format!("the {it} of {what} are no object"));
        let labels = entry(metadata, "labels").ok_or_else(|| unlike("labels"))?;
        labels.insert(OWNER_HASH_LABEL.into(), prefix(&uid).into());
        labels.insert(OWNER_LABEL.into(), uid.into());
        let owner_kind = self.identity.owner_kind.clone();
        labels.insert(OWNER_KIND_LABEL.into(), owner_kind.into());
        let prunable = declared.prunable.then(|| PRUNE_ALLOWED.to_owned());
        let policy = declared.propagation.as_ref();
        let managers = Some(declared.takes_over.join(",")).filter(|it| !it.is_empty());
        let unowned = (declared.owner == DeclaredOwner::None).then(|| "true".to_owned());
        let noted = [
            (OWNER_NAME_ANNOTATION, Some(owner_name(meta))),
            (PRUNE_ANNOTATION, prunable),
            (WAVE_ANNOTATION, declared.wave.map(|wave| wave.to_string())),
            (PROPAGATION_ANNOTATION, policy.map(|it| format!("{it:?}"))),
            (TAKES_OVER_ANNOTATION, managers),
            (READY_WHEN_ANNOTATION, declared.ready_when.clone()),
            (CONTENT_ANNOTATION, content),
            (UNOWNED_ANNOTATION, unowned),
        ];
        let annotations = entry(metadata, "annotations").ok_or_else(|| unlike("annotations"))?;
        for (name, value) in noted {
            annotations.extend(value.map(|value| (name.to_owned(), value.into())));
        }
        if let Some(reference) = reference {
            let references = metadata.entry("ownerReferences").or_insert(json!([]));
            let owners = references
                .as_array_mut()
                .ok_or_else(|| unlike("owner references"))?;
            // The declaration may already contain this reference.
            owners.retain(|owner| owner["uid"] != reference["uid"]);
            owners.push(reference);
        }
        Ok((namespace, name))
    }

    fn namespace_of(
        &self,
        kind: &ResourceKind,
        declared: &str,
        name: &str,
    ) -> Result<Option<String>, Failure> {
        let wrong = |what: String| Err(Failure::permanent(reasons::BAD_RESOURCE, what));
        let own = self.owner.meta.namespace.as_deref();
        let namespace = match (kind.namespaced, declared, own) {
            (false, "", _) => return Ok(None),
            (false, _, _) => {
                return wrong(format!(
                    "{kind} {name} names the namespace {declared}; its kind is cluster-scoped"
                ));
            }
            (true, "", None) => {
                return wrong(format!(
                    "{kind} {name} names no namespace, and neither does the object that it is for"
                ));
            }
            (true, "", Some(own)) => own,
            (true, declared, _) => declared,
        };
        match self.namespace {
            Some(only) if only != namespace => wrong(format!(
                "{kind} {name} is declared in the namespace {namespace}; this operator watches {only} only"
            )),
            Some(_) | None => Ok(Some(namespace.to_owned())),
        }
    }

    /// Returns the owner reference, or none for an unowned object.
    ///
    /// # Errors
    ///
    /// A permanent failure if the owner is namespaced and the object is not in its namespace: the garbage collector
    /// would delete the object as an orphan.
    fn reference(
        &self,
        owner: DeclaredOwner,
        namespace: Option<&str>,
        what: &str,
    ) -> Result<Option<Value>, Failure> {
        let own = self.owner.meta.namespace.as_deref();
        if owner == DeclaredOwner::None {
            return Ok(None);
        }
        if own.is_some() && own != namespace {
            let place = match namespace {
                Some(namespace) => format!("in the namespace {namespace}"),
                None => "in no namespace".to_owned(),
            };
            let kind = &self.identity.owner.kind;
            return Err(Failure::permanent(
                reasons::BAD_RESOURCE,
                format!(
                    "{what} lives {place}; Kubernetes would take it for an orphan of its {kind} in {} and delete it: declare it `unowned`",
                    own.unwrap_or_default()
                ),
            ));
        }
        let mut reference = json!({
            "apiVersion": self.identity.owner.api_version,
            "kind": self.identity.owner.kind,
            "name": self.owner.meta.name,
            "uid": self.owner.meta.uid,
        });
        if owner == DeclaredOwner::Controller {
            reference["controller"] = true.into();
            reference["blockOwnerDeletion"] = true.into();
        }
        Ok(Some(reference))
    }
}

fn short_hash(body: &Value) -> String {
    hex(&Sha256::digest(body.to_string()))[..16].to_owned()
}

/// Returns the name of an owner, as the annotation of its resources has it.
pub(crate) fn owner_name(meta: &ObjectMeta) -> String {
    qualified(
        meta.namespace.as_deref(),
        meta.name.as_deref().unwrap_or_default(),
    )
}
