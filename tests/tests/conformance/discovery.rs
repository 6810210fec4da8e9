//! Behaviors of discovery, and of tables for kubectl.

use kube::Discovery;
use serde_json::{Value, json};

use crate::behaviour::behaviours;
use crate::table::{cases, parse};
use crate::world::{JSON, TABLE, World, YAML, eventually};

/// Waits until a path is served, e.g. while the kind is not in discovery yet, and returns its document.
async fn found(world: &World, path: &str) -> Value {
    eventually(path, async || {
        let reply = world.get(path).await;
        (reply.code == 200).then_some(reply)
    })
    .await
    .json()
}

async fn a_server_is_ready_and_has_a_version(world: &World) {
    for path in ["/readyz", "/livez"] {
        // Its database may be slow.
        eventually(path, async || {
            (world.get(path).await.code == 200).then_some(())
        })
        .await;
    }
    let version = world.get("/version").await.ok();
    assert_eq!(version["major"], "1");
    let git = version["gitVersion"].as_str().expect("a text");
    assert!(git.starts_with("v1."), "{git}");
}

async fn a_kind_is_discovered_with_its_verbs_and_subresources(world: &World) {
    let list = found(world, &format!("/apis/{}", world.api_version())).await;
    assert_eq!(list["kind"], "APIResourceList");
    let resources = list["resources"].as_array().expect("a list");
    let names: Vec<_> = resources.iter().map(|resource| &resource["name"]).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let widgets = &resources[0];
    assert_eq!(widgets["kind"], "Widget");
    assert_eq!(widgets["singularName"], "widget");
    assert_eq!(widgets["namespaced"], true);
    assert_eq!(widgets["shortNames"], json!(["wd"]));
    let verbs = json!([
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch"
    ]);
    assert_eq!(widgets["verbs"], verbs);
    assert_eq!(resources[1]["verbs"], json!(["get", "patch", "update"]));
    assert_eq!(resources[2]["kind"], "Scale");
}

async fn discovery_of_all_groups_finds_a_kind_either_way(world: &World) {
    let find = |discovery: &Discovery| {
        discovery.get("apps")?.recommended_kind("Deployment")?;
        let group = discovery.get(&world.group)?;
        let (resource, capabilities) = group.recommended_kind("Widget")?;
        (resource.plural == "widgets" && capabilities.subresources.len() == 2).then_some(())
    };
    eventually("the kind is in discovery, group by group", async || {
        let discovery = Discovery::new(world.client()).filter(&[&world.group, "apps"]);
        // A group may be there before its resources.
        find(&discovery.run().await.ok()?)
    })
    .await;
    eventually("the kind is in aggregated discovery", async || {
        let discovery = Discovery::new(world.client());
        find(&discovery.run_aggregated().await.expect("a discovery"))
    })
    .await;
}

async fn discovery_in_a_version_that_is_gone_falls_back_to_what_else_is_accepted(world: &World) {
    let of = |version: &str| {
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    };
    let (new, old) = (of("v2"), of("v2beta1"));
    let (groups, aggregated) = ("APIGroupList", "APIGroupDiscoveryList");
    for (accept, kind) in [
        (format!("{old},application/json"), groups),
        (format!("{old},{new},application/json"), aggregated),
        (format!("application/json,{new}"), aggregated),
    ] {
        let found = world.get_as("/apis", &accept).await.ok();
        assert_eq!(found["kind"], kind, "{accept}");
    }
}

async fn the_schema_of_a_kind_is_in_openapi(world: &World) {
    let kind = json!([{ "group": world.group, "kind": "Widget", "version": "v1" }]);
    let find = |schemas: &Value| {
        let schemas = schemas.as_object().expect("schemas");
        let mut schemas = schemas.values();
        schemas
            .find(|schema| schema["x-kubernetes-group-version-kind"] == kind)
            .cloned()
    };
    let path = format!("apis/{}", world.api_version());
    let document = found(world, &format!("/openapi/v3/{path}")).await;
    let index = world.get("/openapi/v3").await.ok();
    assert!(index["paths"][&path]["serverRelativeURL"].is_string());
    let widget = find(&document["components"]["schemas"]).expect("a schema");
    let color = &widget["properties"]["spec"]["properties"]["color"];
    assert_eq!(color["enum"], json!(["red", "green", "blue"]));
    eventually("the schema is published in version 2", async || {
        find(&world.get_as("/openapi/v2", JSON).await.ok()["definitions"])
    })
    .await;
}

async fn a_table_has_the_columns_of_the_crd(world: &World) {
    world.create("a", json!({ "replicas": 3 })).await.ok();
    let table = world.get_as(&world.path(), TABLE).await.ok();
    let cells = table["rows"][0]["cells"].as_array().expect("cells");
    // A cell without a value is empty.
    assert_eq!(cells[..4], [json!("a"), json!(null), json!(null), json!(3)]);
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "phase": "Up", "conditions": [ready] });
    world.set_status("a", status).await.ok();
    let table = world.get_as(&world.path(), TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let columns = columns.iter().map(|column| {
        let name = column["name"].as_str().expect("a name");
        (name, column["priority"].as_i64())
    });
    let columns: Vec<_> = columns.collect();
    let names = ["Name", "Phase", "Ready", "Replicas", "Age"];
    let expected = names.map(|name| (name, Some(i64::from(name == "Replicas"))));
    assert_eq!(columns, expected);
    let row = &table["rows"][0];
    let cells = row["cells"].as_array().expect("cells");
    assert_eq!(
        cells[..4],
        [json!("a"), json!("Up"), json!("True"), json!(3)]
    );
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["name"], "a");
}

async fn a_table_may_carry_the_objects_or_nothing(world: &World) {
    world.create("a", json!({ "color": "red" })).await.ok();
    let row = async |path: &str| {
        let table = world.get_as(path, TABLE).await.ok();
        assert_eq!(table["rows"].as_array().expect("rows").len(), 1);
        table["rows"][0]["object"].clone()
    };
    let whole = row(&format!("{}?includeObject=Object", world.path())).await;
    assert_eq!(whole["spec"]["color"], "red");
    let nothing = row(&format!("{}?includeObject=None", world.path())).await;
    assert_eq!(nothing, Value::Null);
    row(&world.at("a")).await;
}

async fn built_in_kinds_have_tables_too(world: &World) {
    let path = format!("/api/v1/namespaces/{}", world.namespace);
    let table = world.get_as(&path, TABLE).await.ok();
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "Status", "Age"]);
    assert_eq!(table["rows"][0]["cells"][1], "Active");
}

async fn what_cannot_be_shown_as_it_is_wanted_is_406(world: &World) {
    let refused = world.get_as(&world.path(), "text/html").await;
    assert_eq!(refused.code, 406);
}

/// Paths, the codes of their answers, and a value in these.
const IN_YAML: &str = r#"
MAPS/a → 200 /data {"y":"yes","hex":"0x1","lines":"a\nb\n","none":"","quote":"it's: #x"}
MAPS → 200 /items/0/data {"y":"yes","hex":"0x1","lines":"a\nb\n","none":"","quote":"it's: #x"}
WIDGETS/a → 200 /kind "Widget"
WIDGETS → 200 /kind "WidgetList"
MAPS/b → 404 /message "configmaps \"b\" not found"
/api/v1 → 200 /kind "APIResourceList"
MAPS?watch=1 → 406 /message "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
"#;

async fn a_client_that_accepts_yaml_gets_it(world: &World) {
    let data =
        json!({ "y": "yes", "hex": "0x1", "lines": "a\nb\n", "none": "", "quote": "it's: #x" });
    let maps = world.path_of("v1", "configmaps");
    let map = json!({ "metadata": { "name": "a" }, "data": data });
    world.post(&maps, &map).await.ok();
    world.create("a", json!({})).await.ok();
    let table = IN_YAML
        .replace("MAPS", &maps)
        .replace("WIDGETS", &world.path());
    for (path, expected) in cases(&table) {
        let words: Vec<_> = expected.splitn(3, ' ').collect();
        let reply = world.get_as(path, YAML).await;
        assert_eq!(reply.code.to_string(), words[0], "{path}");
        assert_eq!(reply.header("content-type"), YAML, "{path}");
        assert!(!reply.body.starts_with('{'), "{path}: {}", reply.body);
        let answer: Value = serde_saphyr::from_str(&reply.body).expect("YAML");
        assert_eq!(answer.pointer(words[1]), Some(&parse(words[2])), "{path}");
    }
    let headers = [("accept", YAML), ("content-type", YAML)];
    let path = format!("{maps}/a");
    let deleted = world
        .send("DELETE", &path, &headers, "gracePeriodSeconds: 0")
        .await;
    assert_eq!(deleted.header("content-type"), YAML);
    assert!(deleted.body.contains("status: Success"), "{}", deleted.body);
}

async fn json_comes_first_if_it_is_accepted_first(world: &World) {
    for (accept, expected) in [
        ("application/json, application/yaml", "application/json"),
        (
            "application/vnd.kubernetes.protobuf,application/yaml,*/*",
            "application/yaml",
        ),
        ("*/*", "application/json"),
    ] {
        let reply = world.get_as(&world.path(), accept).await;
        assert_eq!(reply.header("content-type"), expected, "{accept}");
    }
}

behaviours! { "discovery":
    a_server_is_ready_and_has_a_version,
    a_kind_is_discovered_with_its_verbs_and_subresources,
    discovery_of_all_groups_finds_a_kind_either_way,
    discovery_in_a_version_that_is_gone_falls_back_to_what_else_is_accepted,
    the_schema_of_a_kind_is_in_openapi,
    a_table_has_the_columns_of_the_crd,
    a_table_may_carry_the_objects_or_nothing,
    built_in_kinds_have_tables_too,
    what_cannot_be_shown_as_it_is_wanted_is_406,
    a_client_that_accepts_yaml_gets_it,
    json_comes_first_if_it_is_accepted_first,
}
