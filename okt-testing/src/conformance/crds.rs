//! Behaviours of CRDs.

use futures::TryStreamExt;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent},
    runtime::{conditions, wait::await_condition},
};
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, eventually, refusal},
    world::{World, events_only, released},
};

/// Waits until a CRD is gone.
async fn gone(world: &World, crd: &str) -> Outcome {
    eventually("the CRD is gone", || async {
        Ok(world.crds().get_opt(crd).await?.is_none().then_some(()))
    })
    .await
}

async fn an_applied_crd_is_established_and_then_served(world: &World) -> Outcome {
    let world = world.own_group();
    world.apply_crd(world.crd()).await?;
    let name = world.crd_name();
    await_condition(world.crds(), &name, conditions::is_crd_established()).await?;
    world.served().await?;
    world.create("a", json!({})).await?;
    Ok(())
}

async fn an_unknown_kind_is_404(world: &World) -> Outcome {
    let world = world.own_group();
    let status = refusal(world.widgets().get("a").await)?;
    ensure_eq!(status.code, 404);
    ensure_eq!(status.message, "404 page not found");
    Ok(())
}

async fn a_kind_goes_with_its_crd_and_watches_end(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    let made = world.create("a", json!({})).await?;
    let api = world.widgets();
    let from = made.resource_version().given()?;
    let watch = api.watch(&events_only(), &from).await?;
    let crds = world.crds();
    crds.delete(&world.crd_name(), &DeleteParams::default())
        .await?;
    gone(world, &world.crd_name()).await?;
    eventually("the kind is gone", || async {
        Ok(world.widgets().list(&ListParams::default()).await.err())
    })
    .await?;
    ensure_eq!(refusal(world.get("a").await)?.code, 404);
    let events: Vec<_> = watch.try_collect().await?;
    ensure!(
        matches!(events.as_slice(), [WatchEvent::Deleted(object)] if object.name_any() == "a"),
        "{events:?}"
    );
    Ok(())
}

async fn a_crd_waits_for_the_finalizers_of_its_objects(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    let mut object = world.widget("a", json!({}));
    object.metadata.finalizers = Some(vec!["okt.dev/a".to_owned()]);
    world
        .widgets()
        .create(&PostParams::default(), &object)
        .await?;
    let crds = world.crds();
    crds.delete(&world.crd_name(), &DeleteParams::default())
        .await?;
    let crd = crds.get(&world.crd_name()).await?;
    ensure!(crd.metadata.deletion_timestamp.is_some());
    let mut late = world.widget("b", json!({}));
    late.metadata.name = None;
    late.metadata.generate_name = Some("b-".to_owned());
    eventually("nothing is created any more", || async {
        match world.widgets().create(&PostParams::default(), &late).await {
            Ok(_) => Ok(None),
            refused => Ok(Some(refusal(refused)?.code).filter(|code| *code == 403)),
        }
    })
    .await?;
    world
        .widgets()
        .patch("a", &PatchParams::default(), &released())
        .await?;
    gone(world, &world.crd_name()).await
}

async fn an_identical_apply_of_a_crd_changes_nothing(world: &World) -> Outcome {
    let world = world.own_kind().await?;
    let first = world.apply_crd(world.crd()).await?;
    let second = world.apply_crd(world.crd()).await?;
    ensure_eq!(first.resource_version(), second.resource_version());
    Ok(())
}

async fn a_schema_that_is_not_structural_is_422(world: &World) -> Outcome {
    let world = world.own_group();
    let refused = async |path: &str, value: serde_json::Value| {
        let mut crd = world.crd();
        *crd.pointer_mut(path).given()? = value;
        let status = refusal(world.create_crd(crd).await)?;
        ensure_eq!(status.code, 422, "{}", status.message);
        Ok::<_, Failure>(status.message)
    };
    let color = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color";
    let message = refused(color, json!({})).await?;
    ensure!(
        message.contains("spec.validation.openAPIV3Schema.properties[spec].properties[color].type: Required value"),
        "{message}"
    );
    let message = refused(color, json!({ "type": "string", "default": 5 })).await?;
    ensure!(message.contains("must be of type string"), "{message}");
    let message = refused(color, json!({ "type": "string", "pattern": "(" })).await?;
    ensure!(
        message.contains("must be a valid regular expression"),
        "{message}"
    );
    let message = refused(color, json!({ "type": "text" })).await?;
    ensure!(message.contains("Unsupported value: \"text\""), "{message}");
    let keys = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/x-kubernetes-list-map-keys";
    let message = refused(keys, json!(["reason"])).await?;
    ensure!(
        message.contains("must have a default or be a required property"),
        "{message}"
    );
    let message = refused("/metadata/name", json!(format!("others.{}", world.group))).await?;
    ensure!(message.contains("must be spec.names.plural"), "{message}");
    Ok(())
}

async fn the_scope_of_a_kind_cannot_change(world: &World) -> Outcome {
    let mut crd = world.crd();
    crd["spec"]["scope"] = "Cluster".into();
    ensure_eq!(refusal(world.apply_crd(crd).await)?.code, 422);
    Ok(())
}

async fn a_kind_of_the_cluster_has_no_namespace(world: &World) -> Outcome {
    let world = world.own_group();
    let mut crd = world.crd();
    crd["spec"]["scope"] = "Cluster".into();
    world.create_kind(crd).await?;
    ensure_eq!(refusal(world.widgets().get("a").await)?.code, 404);
    let made = world
        .all_widgets()
        .create(&PostParams::default(), &world.widget("a", json!({})))
        .await?;
    ensure_eq!(made.namespace(), None);
    Ok(())
}

/// Returns the CRD of another kind in the group of the widgets.
fn gadgets(world: &World, names: &Value) -> Value {
    let mut crd = world.crd();
    crd["metadata"]["name"] = format!("gadgets.{}", world.group).into();
    crd["spec"]["names"] = json!({ "plural": "gadgets", "singular": "gadget", "kind": "Gadget" });
    for (key, value) in names.as_object().into_iter().flatten() {
        crd["spec"]["names"][key] = value.clone();
    }
    crd
}

/// Waits until the names of a CRD have this status, and returns the CRD as JSON.
async fn names_of(world: &World, plural: &str, status: &str) -> Result<Value, Failure> {
    let name = format!("{plural}.{}", world.group);
    eventually("the names are looked at", || async {
        let crd = serde_json::to_value(world.crds().get(&name).await?)?;
        let said = condition(&crd, "NamesAccepted")["status"] == status;
        Ok(said.then_some(crd))
    })
    .await
}

fn condition(crd: &Value, kind: &str) -> Value {
    let conditions = crd["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.cloned().unwrap_or_default()
}

async fn a_crd_whose_names_are_taken_is_not_served(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    let list = format!("/apis/{}/v1/gadgets", world.group);
    for (names, reason, message) in [
        (
            json!({ "singular": "widget" }),
            "SingularConflict",
            "\"widget\" is already in use",
        ),
        (
            json!({ "shortNames": ["wd", "ga", "widgets"] }),
            "ShortNamesConflict",
            "[\"wd\" is already in use, \"widgets\" is already in use]",
        ),
        (
            json!({ "kind": "Widget", "listKind": "GadgetList" }),
            "KindConflict",
            "\"Widget\" is already in use",
        ),
        (
            json!({ "kind": "Widget", "shortNames": ["wd"] }),
            "ListKindConflict",
            "\"WidgetList\" is already in use",
        ),
    ] {
        world.create_crd(gadgets(world, &names)).await?;
        let crd = names_of(world, "gadgets", "False").await?;
        let accepted = condition(&crd, "NamesAccepted");
        ensure_eq!(accepted["reason"], reason);
        ensure_eq!(accepted["message"], message);
        let established = condition(&crd, "Established");
        ensure_eq!(established["status"], "False");
        ensure_eq!(established["reason"], "NotAccepted");
        ensure_eq!(established["message"], "not all names are accepted");
        // The CRD keeps the names that were accepted.
        ensure_eq!(crd["status"]["acceptedNames"]["plural"], "gadgets");
        ensure_eq!(world.send("GET", &list, &[], "").await?.code, 404);
        let name = format!("gadgets.{}", world.group);
        world.crds().delete(&name, &DeleteParams::default()).await?;
        gone(world, &name).await?;
    }
    Ok(())
}

async fn names_that_become_free_are_given_to_who_waits(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    world
        .create_crd(gadgets(world, &json!({ "shortNames": ["wd"] })))
        .await?;
    names_of(world, "gadgets", "False").await?;
    let params = DeleteParams::default();
    world.crds().delete(&world.crd_name(), &params).await?;
    let crd = names_of(world, "gadgets", "True").await?;
    ensure_eq!(crd["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    let list = format!("/apis/{}/v1/gadgets", world.group);
    eventually("the kind is served", || async {
        let reply = world.send("GET", &list, &[], "").await?;
        Ok((reply.code == 200).then_some(()))
    })
    .await
}

async fn a_name_that_is_given_up_passes_to_who_waits_for_it(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    let params = PatchParams::default();
    let crds = world.crds();
    let given = gadgets(world, &json!({ "shortNames": ["ga"] }));
    world.create_crd(given).await?;
    names_of(world, "gadgets", "True").await?;
    let asks = json!({ "plural": "doodads", "singular": "doodad", "kind": "Doodad", "shortNames": ["ga"] });
    let mut waits = gadgets(world, &asks);
    waits["metadata"]["name"] = format!("doodads.{}", world.group).into();
    world.create_crd(waits).await?;
    names_of(world, "doodads", "False").await?;
    // The CRD keeps the old name until it gets the new one.
    let asks = json!({ "spec": { "names": { "shortNames": ["wd"] } } });
    let name = format!("gadgets.{}", world.group);
    crds.patch(&name, &params, &Patch::Merge(asks)).await?;
    names_of(world, "gadgets", "False").await?;
    let delete = DeleteParams::default();
    crds.delete(&world.crd_name(), &delete).await?;
    let crd = names_of(world, "gadgets", "True").await?;
    ensure_eq!(crd["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    let crd = names_of(world, "doodads", "True").await?;
    ensure_eq!(crd["status"]["acceptedNames"]["shortNames"], json!(["ga"]));
    Ok(())
}

async fn a_kind_cannot_swap_its_own_names(world: &World) -> Outcome {
    let world = &world.own_group();
    let given = gadgets(world, &json!({ "shortNames": ["ga"] }));
    world.create_crd(given).await?;
    names_of(world, "gadgets", "True").await?;
    let asks = json!({ "spec": { "names": { "singular": "ga", "shortNames": ["gadget"] } } });
    let name = format!("gadgets.{}", world.group);
    let params = PatchParams::default();
    let crds = world.crds();
    crds.patch(&name, &params, &Patch::Merge(asks)).await?;
    let crd = names_of(world, "gadgets", "False").await?;
    let accepted = condition(&crd, "NamesAccepted");
    ensure_eq!(accepted["reason"], "ShortNamesConflict");
    ensure_eq!(accepted["message"], "\"gadget\" is already in use");
    Ok(())
}

async fn a_served_kind_keeps_its_names_when_it_asks_for_taken_ones(world: &World) -> Outcome {
    let world = &world.own_kind().await?;
    let given = gadgets(world, &json!({ "shortNames": ["ga"] }));
    world.create_crd(given).await?;
    // A kind whose names are refused earlier is never established.
    eventually("the kind is established", || async {
        let crd = names_of(world, "gadgets", "True").await?;
        Ok((condition(&crd, "Established")["status"] == "True").then_some(()))
    })
    .await?;
    let asks = json!({ "spec": { "names": { "shortNames": ["wd", "gad"] } } });
    let name = format!("gadgets.{}", world.group);
    let params = PatchParams::default();
    let crds = world.crds();
    crds.patch(&name, &params, &Patch::Merge(asks)).await?;
    let crd = names_of(world, "gadgets", "False").await?;
    ensure_eq!(
        condition(&crd, "NamesAccepted")["reason"],
        "ShortNamesConflict"
    );
    ensure_eq!(condition(&crd, "Established")["status"], "True");
    let names = &crd["status"]["acceptedNames"];
    ensure_eq!(names["shortNames"], json!(["ga"]));
    Ok(())
}

async fn a_column_whose_path_is_wrong_ends_the_table(world: &World) -> Outcome {
    let world = &world.own_group();
    let mut crd = world.crd();
    let column =
        |name: &str, path: &str| json!({ "name": name, "type": "string", "jsonPath": path });
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        column("Missing", r#".spec.plain[?(@.a!="x")].b"#),
        column("Dotted", r".metadata.annotations['okt\.dev/a']"),
        column("Wrong", r#".spec["color"]"#),
        column("Late", ".spec.color"),
    ]);
    world.create_kind(crd).await?;
    let mut widget = world.widget("a", json!({ "color": "red" }));
    widget
        .annotations_mut()
        .insert("okt.dev/a".to_owned(), "x".to_owned());
    world
        .widgets()
        .create(&PostParams::default(), &widget)
        .await?;
    let accept = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = world
        .send("GET", &world.path(), &[accept], "")
        .await?
        .json()?;
    let columns = table["columnDefinitions"].as_array().given()?;
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    ensure_eq!(names, ["Name", "Missing", "Dotted"]);
    ensure_eq!(
        columns[2]["description"],
        r"Custom resource definition column (in JSONPath format): .metadata.annotations['okt\.dev/a']"
    );
    ensure_eq!(table["rows"][0]["cells"], json!(["a", null, "x"]));
    Ok(())
}

behaviours! { "crds":
    1 an_applied_crd_is_established_and_then_served,
    further an_unknown_kind_is_404,
    further a_kind_goes_with_its_crd_and_watches_end,
    further a_crd_waits_for_the_finalizers_of_its_objects,
    further an_identical_apply_of_a_crd_changes_nothing,
    further a_schema_that_is_not_structural_is_422,
    further the_scope_of_a_kind_cannot_change,
    further a_kind_of_the_cluster_has_no_namespace,
    further a_crd_whose_names_are_taken_is_not_served,
    further names_that_become_free_are_given_to_who_waits,
    further a_name_that_is_given_up_passes_to_who_waits_for_it,
    further a_kind_cannot_swap_its_own_names,
    further a_served_kind_keeps_its_names_when_it_asks_for_taken_ones,
    further a_column_whose_path_is_wrong_ends_the_table,
}
