//! Behaviours of discovery, and of tables for kubectl.

use kube::Discovery;
use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, eventually},
    world::World,
};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn get(world: &World, path: &str, accept: &str) -> Result<Value, Failure> {
    let reply = world.send("GET", path, &[("accept", accept)], "").await?;
    ensure_eq!(reply.code, 200, "{path}");
    reply.json()
}

async fn a_server_is_ready_and_has_a_version(world: &World) -> Outcome {
    for path in ["/readyz", "/livez"] {
        // Its database may be slow.
        eventually(path, || async {
            let reply = world.send("GET", path, &[], "").await?;
            Ok((reply.code == 200).then_some(()))
        })
        .await?;
    }
    let version = world.client().apiserver_version().await?;
    ensure_eq!(version.major, "1");
    ensure!(version.git_version.starts_with("v1."));
    Ok(())
}

async fn a_kind_is_discovered_with_its_verbs_and_subresources(world: &World) -> Outcome {
    let path = format!("/apis/{}", world.api_version());
    let list = eventually("the kind is in discovery", || async {
        let reply = world.send("GET", &path, &[], "").await?;
        Ok((reply.code == 200).then_some(reply))
    });
    let list = list.await?.json()?;
    ensure_eq!(list["kind"], "APIResourceList");
    let resources = list["resources"].as_array().given()?;
    let names: Vec<_> = resources.iter().map(|resource| &resource["name"]).collect();
    ensure_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    let widgets = &resources[0];
    ensure_eq!(widgets["kind"], "Widget");
    ensure_eq!(widgets["singularName"], "widget");
    ensure_eq!(widgets["namespaced"], true);
    ensure_eq!(widgets["shortNames"], json!(["wd"]));
    ensure_eq!(
        widgets["verbs"],
        json!([
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch"
        ])
    );
    ensure_eq!(resources[1]["verbs"], json!(["get", "patch", "update"]));
    ensure_eq!(resources[2]["kind"], "Scale");
    Ok(())
}

async fn discovery_of_all_groups_finds_a_kind_either_way(world: &World) -> Outcome {
    eventually("the kind is in discovery, group by group", || async {
        let discovery = Discovery::new(world.client()).filter(&[&world.group, "apps"]);
        // A group may be there before its resources.
        let discovered = discovery.run().await.ok();
        Ok(discovered.and_then(|discovered| found(world, &discovered)))
    })
    .await?;
    eventually("the kind is in aggregated discovery", || async {
        let discovery = Discovery::new(world.client());
        Ok(found(world, &discovery.run_aggregated().await?))
    })
    .await
}

async fn discovery_in_a_version_that_is_gone_falls_back_to_what_else_is_accepted(
    world: &World,
) -> Outcome {
    let of = |version: &str| {
        format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList")
    };
    let (new, old) = (of("v2"), of("v2beta1"));
    for (accept, kind) in [
        (format!("{old},application/json"), "APIGroupList"),
        (
            format!("{old},{new},application/json"),
            "APIGroupDiscoveryList",
        ),
        (format!("application/json,{new}"), "APIGroupDiscoveryList"),
    ] {
        let groups = get(world, "/apis", &accept).await?;
        ensure_eq!(groups["kind"], kind, "{accept}");
    }
    Ok(())
}

fn found(world: &World, discovery: &Discovery) -> Option<()> {
    discovery.get("apps")?.recommended_kind("Deployment")?;
    let group = discovery.get(&world.group)?;
    let (resource, capabilities) = group.recommended_kind("Widget")?;
    (resource.plural == "widgets" && capabilities.subresources.len() == 2).then_some(())
}

async fn the_schema_of_a_kind_is_in_openapi_v3(world: &World) -> Outcome {
    let path = format!("/openapi/v3/apis/{}", world.api_version());
    let document = eventually("the schema is published", || async {
        let reply = world.send("GET", &path, &[], "").await?;
        Ok((reply.code == 200).then_some(reply))
    });
    let document = document.await?.json()?;
    let index = get(world, "/openapi/v3", "application/json").await?;
    let entry = format!("apis/{}", world.api_version());
    ensure!(index["paths"][&entry]["serverRelativeURL"].is_string());
    let schemas = document["components"]["schemas"].as_object().given()?;
    let kind = json!([{ "group": world.group, "kind": "Widget", "version": "v1" }]);
    let widget = schemas
        .values()
        .find(|schema| schema["x-kubernetes-group-version-kind"] == kind)
        .given()?;
    let color = &widget["properties"]["spec"]["properties"]["color"];
    ensure_eq!(color["enum"], json!(["red", "green", "blue"]));
    Ok(())
}

async fn the_schema_of_a_kind_is_in_openapi_v2(world: &World) -> Outcome {
    let kind = json!([{ "group": world.group, "kind": "Widget", "version": "v1" }]);
    eventually("the schema is published", || async {
        let document = get(world, "/openapi/v2", "application/json").await?;
        let definitions = document["definitions"].as_object().given()?;
        let has = |schema: &Value| schema["x-kubernetes-group-version-kind"] == kind;
        Ok(definitions.values().any(has).then_some(()))
    })
    .await
}

async fn a_table_has_the_columns_of_the_crd(world: &World) -> Outcome {
    world.create("a", json!({ "replicas": 3 })).await?;
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "phase": "Up", "conditions": [ready] });
    world.apply_status("m", "a", status).await?;
    let table = get(world, &world.path(), TABLE).await?;
    ensure_eq!(table["kind"], "Table");
    let columns = table["columnDefinitions"].as_array().given()?;
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    ensure_eq!(names, ["Name", "Phase", "Ready", "Replicas", "Age"]);
    let priorities: Vec<_> = columns.iter().map(|column| &column["priority"]).collect();
    ensure_eq!(priorities, [0, 0, 0, 1, 0]);
    let row = &table["rows"][0];
    let cells = row["cells"].as_array().given()?;
    ensure_eq!(
        cells[..4],
        [json!("a"), json!("Up"), json!("True"), json!(3)]
    );
    ensure_eq!(row["object"]["kind"], "PartialObjectMetadata");
    ensure_eq!(row["object"]["metadata"]["name"], "a");
    Ok(())
}

async fn a_table_may_carry_the_objects_or_nothing(world: &World) -> Outcome {
    world.create("a", json!({ "color": "red" })).await?;
    let path = format!("{}?includeObject=Object", world.path());
    let table = get(world, &path, TABLE).await?;
    ensure_eq!(table["rows"][0]["object"]["spec"]["color"], "red");
    let path = format!("{}?includeObject=None", world.path());
    let table = get(world, &path, TABLE).await?;
    ensure!(table["rows"][0].get("object").is_none_or(Value::is_null));
    let one = get(world, &format!("{}/a", world.path()), TABLE).await?;
    ensure_eq!(one["rows"].as_array().given()?.len(), 1);
    Ok(())
}

async fn a_cell_without_a_value_is_empty(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let table = get(world, &world.path(), TABLE).await?;
    ensure_eq!(table["rows"][0]["cells"][1], Value::Null);
    Ok(())
}

async fn built_in_kinds_have_tables_too(world: &World) -> Outcome {
    let path = format!("/api/v1/namespaces/{}", world.namespace);
    let table = get(world, &path, TABLE).await?;
    let columns = table["columnDefinitions"].as_array().given()?;
    let names: Vec<_> = columns.iter().map(|column| &column["name"]).collect();
    ensure_eq!(names, ["Name", "Status", "Age"]);
    ensure_eq!(table["rows"][0]["cells"][1], "Active");
    Ok(())
}

async fn what_cannot_be_shown_as_it_is_wanted_is_406(world: &World) -> Outcome {
    let headers = [("accept", "text/html")];
    let reply = world.send("GET", &world.path(), &headers, "").await?;
    ensure_eq!(reply.code, 406);
    Ok(())
}

async fn a_client_that_accepts_yaml_gets_it(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let headers = [("accept", "application/yaml")];
    for (path, code, line) in [
        (format!("{}/a", world.path()), 200, "kind: Widget"),
        (world.path(), 200, "kind: WidgetList"),
        (format!("{}/b", world.path()), 404, "reason: NotFound"),
    ] {
        let reply = world.send("GET", &path, &headers, "").await?;
        ensure_eq!(reply.code, code, "{path}");
        ensure_eq!(reply.header("content-type"), "application/yaml", "{path}");
        let text = reply.text();
        ensure!(text.lines().any(|found| found == line), "{text}");
    }
    Ok(())
}

behaviours! { "discovery":
    further a_server_is_ready_and_has_a_version,
    further a_kind_is_discovered_with_its_verbs_and_subresources,
    further discovery_of_all_groups_finds_a_kind_either_way,
    further discovery_in_a_version_that_is_gone_falls_back_to_what_else_is_accepted,
    further the_schema_of_a_kind_is_in_openapi_v3,
    further the_schema_of_a_kind_is_in_openapi_v2,
    further a_table_has_the_columns_of_the_crd,
    further a_table_may_carry_the_objects_or_nothing,
    further a_cell_without_a_value_is_empty,
    further built_in_kinds_have_tables_too,
    further what_cannot_be_shown_as_it_is_wanted_is_406,
    further a_client_that_accepts_yaml_gets_it,
}
