//! Behaviours of CEL rules.

use serde_json::{Value, json};

use super::{
    claim::{Failure, Given, Outcome, refusal},
    world::World,
};

async fn a_rule_on_spec_is_422_with_its_message(world: &World) -> Outcome {
    let outcome = world
        .create("a", json!({ "replicas": 1, "minReplicas": 3 }))
        .await;
    let status = refusal(outcome)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        format!(
            "Widget.{} \"a\" is invalid: spec: Invalid value: at least three",
            world.group
        )
    );
    Ok(())
}

async fn a_transition_rule_does_not_run_without_an_old_value(world: &World) -> Outcome {
    world.create("a", json!({ "fixed": "x" })).await?;
    let status = refusal(world.merge("a", json!({ "spec": { "fixed": "y" } })).await)?;
    ensure!(
        status
            .message
            .ends_with("spec.fixed: Invalid value: \"y\": fixed is immutable")
    );
    Ok(())
}

async fn the_first_state_is_the_entry_or_a_jump(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let lifecycle =
        |state: &str, jumps: i32| json!({ "lifecycle": { "state": state, "jumps": jumps } });
    let status = refusal(world.apply_status("m", "a", lifecycle("Running", 0)).await)?;
    ensure_eq!(status.code, 422);
    ensure_eq!(
        status.message,
        format!(
            "Widget.{} \"a\" is invalid: status.lifecycle: Forbidden: the first state is the entry",
            world.group
        )
    );
    ensure_eq!(
        status.details.given()?.causes[0].reason,
        "FieldValueForbidden"
    );
    world
        .apply_status("m", "a", lifecycle("Running", 1))
        .await?;
    world.create("b", json!({})).await?;
    world.apply_status("m", "b", lifecycle("Start", 0)).await?;
    Ok(())
}

async fn a_change_of_state_follows_an_edge_or_jumps(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let to = async |state: &str, jumps: i32| {
        let status = json!({ "lifecycle": { "state": state, "jumps": jumps } });
        world.apply_status("m", "a", status).await
    };
    to("Start", 0).await?;
    let status = refusal(to("End", 0).await)?;
    ensure!(
        status
            .message
            .ends_with("status.lifecycle: Forbidden: no edge from Start to End")
    );
    to("Running", 0).await?;
    to("Running", 0).await?;
    to("End", 0).await?;
    ensure_eq!(
        refusal(to("Start", 0).await)?.code,
        422,
        "a leaf has no edge out"
    );
    to("Start", 1).await?;
    Ok(())
}

async fn a_recorded_lifecycle_is_kept(world: &World) -> Outcome {
    world.create("a", json!({})).await?;
    let status = json!({ "lifecycle": { "state": "Start" } });
    world.apply_status("m", "a", status).await?;
    let gone = json!({ "status": { "lifecycle": null } });
    let status = refusal(world.merge_status("a", gone).await)?;
    ensure!(
        status
            .message
            .ends_with("status: Invalid value: lifecycle is kept")
    );
    Ok(())
}

async fn rules_wait_until_the_schema_holds(world: &World) -> Outcome {
    let spec = json!({ "replicas": "x", "minReplicas": 3 });
    let message = refusal(world.create("a", spec).await)?.message;
    ensure!(
        message.contains("some validation rules were not checked"),
        "{message}"
    );
    ensure!(!message.contains("at least three"));
    Ok(())
}

/// Creates a CRD with this rule on its spec, and returns why it is refused.
async fn compile(world: &World, rule: Value) -> Result<String, Failure> {
    let world = world.own_group();
    let mut crd = world.crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([rule]);
    let status = refusal(world.create_crd(crd).await)?;
    ensure_eq!(status.code, 422, "{}", status.message);
    Ok(status.message)
}

async fn a_rule_that_does_not_compile_refuses_the_crd(world: &World) -> Outcome {
    ensure!(
        compile(world, json!({ "rule": "self.replicas >" }))
            .await?
            .contains("compilation failed")
    );
    let message = compile(world, json!({ "rule": "self.nothing > 1" })).await?;
    ensure!(message.contains("undefined field 'nothing'"), "{message}");
    let message = compile(world, json!({ "rule": "other.replicas > 1" })).await?;
    ensure!(
        message.contains("undeclared reference to 'other'"),
        "{message}"
    );
    let message = compile(world, json!({ "rule": "self.name.shout() == ''" })).await?;
    ensure!(
        message.contains("undeclared reference to 'shout'"),
        "{message}"
    );
    let message = compile(
        world,
        json!({ "rule": "true", "messageExpression": "self.nothing" }),
    )
    .await?;
    ensure!(
        message.contains("x-kubernetes-validations[0].messageExpression"),
        "{message}"
    );
    let message = compile(world, json!({ "rule": "true", "reason": "Because" })).await?;
    ensure!(
        message.contains("Unsupported value: \"Because\""),
        "{message}"
    );
    let message = compile(world, json!({ "rule": "self.plain.all(x, x.size() > 1) && self.labels.all(k, k.nothing)", "optionalOldSelf": true })).await?;
    ensure!(message.contains("optionalOldSelf"), "{message}");
    Ok(())
}

async fn old_self_needs_a_list_that_knows_its_items(world: &World) -> Outcome {
    let world = world.own_group();
    let mut crd = world.crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["plain"]["items"]["x-kubernetes-validations"] =
        json!([{ "rule": "self == oldSelf" }]);
    let status = refusal(world.create_crd(crd).await)?;
    ensure!(
        status.message.contains("uncorrelatable"),
        "{}",
        status.message
    );
    Ok(())
}

/// Creates two widgets under one rule on spec: one that holds, one that does not.
async fn rule(world: &World, rule: &str, good: Value, bad: Value) -> Outcome {
    let world = world.own_group();
    let mut crd = world.crd();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = &mut schema["properties"]["spec"];
    spec["properties"]["snake_case"] = json!({ "type": "string" });
    spec["properties"]["dash-ed"] = json!({ "type": "string" });
    spec["properties"]["namespace"] = json!({ "type": "string" });
    spec["x-kubernetes-validations"] = json!([{ "rule": rule }]);
    world.create_kind(crd).await?;
    world.create("good", good).await?;
    let status = refusal(world.create("bad", bad).await)?;
    ensure_eq!(status.code, 422);
    ensure!(
        status.message.ends_with(&format!("failed rule: {rule}")),
        "{}",
        status.message
    );
    Ok(())
}

async fn names_are_escaped_as_in_kubernetes(world: &World) -> Outcome {
    for (name, text) in [
        ("snake_case", "snake_case"),
        ("dash-ed", "dash__dash__ed"),
        ("namespace", "__namespace__"),
    ] {
        let expression = format!("self.{text} == 'x'");
        rule(
            world,
            &expression,
            json!({ name: "x" }),
            json!({ name: "y" }),
        )
        .await?;
    }
    Ok(())
}

async fn times_lists_and_library_functions_work(world: &World) -> Outcome {
    for (expression, good, bad) in [
        (
            "self.started > timestamp('2020-01-01T00:00:00Z')",
            json!({ "started": "2026-01-01T00:00:00Z" }),
            json!({ "started": "2019-01-01T00:00:00Z" }),
        ),
        (
            "self.plain.all(x, x.startsWith('a'))",
            json!({ "plain": ["a", "ab"] }),
            json!({ "plain": ["a", "b"] }),
        ),
        (
            "isURL(self.maybe)",
            json!({ "maybe": "https://okt.dev" }),
            json!({ "maybe": "okt" }),
        ),
        (
            "self.?color.orValue('red') == 'red'",
            json!({}),
            json!({ "color": "blue" }),
        ),
    ] {
        rule(world, expression, good, bad).await?;
    }
    Ok(())
}

behaviours! { "rules":
    24 a_rule_on_spec_is_422_with_its_message,
    further a_transition_rule_does_not_run_without_an_old_value,
    further the_first_state_is_the_entry_or_a_jump,
    25 a_change_of_state_follows_an_edge_or_jumps,
    further a_recorded_lifecycle_is_kept,
    further rules_wait_until_the_schema_holds,
    further a_rule_that_does_not_compile_refuses_the_crd,
    further old_self_needs_a_list_that_knows_its_items,
    further names_are_escaped_as_in_kubernetes,
    further times_lists_and_library_functions_work,
}
