//! The versions of a kind (e.g. `v1alpha1`, `v1`), and how an object of one becomes an object of another.
//!
//! Each version names the one before it, so the versions are a chain. An object goes along the chain step by step, by the
//! `From` between the types of two neighbors. What a version cannot hold is kept in an annotation (`kept`), and is back as
//! soon as the object is of the version that can hold it, unless somebody has changed what it belongs to meanwhile.

mod kept;

use std::any::TypeId;

use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use okt_core::Lifecycle;
use okt_core::trail::Trail;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use self::kept::KeptForVersions;
use crate::desired::{Desired, StateName, Visit};
use crate::keys::KEPT_ANNOTATION;
use crate::object::{LifecycleObject, LifecycleSpec, StatusOf};
use crate::pruned::decode;
use crate::sealed::Sealed;
use crate::status::{Position, Status};
use crate::version::{KindVersion, PreviousVersion, Step};

/// The parts of an object that differ between versions.
const PARTS: [&str; 2] = ["spec", "status"];

impl KindVersion {
    /// Returns the version of a resource.
    pub fn of<K: LifecycleObject>() -> Self {
        Self {
            name: K::version(&()).into_owned(),
            definition: K::crd,
            desired: || SchemaGenerator::default().into_root_schema_for::<Desired<K::State>>(),
            graph: K::State::GRAPH,
        }
    }
}

/// Returns the version `O` before the version `N` of a kind.
pub fn previous<O, N>() -> PreviousVersion
where
    O: LifecycleObject<Spec: From<N::Spec>, Extra: From<N::Extra>, Memory: From<N::Memory>>,
    N: LifecycleObject<Spec: From<O::Spec>, Extra: From<O::Extra>, Memory: From<O::Memory>>,
{
    PreviousVersion {
        version: KindVersion::of::<O>(),
        up: converted::<O, N>,
        down: converted::<N, O>,
        before: <O::Spec as LifecycleSpec>::previous,
    }
}

/// The versions of a kind, the newest first.
pub struct KindVersions {
    all: Vec<KindVersion>,
    /// How to get from each version but the last to the one before it, and back.
    steps: Vec<(Step, Step)>,
}

/// Why an object cannot be converted. A retry helps only after a change of the code, or of the object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// The operator does not have the version.
    #[error("this release of the operator does not have the version {version}")]
    NoVersion {
        /// The version.
        version: String,
    },
    /// What the object has is no object of its version.
    #[error("this is no object with an apiVersion and metadata")]
    NoObject,
}

impl KindVersions {
    /// Returns the versions of a kind, of which `K` is the newest.
    pub fn of<K: LifecycleObject>() -> Self {
        let mut versions = Self {
            all: vec![KindVersion::of::<K>()],
            steps: Vec::new(),
        };
        let mut before = K::Spec::previous();
        while let Some(previous) = before {
            versions.steps.push((previous.down, previous.up));
            versions.all.push(previous.version);
            before = (previous.before)();
        }
        versions
    }

    /// Returns all versions, the newest first.
    pub fn all(&self) -> &[KindVersion] {
        &self.all
    }

    fn position(&self, version: &str) -> Result<usize, ConversionError> {
        let found = self.all.iter().position(|it| it.name == version);
        found.ok_or_else(|| ConversionError::NoVersion {
            version: version.to_owned(),
        })
    }

    /// Reads an object by the types of its version; of a kind with one version only, nothing is read.
    ///
    /// # Errors
    ///
    /// Where it does not fit, and why. A retry does not help.
    pub fn read(&self, object: &Value) -> Result<(), String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let name = api_version.rsplit('/').next().unwrap_or_default();
        let at = self.position(name).map_err(|error| error.to_string())?;
        let down = self.steps.get(at).map(|(down, _)| down);
        let up = || Some(&self.steps.get(at.checked_sub(1)?)?.1);
        match down.or_else(up) {
            Some(step) => step(object).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Converts an object to another version.
    ///
    /// An object that the types of its version cannot read goes on as it is, so that one such object does not fail the
    /// list of all: an operator reports it.
    ///
    /// # Errors
    ///
    /// [`ConversionError`]
    pub fn convert(&self, mut object: Value, to: &str) -> Result<Value, ConversionError> {
        let api_version = object["apiVersion"].as_str();
        let (group, from) = api_version
            .and_then(|it| it.rsplit_once('/'))
            .ok_or(ConversionError::NoObject)?;
        let (group, mut at, to) = (group.to_owned(), self.position(from)?, self.position(to)?);
        if !object["metadata"].is_object() {
            return Err(ConversionError::NoObject);
        }
        while at != to {
            let (next, step, back) = if at < to {
                let (down, up) = self.steps[at];
                (at.saturating_add(1), down, up)
            } else {
                let next = at.saturating_sub(1);
                let (down, up) = self.steps[next];
                (next, up, down)
            };
            let (from, to) = (&self.all[at].name, &self.all[next].name);
            let api_version = format!("{group}/{to}");
            object = one_step(object, (from, to), api_version, (step, back));
            at = next;
        }
        Ok(object)
    }
}

impl KindVersions {
    /// Answers a request of the API server for a conversion.
    pub fn review(&self, review: ConversionReview) -> ConversionReview {
        let request = match ConversionRequest::from_review(review) {
            Ok(request) => request,
            Err(error) => {
                let refusal = kube::core::Status::failure(&error.to_string(), "BadRequest");
                return ConversionResponse::invalid(refusal).into_review();
            }
        };
        let to = request.desired_api_version.rsplit('/').next();
        let to = to.unwrap_or_default().to_owned();
        let answer = ConversionResponse::for_request(request.clone());
        let converted = request.objects.into_iter().map(|it| self.convert(it, &to));
        let answer = match converted.collect::<Result<Vec<_>, _>>() {
            Ok(objects) => answer.success(objects),
            Err(error) => answer.failure(kube::core::Status::failure(
                &error.to_string(),
                "BadRequest",
            )),
        };
        answer.into_review()
    }
}

/// Converts an object to a neighbor of its version.
fn one_step(
    mut object: Value,
    (from, to): (&str, &str),
    api_version: String,
    (step, back): (Step, Step),
) -> Value {
    let before = parts(&object);
    let mut kept = KeptForVersions::read(&object["metadata"]["annotations"][KEPT_ANNOTATION]);
    let mut now = converted_or_same(step, &object, &before);
    kept.take(to).give_back(&mut now);
    object["apiVersion"] = Value::String(api_version);
    put(&mut object, now.clone());
    let then = converted_or_same(back, &object, &now);
    kept.keep(from, &then, &before);
    write(&mut object, &kept);
    object
}

/// Returns the parts of an object in the next version, or as they are if they cannot be read.
fn converted_or_same(step: Step, object: &Value, parts: &Map<String, Value>) -> Map<String, Value> {
    step(object).unwrap_or_else(|_| parts.clone())
}

fn parts(object: &Value) -> Map<String, Value> {
    let part = |name: &str| Some((name.to_owned(), object.get(name)?.clone()));
    PARTS.into_iter().filter_map(part).collect()
}

fn put(object: &mut Value, mut parts: Map<String, Value>) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    for name in PARTS {
        match parts.remove(name) {
            Some(part) => fields.insert(name.to_owned(), part),
            None => fields.remove(name),
        };
    }
}

/// Writes the annotation of what is kept, or removes it.
fn write(object: &mut Value, kept: &KeptForVersions) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    let text = kept.text();
    if let Some(text) = text {
        let annotations = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Map::new()));
        annotations[KEPT_ANNOTATION] = Value::String(text);
    } else if let Some(annotations) = metadata.get_mut("annotations")
        && let Some(all) = annotations.as_object_mut()
    {
        all.remove(KEPT_ANNOTATION);
        if all.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Converts the parts of an object by the types of two versions.
fn converted<F, T>(object: &Value) -> Result<Map<String, Value>, String>
where
    F: LifecycleObject,
    T: LifecycleObject<Spec: From<F::Spec>, Extra: From<F::Extra>, Memory: From<F::Memory>>,
{
    let from: F = decode(&object.to_string())?;
    let json = |error: serde_json::Error| error.to_string();
    let mut spec = serde_json::to_value(T::Spec::from(from.spec_of().clone())).map_err(json)?;
    let unset = *from.spec_of().lifecycle() == Desired::NONE;
    if let Some(spec) = spec.as_object_mut().filter(|_| unset) {
        // An unset desired state has no field manager.
        spec.retain(|name, value| {
            *value != Value::Object(Map::new()) || object["spec"].get(name) == Some(value)
        });
    }
    let mut parts = Map::from_iter([("spec".to_owned(), spec)]);
    if let Some(status) = from.status_of() {
        let status: StatusOf<T> = status_in::<F, T>(status);
        parts.insert(
            "status".to_owned(),
            serde_json::to_value(status).map_err(json)?,
        );
    }
    parts.values_mut().for_each(without_nulls);
    Ok(parts)
}

/// Removes fields that are null: a field that serde writes as null was not there.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn status_in<F, T>(status: &StatusOf<F>) -> StatusOf<T>
where
    F: LifecycleObject,
    T: LifecycleObject<Extra: From<F::Extra>, Memory: From<F::Memory>>,
{
    let position = status.lifecycle.as_ref();
    Status {
        observed_generation: status.observed_generation,
        lifecycle: position.map(|position| {
            let mut position = position.clone().in_version();
            position.memory = position.memory.map(memory_in::<F::Memory, T::Memory>);
            position
        }),
        conditions: status.conditions.clone(),
        recorded_resources: status.recorded_resources.clone(),
        extra: status.extra.clone().into(),
        remembers: std::marker::PhantomData,
    }
}

/// Returns what handlers remember in the type of another version; as it is if nobody may act upon it anyway.
fn memory_in<F, T>(memory: Sealed) -> Sealed
where
    F: serde::de::DeserializeOwned + 'static,
    T: From<F> + serde::Serialize + 'static,
{
    if TypeId::of::<F>() == TypeId::of::<T>() || !memory.is_intact() {
        return memory;
    }
    let converted = memory.read::<F>().ok().map(|it| Sealed::of(&T::from(it)));
    converted.and_then(Result::ok).unwrap_or(memory)
}

/// Returns the name of a state in another version: the same, or one that `#[was(..)]` connects with it.
fn name_in<F: Lifecycle, T: Lifecycle>(name: &str) -> String {
    let in_other = |name: &str| T::from_name(name).map(|it| it.name().to_owned());
    let own = F::from_name(name);
    let present = own.map_or(name, |it| it.name());
    let former = own.and_then(|it| F::GRAPH.get(it.id()));
    let former = former.map_or(&[][..], |it| it.was);
    in_other(present)
        .or_else(|| former.iter().find_map(|name| in_other(name)))
        .unwrap_or_else(|| present.to_owned())
}

impl<S: Lifecycle> StateName<S> {
    /// Returns the state in another version of the kind.
    fn in_version<T: Lifecycle>(&self) -> StateName<T> {
        StateName::of(&name_in::<S, T>(self.as_str()))
    }
}

impl<S: Lifecycle> Desired<S> {
    /// Returns the desired state in another version of the kind, whose states may have other names.
    ///
    /// A state has the same name in both versions, or one is a former name of the other (`#[was("Halted")]`).
    ///
    /// ```
    /// # use okt::{Desired, lifecycle_graph};
    /// mod v1alpha1 {
    /// #   use okt::lifecycle_graph;
    ///     #[lifecycle_graph]
    ///     #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    ///     pub enum ShopState { #[entry] #[rest(idle)] #[child(Gone)] Halted, #[leaf(idle)] Gone }
    /// }
    /// #[lifecycle_graph]
    /// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    /// pub enum ShopState { #[entry] #[rest(idle)] #[child(Gone)] #[was("Halted")] Stopped, #[leaf(idle)] Gone }
    ///
    /// let old: Desired<v1alpha1::ShopState> = serde_json::from_str(r#"{ "state": "Halted" }"#)?;
    /// let new: Desired<ShopState> = old.in_version();
    /// assert_eq!(serde_json::to_string(&new)?, r#"{"state":"Stopped"}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn in_version<T: Lifecycle>(self) -> Desired<T> {
        let visit = self.visit.map(|visit| Visit {
            state: visit.state.in_version(),
            request: visit.request,
        });
        Desired {
            state: self.state.map(|state| state.in_version()),
            request: self.request,
            visit,
            approve: self.approve,
        }
    }
}

impl<S: Lifecycle> Position<S> {
    /// Returns the position in another version of the kind, whose states may have other names.
    fn in_version<T: Lifecycle>(mut self) -> Position<T> {
        let rename = |name: &mut String| {
            if !name.is_empty() {
                *name = name_in::<S, T>(name);
            }
        };
        self.desired.iter_mut().for_each(|it| rename(&mut it.state));
        self.visit.iter_mut().for_each(|it| rename(&mut it.state));
        self.request.iter_mut().for_each(|it| rename(&mut it.state));
        self.waiting.iter_mut().for_each(|it| rename(&mut it.to));
        for transition in &mut self.history {
            rename(&mut transition.from);
            rename(&mut transition.to);
        }
        if let Ok(trail) = self.trail.parse::<Trail>() {
            self.trail = trail.renamed(name_in::<S, T>).to_string();
        }
        Position {
            state: self.state.in_version(),
            since: self.since,
            deadline_since: self.deadline_since,
            acting: self.acting,
            absent_since: self.absent_since,
            transition: self.transition,
            jumps: self.jumps,
            rounds: self.rounds,
            desired: self.desired,
            visit: self.visit,
            request: self.request,
            revision: self.revision,
            changed: self.changed,
            revision_generation: self.revision_generation,
            parts: self.parts,
            referred: self.referred,
            memory: self.memory,
            action: self.action,
            waiting: self.waiting,
            returned: self.returned,
            failure: self.failure,
            trail: self.trail,
            history: self.history,
            delivered: self.delivered,
            graph: self.graph,
        }
    }
}
