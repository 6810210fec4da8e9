//! A migration by Kubernetes itself: the kind `StorageVersionMigration`, which some API servers have.
//!
//! See the [documentation of Kubernetes](https://kubernetes.io/docs/tasks/manage-kubernetes-objects/storage-version-migration/).

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use okt_wire::texts::api_message;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::definition::Definition;

/// How often the progress is printed.
pub(super) const REPORTED: Duration = Duration::from_secs(5);

const GROUP: &str = "storagemigration.k8s.io";

/// The versions that name what is migrated by group and resource; `v1alpha1` had another form.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How long Kubernetes may take to begin. Its controller looks for new kinds every half minute, and may not run at all.
const BEGINS: Duration = Duration::from_mins(3);

/// What it says if its own controllers have not seen the changed kind within a minute, as in a busy cluster.
const UNSEEN: [&str; 2] = ["does not exist in GC", "unable to obtain GVR"];

/// How often it is asked: a kind that was not seen yet may be seen the next time.
const TRIES: usize = 3;

/// How long it may take: it does not say when it cannot go on. What it has brought over is not written once more.
const ENDS: Duration = Duration::from_mins(10);

/// How often it is asked how far it is.
const ASKED: Duration = Duration::from_secs(1);

/// Lets Kubernetes bring all objects over; returns false if it does not, and says why.
///
/// # Errors
///
/// If the API server does not answer; a retry goes on.
pub(super) async fn migrate(client: &Client, crd: &Definition) -> Result<bool, String> {
    let Some(kind) = kind(client).await? else {
        return Ok(false);
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    // Each change of the definition is a migration of its own; one that was begun before goes on.
    let name = format!("{}-{}", crd.name, crd.generation.unwrap_or_default());
    let object = DynamicObject::new(&name, &kind).data(json!({
        "spec": { "resource": { "group": crd.kind.group, "resource": crd.kind.plural } },
    }));
    let mut why = None;
    for _ in 0..TRIES {
        why = match api.create(&PostParams::default(), &object).await {
            Ok(_) => followed(&api, &name).await?,
            Err(kube::Error::Api(status)) if status.code == 409 => followed(&api, &name).await?,
            Err(error) => Some(api_message(&error)),
        };
        let is_unseen = |why: &String| UNSEEN.iter().any(|it| why.contains(it));
        if !why.as_ref().is_some_and(is_unseen) {
            break;
        }
    }
    let Some(why) = why else {
        return Ok(true);
    };
    eprintln!(
        "{}: Kubernetes does not bring the objects over, so this program does: {why}",
        crd.name
    );
    Ok(false)
}

/// Waits until a migration is over, and removes it; returns why it failed.
async fn followed(api: &Api<DynamicObject>, name: &str) -> Result<Option<String>, String> {
    let begun = Instant::now();
    let mut reported = begun;
    let failed = loop {
        let migration = api.get(name).await.map_err(|error| {
            let why = api_message(&error);
            format!("cannot read the storageversionmigration {name}: {why}")
        })?;
        let status = &migration.data["status"];
        if condition(status, "Succeeded").is_some() {
            break None;
        }
        if let Some(why) = condition(status, "Failed") {
            break Some(why);
        }
        if status["resourceVersion"].is_null() && begun.elapsed() > BEGINS {
            break Some("its controller has not begun".to_owned());
        }
        if begun.elapsed() > ENDS {
            break Some("it has not come to an end in ten minutes".to_owned());
        }
        if reported.elapsed() >= REPORTED {
            reported = Instant::now();
            eprintln!("{name}: Kubernetes brings the objects over");
        }
        sleep(ASKED).await;
    };
    // One that is left over does no harm.
    let _removed = api.delete(name, &DeleteParams::default()).await;
    Ok(failed)
}

/// Returns the message of a condition that is true.
fn condition(status: &Value, kind: &str) -> Option<String> {
    let conditions = status["conditions"].as_array()?;
    let found = conditions
        .iter()
        .find(|it| it["type"] == kind && it["status"] == "True")?;
    Some(found["message"].as_str().unwrap_or_default().to_owned())
}

/// Returns the kind of migrations, if the API server has it.
async fn kind(client: &Client) -> Result<Option<ApiResource>, String> {
    let groups = client.list_api_groups().await.map_err(|error| {
        format!(
            "cannot ask the API server what it has: {}",
            api_message(&error)
        )
    })?;
    let served = groups.groups.into_iter().find(|group| group.name == GROUP);
    let served: Vec<_> = served
        .into_iter()
        .flat_map(|group| group.versions)
        .collect();
    let version = VERSIONS
        .into_iter()
        .find(|known| served.iter().any(|it| it.version == *known));
    Ok(version.map(|version| ApiResource {
        group: GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GROUP}/{version}"),
        kind: "StorageVersionMigration".to_owned(),
        plural: "storageversionmigrations".to_owned(),
    }))
}
