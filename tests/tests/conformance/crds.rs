//! Behaviors of CRDs.

use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::WatchEvent;
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::table::json_cases;
use crate::world::{
    CRDS, TABLE, World, condition, events_only, eventually, is_condition, released, version,
};

/// Waits until something is gone.
async fn gone(world: &World, path: &str) {
    eventually("it is gone", async || {
        (world.get(path).await.code == 404).then_some(())
    })
    .await;
}

async fn an_applied_crd_is_established_and_then_served(world: &World) {
    let world = world.own_group();
    world.apply_crd(&world.crd()).await.ok();
    world.established().await;
    world.served().await;
    world.create("a", json!({})).await.ok();
}

async fn an_unknown_kind_is_404(world: &World) {
    let world = world.own_group();
    let unknown = world.get(&world.at("a")).await;
    unknown.refused(404, "404 page not found");
}

async fn a_kind_goes_with_its_crd_and_watches_end(world: &World) {
    let world = &world.own_kind().await;
    let made = world.create("a", json!({})).await.ok();
    let api = world.widgets();
    let from = version(&made).to_string();
    let watch = api.watch(&events_only(), &from).await.expect("a watch");
    world.delete(&world.crd_path()).await.ok();
    gone(world, &world.crd_path()).await;
    gone(world, &world.path()).await;
    gone(world, &world.at("a")).await;
    let events: Vec<_> = watch.try_collect().await.expect("events");
    let is_it =
        matches!(events.as_slice(), [WatchEvent::Deleted(object)] if object.name_any() == "a");
    assert!(is_it, "{events:?}");
}

async fn a_crd_waits_for_the_finalizers_of_its_objects(world: &World) {
    let world = &world.own_kind().await;
    world.create_held("a").await;
    world.delete(&world.crd_path()).await.ok();
    let crd = world.get(&world.crd_path()).await.ok();
    assert!(crd["metadata"]["deletionTimestamp"].is_string());
    let mut late = world.widget("b", json!({}));
    late["metadata"] = json!({ "generateName": "b-" });
    eventually("nothing is created any more", async || {
        (world.post(&world.path(), &late).await.code == 403).then_some(())
    })
    .await;
    world.merge("a", released()).await.ok();
    gone(world, &world.crd_path()).await;
}

async fn an_identical_apply_of_a_crd_changes_nothing(world: &World) {
    let world = world.own_kind().await;
    let first = world.apply_crd(&world.crd()).await.ok();
    let second = world.apply_crd(&world.crd()).await.ok();
    assert_eq!(version(&first), version(&second));
}

/// Schemas of a field, and the messages that refuse a CRD with them.
const NOT_STRUCTURAL: &str = r#"
{} → spec.validation.openAPIV3Schema.properties[spec].properties[color].type: Required value
{"type":"string","default":5} → must be of type string
{"type":"string","pattern":"("} → must be a valid regular expression
{"type":"text"} → Unsupported value: "text"
"#;

async fn a_schema_that_is_not_structural_is_422(world: &World) {
    let world = world.own_group();
    for (color, message) in json_cases(NOT_STRUCTURAL) {
        let mut crd = world.crd();
        let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["color"] = color;
        let refused = world.create_crd(&crd).await;
        refused.refused(422, &format!("…{message}…"));
    }
    let mut crd = world.crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let conditions = &mut schema["properties"]["status"]["properties"]["conditions"];
    conditions["x-kubernetes-list-map-keys"] = json!(["reason"]);
    let refused = world.create_crd(&crd).await;
    refused.refused(422, "…must have a default or be a required property…");
    let mut crd = world.crd();
    crd["metadata"]["name"] = format!("others.{}", world.group).into();
    let refused = world.create_crd(&crd).await;
    refused.refused(422, "…must be spec.names.plural…");
}

async fn the_scope_of_a_kind_cannot_change(world: &World) {
    let mut crd = world.crd();
    crd["spec"]["scope"] = "Cluster".into();
    world.apply_crd(&crd).await.refused(422, "…");
}

async fn a_kind_of_the_cluster_has_no_namespace(world: &World) {
    let world = world.own_group();
    let mut crd = world.crd();
    crd["spec"]["scope"] = "Cluster".into();
    world.create_kind(&crd).await;
    world.get(&world.at("a")).await.refused(404, "…");
    let path = format!("/apis/{}/widgets", world.api_version());
    let made = world.post(&path, &world.widget("a", json!({}))).await;
    assert_eq!(made.ok()["metadata"].get("namespace"), None);
}

/// Creates the CRD of another kind in the group of the widgets, and returns its path.
async fn create_other(world: &World, plural: &str, names: &Value) -> String {
    let singular = plural.trim_end_matches('s');
    let kind = format!("{}{}", singular[..1].to_uppercase(), &singular[1..]);
    let mut crd = world.crd();
    let name = format!("{plural}.{}", world.group);
    crd["metadata"]["name"] = name.as_str().into();
    crd["spec"]["names"] = json!({ "plural": plural, "singular": singular, "kind": kind });
    for (key, value) in names.as_object().expect("names") {
        crd["spec"]["names"][key] = value.clone();
    }
    world.create_crd(&crd).await.ok();
    format!("{CRDS}/{name}")
}

/// Waits until the names of a CRD are accepted or refused, and returns the CRD.
async fn accepted(world: &World, path: &str, status: &str) -> Value {
    eventually("the names are looked at", async || {
        let crd = world.get(path).await.ok();
        is_condition(&crd, "NamesAccepted", status).then_some(crd)
    })
    .await
}

/// Waits until the names of a CRD are accepted, and returns its short names.
async fn short_names(world: &World, path: &str) -> Value {
    let crd = accepted(world, path, "True").await;
    crd["status"]["acceptedNames"]["shortNames"].clone()
}

/// Asks for other names, which are refused, and returns the CRD.
async fn ask(world: &World, path: &str, names: Value) -> Value {
    let patch = json!({ "spec": { "names": names } });
    world.merge_at(path, &patch).await.ok();
    accepted(world, path, "False").await
}

/// Names that another CRD has, and the reasons and messages that they are not accepted for.
const TAKEN: &str = r#"
{"singular":"widget"} → SingularConflict: "widget" is already in use
{"shortNames":["wd","ga","widgets"]} → ShortNamesConflict: ["wd" is already in use, "widgets" is already in use]
{"kind":"Widget","listKind":"GadgetList"} → KindConflict: "Widget" is already in use
{"kind":"Widget","shortNames":["wd"]} → ListKindConflict: "WidgetList" is already in use
"#;

/// Returns the reason and the message of a condition.
fn why(crd: &Value, kind: &str) -> String {
    let condition = condition(crd, kind);
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    format!("{}: {}", text("reason"), text("message"))
}

async fn a_crd_whose_names_are_taken_is_not_served(world: &World) {
    let world = &world.own_kind().await;
    let list = format!("/apis/{}/v1/gadgets", world.group);
    for (names, expected) in json_cases(TAKEN) {
        let path = create_other(world, "gadgets", &names).await;
        let crd = accepted(world, &path, "False").await;
        assert_eq!(why(&crd, "NamesAccepted"), expected);
        assert!(is_condition(&crd, "Established", "False"));
        let refused = "NotAccepted: not all names are accepted";
        assert_eq!(why(&crd, "Established"), refused);
        // The CRD keeps the names that were accepted.
        assert_eq!(crd["status"]["acceptedNames"]["plural"], "gadgets");
        assert_eq!(world.get(&list).await.code, 404);
        world.delete(&path).await.ok();
        gone(world, &path).await;
    }
}

async fn names_that_become_free_are_given_to_who_waits(world: &World) {
    let world = &world.own_kind().await;
    let wants = json!({ "shortNames": ["wd"] });
    let gadgets = create_other(world, "gadgets", &wants).await;
    accepted(world, &gadgets, "False").await;
    world.delete(&world.crd_path()).await.ok();
    assert_eq!(short_names(world, &gadgets).await, json!(["wd"]));
    let list = format!("/apis/{}/v1/gadgets", world.group);
    eventually("the kind is served", async || {
        (world.get(&list).await.code == 200).then_some(())
    })
    .await;
}

async fn a_name_that_is_given_up_passes_to_who_waits_for_it(world: &World) {
    let world = &world.own_kind().await;
    let wants = json!({ "shortNames": ["ga"] });
    let gadgets = create_other(world, "gadgets", &wants).await;
    accepted(world, &gadgets, "True").await;
    let doodads = create_other(world, "doodads", &wants).await;
    accepted(world, &doodads, "False").await;
    // The CRD keeps the old name until it gets the new one.
    ask(world, &gadgets, json!({ "shortNames": ["wd"] })).await;
    world.delete(&world.crd_path()).await.ok();
    assert_eq!(short_names(world, &gadgets).await, json!(["wd"]));
    assert_eq!(short_names(world, &doodads).await, json!(["ga"]));
}

async fn a_kind_cannot_swap_its_own_names(world: &World) {
    let world = &world.own_group();
    let wants = json!({ "shortNames": ["ga"] });
    let gadgets = create_other(world, "gadgets", &wants).await;
    accepted(world, &gadgets, "True").await;
    let swapped = json!({ "singular": "ga", "shortNames": ["gadget"] });
    let crd = ask(world, &gadgets, swapped).await;
    let conflict = r#"ShortNamesConflict: "gadget" is already in use"#;
    assert_eq!(why(&crd, "NamesAccepted"), conflict);
}

async fn a_served_kind_keeps_its_names_when_it_asks_for_taken_ones(world: &World) {
    let world = &world.own_kind().await;
    let wants = json!({ "shortNames": ["ga"] });
    let gadgets = create_other(world, "gadgets", &wants).await;
    // A kind whose names are refused earlier is never established.
    eventually("the kind is established", async || {
        let crd = accepted(world, &gadgets, "True").await;
        is_condition(&crd, "Established", "True").then_some(())
    })
    .await;
    let crd = ask(world, &gadgets, json!({ "shortNames": ["wd", "gad"] })).await;
    let accepted = condition(&crd, "NamesAccepted");
    assert_eq!(accepted["reason"], "ShortNamesConflict");
    assert!(is_condition(&crd, "Established", "True"));
    let names = &crd["status"]["acceptedNames"];
    assert_eq!(names["shortNames"], json!(["ga"]));
}

async fn a_column_whose_path_is_wrong_ends_the_table(world: &World) {
    let world = &world.own_group();
    let mut crd = world.crd();
    let column =
        |name: &str, path: &str| json!({ "name": name, "type": "string", "jsonPath": path });
    let dotted = r".metadata.annotations['okt\.dev/a']";
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        column("Missing", r#".spec.plain[?(@.a!="x")].b"#),
        column("Dotted", dotted),
        column("Wrong", r#".spec["color"]"#),
        column("Late", ".spec.color"),
    ]);
    world.create_kind(&crd).await;
    let mut widget = world.widget("a", json!({ "color": "red" }));
    widget["metadata"]["annotations"] = json!({ "okt.dev/a": "x" });
    world.post(&world.path(), &widget).await.ok();
    let table = world.get_as(&world.path(), TABLE).await.ok();
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "Missing", "Dotted"]);
    let description = "Custom resource definition column (in JSONPath format)";
    assert_eq!(
        columns[2]["description"],
        format!("{description}: {dotted}")
    );
    assert_eq!(table["rows"][0]["cells"], json!(["a", null, "x"]));
}

behaviours! { "crds":
    an_applied_crd_is_established_and_then_served,
    an_unknown_kind_is_404,
    a_kind_goes_with_its_crd_and_watches_end,
    a_crd_waits_for_the_finalizers_of_its_objects,
    an_identical_apply_of_a_crd_changes_nothing,
    a_schema_that_is_not_structural_is_422,
    the_scope_of_a_kind_cannot_change,
    a_kind_of_the_cluster_has_no_namespace,
    a_crd_whose_names_are_taken_is_not_served,
    names_that_become_free_are_given_to_who_waits,
    a_name_that_is_given_up_passes_to_who_waits_for_it,
    a_kind_cannot_swap_its_own_names,
    a_served_kind_keeps_its_names_when_it_asks_for_taken_ones,
    a_column_whose_path_is_wrong_ends_the_table,
}
