//! Behaviours of Leases that processes rely on when they agree about who does what.

use futures::{TryStreamExt, future::try_join_all};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, WatchEvent},
    core::Status,
};
use serde_json::json;

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::{World, events_only},
};

/// A uid that no object has.
const OTHER: &str = "00000000-0000-4000-8000-999999999999";

async fn create(world: &World, name: &str) -> Result<Lease, Failure> {
    let lease = json!({ "metadata": { "name": name }, "spec": { "holderIdentity": "me" } });
    let lease = serde_json::from_value(lease)?;
    let leases: Api<Lease> = world.namespaced();
    Ok(leases.create(&PostParams::default(), &lease).await?)
}

/// Renews a Lease of this uid by a merge patch.
async fn renew(world: &World, name: &str, uid: &str, holder: &str) -> kube::Result<Lease> {
    let patch = json!({ "metadata": { "uid": uid }, "spec": { "holderIdentity": holder } });
    let leases: Api<Lease> = world.namespaced();
    leases
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

async fn holder(world: &World, name: &str) -> Result<Option<String>, Failure> {
    let lease = world.namespaced::<Lease>().get(name).await?;
    Ok(lease.spec.given()?.holder_identity)
}

async fn a_patch_for_another_uid_is_422_and_changes_nothing(world: &World) -> Outcome {
    let first = create(world, "a").await?;
    let uid = first.uid().given()?;
    renew(world, "a", &uid, "again").await?;
    let leases: Api<Lease> = world.namespaced();
    leases.delete("a", &DeleteParams::default()).await?;
    create(world, "a").await?;
    for uid in [uid.as_str(), OTHER] {
        let status = refusal(renew(world, "a", uid, "former").await)?;
        ensure_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        let immutable = format!("Invalid value: \"{uid}\": field is immutable");
        ensure_eq!(
            status.message,
            format!("Lease.coordination.k8s.io \"a\" is invalid: metadata.uid: {immutable}")
        );
        let causes = status.details.given()?.causes;
        // The server checks it twice.
        ensure_eq!(causes.len(), 2);
        ensure!(
            (causes.iter()).all(|it| it.field == "metadata.uid" && it.message == immutable),
            "{causes:?}"
        );
    }
    ensure_eq!(holder(world, "a").await?.as_deref(), Some("me"));
    Ok(())
}

async fn a_put_for_another_uid_is_409_with_or_without_a_version(world: &World) -> Outcome {
    let mut lease = create(world, "a").await?;
    let uid = lease.uid().given()?;
    lease.metadata.uid = Some(OTHER.to_owned());
    let mut widget = world.create("a", json!({})).await?;
    let widget_uid = widget.metadata.uid.replace(OTHER.to_owned()).given()?;
    let leases: Api<Lease> = world.namespaced();
    for version in [None, Some("1".to_owned())] {
        lease.metadata.resource_version.clone_from(&version);
        widget.metadata.resource_version = version;
        let outcome = leases.replace("a", &PostParams::default(), &lease).await;
        for (status, uid) in [
            (refusal(outcome)?, &uid),
            (refusal(world.replace(&widget).await)?, &widget_uid),
        ] {
            ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
            let end = format!("UID in precondition: {OTHER}, UID in object meta: {uid}");
            ensure!(status.message.ends_with(&end), "{}", status.message);
        }
    }
    Ok(())
}

async fn a_patch_of_an_absent_lease_is_404_while_an_apply_or_a_put_creates_it(
    world: &World,
) -> Outcome {
    let status = refusal(renew(world, "a", OTHER, "me").await)?;
    ensure_eq!(
        (status.code, status.message.as_str()),
        (404, "leases.coordination.k8s.io \"a\" not found")
    );
    let leases: Api<Lease> = world.namespaced();
    ensure!(leases.get_opt("a").await?.is_none());
    let applied = Patch::Apply(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
    }));
    leases
        .patch("a", &PatchParams::apply("m"), &applied)
        .await?;
    let put = json!({ "metadata": { "name": "b" }, "spec": {} });
    let put: Lease = serde_json::from_value(put)?;
    leases.replace("b", &PostParams::default(), &put).await?;
    ensure!(leases.get_opt("a").await?.is_some() && leases.get_opt("b").await?.is_some());
    Ok(())
}

/// Deletes a Lease under both preconditions.
async fn delete(world: &World, name: &str, uid: &str, version: &str) -> Result<Status, Failure> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
        }),
        ..DeleteParams::default()
    };
    let leases: Api<Lease> = world.namespaced();
    match leases.delete(name, &params).await {
        Ok(answer) => Ok(answer.right().given()?),
        Err(error) => refusal::<()>(Err(error)),
    }
}

async fn a_lease_is_deleted_only_under_its_uid_and_its_version(world: &World) -> Outcome {
    let lease = create(world, "a").await?;
    let (uid, old) = (lease.uid().given()?, lease.resource_version().given()?);
    let lease = renew(world, "a", &uid, "again").await?;
    let version = lease.resource_version().given()?;
    let wrong_uid = format!(
        "the UID in the precondition ({OTHER}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
    );
    let wrong_version = format!(
        "the ResourceVersion in the precondition ({old}) does not match the ResourceVersion in record ({version}). The object might have been modified"
    );
    for (uid, version, message) in [
        (OTHER, version.as_str(), &wrong_uid),
        (OTHER, &old, &wrong_uid),
        (&uid, &old, &wrong_version),
    ] {
        let status = delete(world, "a", uid, version).await?;
        ensure_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        ensure_eq!(
            status.message,
            format!("Operation cannot be fulfilled on Lease.coordination.k8s.io \"a\": {message}")
        );
    }
    ensure_eq!(holder(world, "a").await?.as_deref(), Some("again"));
    let status = delete(world, "a", &uid, &version).await?;
    ensure!(status.is_success(), "{status:?}");
    ensure_eq!(status.details.given()?.uid, uid);
    let status = delete(world, "a", &uid, &version).await?;
    ensure_eq!(status.code, 404, "it is gone");
    Ok(())
}

async fn a_watch_of_several_leases_is_in_the_order_of_their_commits(world: &World) -> Outcome {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let first = create(world, "first").await?;
    let lives = NAMES.map(async |name| -> Result<Vec<(u64, String)>, Failure> {
        let mut written = Vec::new();
        let mut lease = create(world, name).await?;
        let uid = lease.uid().given()?;
        for round in 0..5 {
            written.push((lease.resource_version().given()?.parse()?, name.to_owned()));
            lease = renew(world, name, &uid, &round.to_string()).await?;
        }
        let version = lease.resource_version().given()?;
        written.push((version.parse()?, name.to_owned()));
        // The answer of a deletion does not contain its version.
        delete(world, name, &uid, &version).await?;
        Ok(written)
    });
    let mut written = try_join_all(lives).await?.concat();
    written.sort_unstable();

    let leases: Api<Lease> = world.namespaced();
    let from = first.resource_version().given()?;
    let params = events_only().timeout(60);
    let count = NAMES.len() * 7;
    let events = leases.watch(&params, &from).await?;
    let events: Vec<_> = futures::StreamExt::take(events, count)
        .try_collect()
        .await?;
    let mut told = Vec::new();
    let mut last = 0;
    for event in events {
        let (lease, is_deletion) = match event {
            WatchEvent::Added(lease) | WatchEvent::Modified(lease) => (lease, false),
            WatchEvent::Deleted(lease) => (lease, true),
            other => return Err(Failure::new(format!("unexpected: {other:?}"))),
        };
        let version = lease.resource_version().given()?.parse()?;
        ensure!(version > last, "{version} after {last}");
        last = version;
        if !is_deletion {
            told.push((version, lease.name_any()));
        }
    }
    ensure_eq!(told, written);
    Ok(())
}

behaviours! { "leases":
    further a_patch_for_another_uid_is_422_and_changes_nothing,
    further a_put_for_another_uid_is_409_with_or_without_a_version,
    further a_patch_of_an_absent_lease_is_404_while_an_apply_or_a_put_creates_it,
    further a_lease_is_deleted_only_under_its_uid_and_its_version,
    further a_watch_of_several_leases_is_in_the_order_of_their_commits,
}
