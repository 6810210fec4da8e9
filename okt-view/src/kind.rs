//! The kinds of objects that OKT operators manage, found in the cluster by the graph of their CRDs.

use std::collections::{BTreeMap, HashSet};

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIResource, ObjectMeta};
use kube::api::{DynamicObject, GetParams, ListParams};
use kube::core::{DynamicResourceScope, Request, Status};
use kube::discovery::ApiResource;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use okt_core::Graph;
use okt_core::stored::StoredGraph;
use okt_wire::keys::{GRAPH_ANNOTATION, REQUEST_OF_ANNOTATION, REQUEST_STATE_ANNOTATION};
use okt_wire::scope::api;
use okt_wire::texts::chain;
use okt_wire::watch::{PAGE, change_objects, retried};
use serde::Deserialize;
use serde_json::Value;

use super::stranger::Stranger;
use super::text::{clean, plain};

/// The category of all kinds of OKT operators (`kubectl get okt`).
const CATEGORY: &str = "okt";

/// The field of a spec that has the desired state, unless the schema has another one.
const FIELD: &str = "lifecycle";

/// How many CRDs are read at once.
const CONCURRENT: usize = 8;

/// A request that failed, in words for people. A retry helps only if the cluster, or what the user may do, has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot {what}: {why}")]
pub struct RequestError {
    what: String,
    why: String,
}

impl RequestError {
    /// Creates the error; `what` is what was wanted (e.g. `list databases.demo.okt.dev`).
    pub fn new(what: impl Into<String>, error: &kube::Error) -> Self {
        let what = what.into();
        let why = explained(&what, error);
        Self { what, why }
    }
}

fn explained(what: &str, error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.code == 401 => {
            "the API server does not accept your credentials; log in again, or choose another context by --context".to_owned()
        }
        kube::Error::Api(status) if status.code == 403 => {
            let reads = ["get ", "list ", "read ", "watch "];
            let is_read = reads.iter().any(|verb| what.starts_with(verb));
            let role = if is_read { "view" } else { "edit" };
            format!(
                "you may not: {}; ask an administrator for the cluster role `<plural>.<group>:{role}`, which the subcommand `rbac` of the operator prints",
                message(status)
            )
        }
        kube::Error::Api(status) => message(status),
        error => chain(error),
    }
}

/// Returns what a server says; some proxies say nothing.
fn message(status: &Status) -> String {
    if status.message.trim().is_empty() {
        format!("the answer is {} without a word", status.code)
    } else {
        status.message.clone()
    }
}

/// A kind of objects that an OKT operator manages.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its group, version and names.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
    /// The graph, or why it cannot be read.
    pub graph: Result<&'static Graph<'static>, String>,
    /// The field of the spec with the desired state.
    pub field: String,
    /// The kinds of the requests that its objects serve.
    pub requests: Vec<RequestResource>,
    /// The names by which kubectl knows the kind, in lower case.
    names: Vec<String>,
}

/// A kind of requests: objects that ask another one for a visit with arguments.
#[derive(Clone, Debug)]
pub struct RequestResource {
    /// Its names; it has no graph.
    pub kind: Kind,
    /// The state that serves the requests.
    pub state: String,
    /// The schema of the arguments; none if it cannot be read.
    pub args: Option<JSONSchemaProps>,
}

impl RequestResource {
    fn of_crd(crd: &CustomResourceDefinition) -> Option<Self> {
        let state = annotation(crd, REQUEST_STATE_ANNOTATION)?;
        let fields = spec_fields(usable(&crd.spec)?);
        Some(Self {
            kind: Kind::of_crd(crd)?,
            state: plain(state),
            args: fields.and_then(|fields| fields.get("args")).cloned(),
        })
    }
}

impl Kind {
    /// Returns every kind of an OKT operator, by group and name.
    ///
    /// Without the right to list CRDs it finds the kinds by their category, without their graphs.
    ///
    /// # Errors
    ///
    /// If the API server does not answer, or refuses both.
    pub async fn all(client: &Client) -> Result<Vec<Self>, RequestError> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let failed = |error: kube::Error| {
            RequestError::new(
                "list customresourcedefinitions.apiextensions.k8s.io",
                &error,
            )
        };
        // Most CRDs of a cluster are not of OKT, and the schema is the larger part of a CRD.
        let mut kinds = match api.list_metadata(&ListParams::default()).await {
            Ok(crds) => {
                let names = crds.items.into_iter().filter_map(|crd| {
                    let annotations = crd.metadata.annotations.unwrap_or_default();
                    let name = crd.metadata.name?;
                    let of_okt = [GRAPH_ANNOTATION, REQUEST_OF_ANNOTATION];
                    of_okt
                        .iter()
                        .any(|it| annotations.contains_key(*it))
                        .then_some(name)
                });
                let reads = stream::iter(names.map(|name| {
                    let requests = Request::new(api.resource_url());
                    async move {
                        let request = requests
                            .get(&name, &GetParams::default())
                            .map_err(kube::Error::BuildRequest)?;
                        match client.request_text(request).await {
                            Ok(text) => Ok(Some(text)),
                            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
                            Err(error) => Err(error),
                        }
                    }
                }));
                let texts: Vec<_> = reads
                    .buffered(CONCURRENT)
                    .try_collect()
                    .await
                    .map_err(failed)?;
                // One that cannot be read hides no other.
                let crds = texts
                    .iter()
                    .flatten()
                    .filter_map(|text| read_crd(text).ok());
                Self::of_crds(&crds.collect::<Vec<_>>())
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                Self::by_category(client, &status.message).await?
            }
            Err(error) => return Err(failed(error)),
        };
        kinds.sort_by_key(Self::id);
        Ok(kinds)
    }

    /// Returns the kinds of these CRDs that have a graph, each with the kinds of its requests.
    pub(crate) fn of_crds(crds: &[CustomResourceDefinition]) -> Vec<Self> {
        let graphs = crds
            .iter()
            .filter(|crd| annotation(crd, GRAPH_ANNOTATION).is_some());
        let mut kinds: Vec<Self> = graphs.filter_map(Self::of_crd).collect();
        for crd in crds {
            let of = annotation(crd, REQUEST_OF_ANNOTATION);
            if let Some(kind) = kinds.iter_mut().find(|kind| of == Some(&*kind.id())) {
                kind.requests.extend(RequestResource::of_crd(crd));
            }
        }
        kinds
    }

    /// Returns the kind of a CRD, without the kinds of its requests; none if it serves no version.
    pub fn of_crd(crd: &CustomResourceDefinition) -> Option<Self> {
        let spec = &crd.spec;
        let version = usable(spec)?;
        let text = annotation(crd, GRAPH_ANNOTATION);
        let graph = match text.map(read) {
            Some(Ok(graph)) => Ok(graph),
            Some(Err(why)) => Err(format!(
                "the annotation {GRAPH_ANNOTATION} of the CRD cannot be read: {why}"
            )),
            None => Err(format!("the CRD has no annotation {GRAPH_ANNOTATION}")),
        };
        let names = &spec.names;
        let mut known = vec![names.plural.clone(), names.kind.clone()];
        known.extend(names.singular.clone());
        known.extend(names.short_names.iter().flatten().cloned());
        Some(Self {
            resource: ApiResource {
                group: spec.group.clone(),
                version: version.name.clone(),
                api_version: format!("{}/{}", spec.group, version.name),
                kind: names.kind.clone(),
                plural: names.plural.clone(),
            },
            is_namespaced: spec.scope == "Namespaced",
            field: desired_field(version, graph.as_deref().ok()),
            graph,
            requests: Vec::new(),
            names: known.iter().map(|name| name.to_lowercase()).collect(),
        })
    }

    /// Finds the kinds of the category `okt` by discovery, which every user may read.
    async fn by_category(client: &Client, why: &str) -> Result<Vec<Self>, RequestError> {
        let mut kinds = Self::served(client).await?;
        kinds.retain(|(resource, _)| {
            resource
                .categories
                .iter()
                .flatten()
                .any(|it| it == CATEGORY)
        });
        let why = format!("its CRD cannot be read: {why}");
        let kinds = kinds.into_iter().map(|(_, kind)| Self {
            graph: Err(why.clone()),
            ..kind
        });
        Ok(kinds.collect())
    }

    /// Returns the kinds of any operator, or of Kubernetes itself, that a user means; without their graphs.
    ///
    /// # Errors
    ///
    /// If the API server does not answer.
    pub async fn any(client: &Client, name: &str) -> Result<Vec<Self>, RequestError> {
        let kinds = Self::served(client)
            .await?
            .into_iter()
            .map(|(_, kind)| kind);
        Ok(kinds.filter(|kind| kind.is_called(name)).collect())
    }

    /// Returns every kind that the API server serves, by discovery.
    async fn served(client: &Client) -> Result<Vec<(APIResource, Self)>, RequestError> {
        let failed = |error: kube::Error| RequestError::new("read the API groups", &error);
        let groups = client.list_api_groups().await.map_err(failed)?;
        // Some kinds are only in versions that are not the preferred one of their group.
        let versions = groups.groups.into_iter().flat_map(|group| {
            let preferred = group.preferred_version.into_iter();
            let versions = preferred.chain(group.versions);
            let names: Vec<_> = versions.map(|version| version.version).collect();
            names
                .into_iter()
                .map(move |version| (group.name.clone(), version))
        });
        let core = (String::new(), "v1".to_owned());
        let calls = stream::iter(std::iter::once(core).chain(versions).map(
            |(group, version)| async move {
                let list = if group.is_empty() {
                    client.list_core_api_resources(&version).await
                } else {
                    client
                        .list_api_group_resources(&format!("{group}/{version}"))
                        .await
                };
                // One group whose server does not answer must not hide the others.
                let resources = list.map(|list| list.resources).unwrap_or_default();
                (group, version, resources)
            },
        ));
        let lists: Vec<_> = calls.buffered(CONCURRENT).collect().await;
        let mut known = HashSet::new();
        let kinds = lists.into_iter().flat_map(|(group, version, resources)| {
            let whole = resources
                .into_iter()
                .filter(|resource| !resource.name.contains('/'));
            whole.map(move |resource| {
                let kind = Self::discovered(&group, &version, &resource);
                (resource, kind)
            })
        });
        Ok(kinds.filter(|(_, kind)| known.insert(kind.id())).collect())
    }

    fn discovered(group: &str, version: &str, resource: &APIResource) -> Self {
        let mut names = vec![&resource.name, &resource.kind, &resource.singular_name];
        names.extend(resource.short_names.iter().flatten());
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        Self {
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version,
                kind: resource.kind.clone(),
                plural: resource.name.clone(),
            },
            is_namespaced: resource.namespaced,
            graph: Err("its CRD was not read".to_owned()),
            field: FIELD.to_owned(),
            requests: Vec::new(),
            names: names.into_iter().map(|name| name.to_lowercase()).collect(),
        }
    }

    /// Returns the full name (e.g. `databases.demo.okt.dev`).
    pub fn id(&self) -> String {
        match self.resource.group.as_str() {
            "" => self.resource.plural.clone(),
            group => format!("{}.{group}", self.resource.plural),
        }
    }

    /// Returns whether a user means this kind: plural, singular, short name or kind, with or without the group.
    pub fn is_called(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let (name, group) = name.split_once('.').unwrap_or((&name, ""));
        let is_group = group.is_empty()
            || group == self.resource.group
            || group == format!("{}.{}", self.resource.version, self.resource.group);
        is_group && self.names.iter().any(|own| own == name)
    }

    /// Returns the graph if there is one that can be read and that has states.
    pub fn graph(&self) -> Option<&'static Graph<'static>> {
        let graph = *self.graph.as_ref().ok()?;
        (!graph.states.is_empty()).then_some(graph)
    }

    /// Returns whether objects of this kind have no states, because their operator runs a pass.
    pub fn has_no_states(&self) -> bool {
        self.graph
            .as_ref()
            .is_ok_and(|graph| graph.states.is_empty())
    }

    /// Lists the objects of a namespace, or of all, page by page; `parameters` select among them.
    ///
    /// # Errors
    ///
    /// If a page cannot be listed; a retry of the whole list may help.
    pub fn list<'a>(
        &'a self,
        client: &'a Client,
        namespace: Option<&'a str>,
        parameters: ListParams,
    ) -> BoxFuture<'a, Result<Vec<DynamicObject>, kube::Error>> {
        async move {
            let api: Api<Stranger> = self.api(client, namespace);
            let mut parameters = parameters.limit(PAGE);
            let mut objects = Vec::new();
            loop {
                let page = api.list(&parameters).await?;
                objects.extend(page.items.into_iter().map(|stranger| stranger.0));
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => parameters = parameters.continue_token(&token),
                    None => return Ok(objects),
                }
            }
        }
        .boxed()
    }

    /// Watches the objects of a namespace, or of all: a list first, then each change. After a failure it waits and tries
    /// again, for as long as it is polled; give it a client that [limits its answers](okt_wire::api_timeout::limit_answers).
    pub fn events(
        &self,
        client: &Client,
        namespace: Option<&str>,
        config: watcher::Config,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + Send + use<> {
        let events = retried(watcher(self.api::<Stranger>(client, namespace), config));
        events.map(|event| change_objects(event?, |Stranger(object)| Ok(object)))
    }

    /// Returns the requests about objects of a namespace, or of all.
    pub fn objects(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        self.api(client, namespace)
    }

    fn api<T>(&self, client: &Client, namespace: Option<&str>) -> Api<T>
    where
        T: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        api(
            client,
            namespace.filter(|_| self.is_namespaced),
            &self.resource,
        )
    }
}

/// What a view needs of a CRD, also where its schema cannot be read.
#[derive(Deserialize)]
struct BareKind {
    metadata: ObjectMeta,
    spec: BareSpec,
}

#[derive(Deserialize)]
struct BareSpec {
    group: String,
    scope: String,
    names: CustomResourceDefinitionNames,
    versions: Vec<BareVersion>,
}

#[derive(Deserialize)]
struct BareVersion {
    name: String,
    served: bool,
    storage: bool,
}

/// Reads a CRD, or what of it can be read.
fn read_crd(text: &str) -> Result<CustomResourceDefinition, serde_json::Error> {
    serde_json::from_str(text).or_else(|_| {
        let BareKind { metadata, spec } = serde_json::from_str(text)?;
        let versions = spec
            .versions
            .into_iter()
            .map(|version| CustomResourceDefinitionVersion {
                name: version.name,
                served: version.served,
                storage: version.storage,
                ..CustomResourceDefinitionVersion::default()
            });
        Ok(CustomResourceDefinition {
            metadata,
            spec: CustomResourceDefinitionSpec {
                group: spec.group,
                scope: spec.scope,
                names: spec.names,
                versions: versions.collect(),
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        })
    })
}

fn annotation<'c>(crd: &'c CustomResourceDefinition, name: &str) -> Option<&'c str> {
    let annotations = crd.metadata.annotations.as_ref();
    Some(annotations?.get(name)?.as_str())
}

/// Returns the version that is stored, or else one that is served.
fn usable(spec: &CustomResourceDefinitionSpec) -> Option<&CustomResourceDefinitionVersion> {
    let mut served = spec.versions.iter().filter(|version| version.served);
    let first = served.clone().next();
    served.find(|version| version.storage).or(first)
}

/// Returns the schemas of the fields of the spec.
fn spec_fields(
    version: &CustomResourceDefinitionVersion,
) -> Option<&BTreeMap<String, JSONSchemaProps>> {
    let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    schema.properties.as_ref()?.get("spec")?.properties.as_ref()
}

/// Reads a graph; its texts control no terminal.
fn read(text: &str) -> Result<&'static Graph<'static>, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    clean(&mut value);
    let graph = StoredGraph::read(&value.to_string()).map_err(|error| error.to_string())?;
    Ok(graph.leak())
}

/// Returns the field of the spec that has the desired state: the one whose schema lists states of the graph.
fn desired_field(version: &CustomResourceDefinitionVersion, graph: Option<&Graph<'_>>) -> String {
    let lists_states = |field: &&JSONSchemaProps| {
        let state = field.properties.as_ref().and_then(|it| it.get("state"));
        let mut values = state.and_then(|it| it.enum_.as_ref()).into_iter().flatten();
        let graph = graph.filter(|graph| !graph.states.is_empty());
        graph.is_some_and(|graph| {
            values.any(|value| value.0.as_str().is_some_and(|it| graph.named(it).is_some()))
        })
    };
    let mut fields = spec_fields(version).into_iter().flatten();
    let found = fields.find(|(_, field)| lists_states(field));
    found.map_or_else(|| FIELD.to_owned(), |(name, _)| name.clone())
}
