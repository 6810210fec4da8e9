//! What a release of an operator would do to the objects of a cluster. It reads, and tries writes (`dryRun=All`), so it
//! changes nothing.
//!
//! | module | subject |
//! |---|---|
//! | `definition`, `pruned` | the custom resource definition, and the data that it drops |
//! | `places` | objects that have no place in the graph of the release, and those that it would move |
//! | `owned`, `dry_run` | owned resources, by the code that applies them |
//! | `rights` | the rights that the operator lacks |
//! | `difference`, `report` | the findings as text |

mod definition;
mod difference;
mod dry_run;
mod owned;
mod places;
mod pruned;
mod report;
mod rights;

use std::fmt::Display;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{DynamicObject, ListParams, TypeMeta};
use kube::{Api, Client};
use okt_core::Lifecycle;
use okt_runtime::__program::watched;
use okt_runtime::crd;
use okt_runtime::{Admission, Application};
use okt_runtime::{Operator, StateOf};
use okt_view::{Kind, View};
use okt_wire::api_timeout::limit_answers;
use okt_wire::object::memory_of;
use okt_wire::pruned::decode_unquoted;
use okt_wire::texts::{api_message, chain};
use okt_wire::versions::KindVersions;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::dry_run::{Record, dry_run};
use self::owned::{Owned, OwnedChange};
use self::places::{lost, moved, moved_by_change, revised};
pub(crate) use self::report::text;
use crate::in_use::in_cluster;
use crate::install::account::ServiceAccount;
use crate::install::policy::policy_name;
use crate::install::rbac::{Rbac, rbac};

/// What a release would do to the objects of one kind.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Preview {
    /// The name of the custom resource definition.
    crd: String,
    /// Whether the cluster has no such definition.
    is_new: bool,
    /// How many objects there are.
    objects: usize,
    /// What differs in the spec of the definition, in lines.
    definition: Option<String>,
    /// Why the API server refuses the definition.
    refused: Vec<String>,
    /// Objects of which the definition drops data.
    dropped: Vec<Finding>,
    /// What differs in the graph.
    graph: Vec<String>,
    /// Objects that have no place in the graph, or that the release cannot read.
    lost: Vec<Finding>,
    /// Objects that the release would move at once.
    moved: Vec<Finding>,
    /// Objects that have another revision in the release, although nobody changed their specs.
    revised: Vec<Finding>,
    /// Owned resources that would change.
    resources: Vec<OwnedChange>,
    /// Owned resources that cannot be applied.
    failed: Vec<Finding>,
    /// Kinds of workloads that a deletion of their owner in the foreground takes away while its work still runs.
    exposed: Vec<String>,
    /// What lets people do more than they should.
    open: Vec<String>,
    /// Rights that the service account lacks.
    lacking: Vec<String>,
    /// What is left to do for the versions in which objects are stored, in this order.
    next: Vec<String>,
    /// What could not be looked at, and why.
    unseen: Vec<String>,
}

/// What is found about one object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    object: String,
    what: String,
}

impl Preview {
    /// Returns whether the release would change anything.
    pub(crate) fn has_changes(&self) -> bool {
        self.is_new
            || self.definition.is_some()
            || !self.graph.is_empty()
            || !self.moved.is_empty()
            || !self.revised.is_empty()
            || !self.resources.is_empty()
    }

    /// Returns whether a person has to do something before the release runs.
    pub(crate) fn has_problems(&self) -> bool {
        !self.refused.is_empty()
            || !self.lost.is_empty()
            || !self.dropped.is_empty()
            || !self.failed.is_empty()
            || !self.lacking.is_empty()
    }
}

/// Previews one operator, whose client only tries its writes.
///
/// # Errors
///
/// If the definition or the objects cannot be read. A retry helps only if the cluster has changed.
pub(crate) async fn preview<A: Application>(
    operator: Operator<A>,
    record: &Record,
    namespaces: &[String],
    (account, beside): (&ServiceAccount, Rbac),
) -> Result<Preview, String> {
    let (client, application, watch) = operator.parts();
    let client = limit_answers(client);
    let selected = ListParams {
        label_selector: watch.label_selector,
        field_selector: watch.field_selector,
        ..ListParams::default()
    };
    let after = crd::<A::Resource>().map_err(|error| chain(&error))?;
    let is_namespaced = after.spec.scope != "Cluster";
    let name = after.metadata.name.clone().unwrap_or_default();
    let at_start = record.take().into_iter();
    let mut found = Preview {
        crd: name.clone(),
        resources: at_start
            .filter_map(|tried| owned::change(&tried, None))
            .collect(),
        ..Preview::default()
    };
    let roles = rbac::<A>(namespaces, Some(account)).map_err(|error| chain(&error))?;
    for roles in [roles, beside] {
        match rights::lacking(&client, &roles, account).await {
            Ok(lacking) => found.lacking.extend(lacking),
            Err(why) => {
                let why = format!("the rights of the service account: {why}");
                found.unseen.push(why);
                break;
            }
        }
    }
    if StateOf::<A>::GRAPH.has_approvals() {
        let policy = policy_name::<A>();
        match has_policy(&client, &policy).await {
            Ok(true) => {}
            Ok(false) => found.open.push(format!(
                "whoever may edit an object may approve its plans: `manifests --policy` prints the policy {policy}"
            )),
            Err(why) => found.unseen.push(why),
        }
    }
    let Some(before) = in_cluster(&client, &name).await? else {
        found.is_new = true;
        return Ok(found);
    };
    found.definition = definition::difference(&before, &after);
    found.refused = definition::lacking_versions(&before, &after);
    found.next = definition::next_steps(&before, &after);
    if A::pass().is_some() {
        let why = "the resources that the pass puts: its steps would act".to_owned();
        found.unseen.push(why);
    }
    let definition = after;
    let (before, after) = (Kind::of_crd(&before), Kind::of_crd(&definition));
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(found);
    };
    let versions = KindVersions::of::<A::Resource>();
    let listed = &before.resource.version;
    let known = versions.all().iter().any(|it| it.name == *listed);
    // An object of a version that the release does not have is read as the newest.
    let schema_version = if known {
        listed
    } else {
        &after.resource.version
    };
    let schema = pruned::schema_of(&definition, schema_version);
    found.graph = definition::graph_changes(&before, &after);
    for namespace in watched(namespaces) {
        let listing = before.list(&client, namespace.as_deref(), selected.clone());
        let objects = listing
            .await
            .map_err(|error| format!("cannot list {}: {}", before.id(), api_message(&error)))?;
        let owned =
            Owned::listed(&application, (&client, record), is_namespaced, namespace).await?;
        found.unseen.extend(owned.unlisted());
        for object in objects {
            let object = found.prune(object, &before, &schema);
            let converted = converted(&versions, &object, &after);
            let views = (
                View::of(&before, object),
                View::of(&after, converted.clone()),
            );
            found.look_at(converted, views, &owned).await;
        }
        found.exposed = owned.exposed();
    }
    Ok(found)
}

/// Returns whether the cluster has an admission policy of this name.
fn has_policy<'a>(client: &'a Client, name: &'a str) -> BoxFuture<'a, Result<bool, String>> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    async move {
        let found = policies
            .get_metadata_opt(name)
            .await
            .map_err(|error| format!("the admission policy {name}: {}", api_message(&error)))?;
        Ok(found.is_some())
    }
    .boxed()
}

impl Preview {
    /// Returns an object without what the schema of the release does not have: the API server drops it.
    fn prune(&mut self, mut object: DynamicObject, before: &Kind, schema: &Value) -> DynamicObject {
        let dropped = pruned::prune(&mut object.data, schema);
        if !dropped.is_empty() {
            let object = View::of(before, object.clone()).title();
            let what = format!("its definition drops {}", dropped.join(", "));
            self.dropped.push(Finding { object, what });
        }
        object
    }

    async fn look_at<A: Application>(
        &mut self,
        object: DynamicObject,
        (before, after): (View<'_>, View<'_>),
        owned: &Owned<'_, A>,
    ) {
        self.objects = self.objects.saturating_add(1);
        let read = read::<A>(&object);
        let title = after.title();
        let finding = |what: String| Finding {
            object: title.clone(),
            what,
        };
        let object = match read {
            Ok(object) => object,
            Err(why) => {
                return self.lost.push(finding(why));
            }
        };
        if let Some(why) = lost(&after) {
            self.lost.push(finding(why));
        }
        let move_ = moved_by_change::<A>(&object, &before, &after)
            .or_else(|| moved(&before, &after, Timestamp::now()));
        if let Some(move_) = move_ {
            self.moved.push(finding(move_));
        }
        if let Some(why) = revised::<A>(&object) {
            self.revised.push(finding(why));
        }
        let (changes, failures) = owned.changes(object, &title).await;
        self.resources.extend(changes);
        self.failed.extend(failures.into_iter().map(finding));
    }
}

/// Returns an object in the version on which the release acts, as the API server would show it.
fn converted(versions: &KindVersions, object: &DynamicObject, kind: &Kind) -> DynamicObject {
    let as_newest = || {
        let types = kind.resource.clone();
        DynamicObject {
            types: Some(TypeMeta {
                api_version: types.api_version,
                kind: types.kind,
            }),
            ..object.clone()
        }
    };
    let value = serde_json::to_value(object).ok();
    let converted = value.and_then(|it| versions.convert(it, &kind.resource.version).ok());
    let object = converted.and_then(|it| serde_json::from_value(it).ok());
    object.unwrap_or_else(as_newest)
}

fn cannot_read(why: impl Display) -> String {
    format!("this release cannot read it: {why}")
}

/// Reads an object as this release does.
fn read<A: Application>(object: &DynamicObject) -> Result<A::Resource, String> {
    let text = serde_json::to_string(object).map_err(|error| error.to_string())?;
    let object = decode_unquoted(&text).map_err(cannot_read)?;
    memory_of(&object).map_err(cannot_read)?;
    let admitted = A::admission(Admission::default()).admit(Arc::new(object));
    let admitted = admitted.map_err(|why| format!("this release would not act upon it: {why}"))?;
    Ok(Arc::unwrap_or_clone(admitted))
}
