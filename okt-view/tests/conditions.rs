//! Tests of the condition checker: each rule has an example that breaks only this rule.

use std::collections::BTreeSet;

use okt_view::conditions::{Checker, Context, RULES, check, lint, read};
use serde_json::{Value, json};

/// Returns an object at rest that breaks no rule.
fn good() -> Value {
    let condition = |name: &str, status: &str| {
        json!({
            "type": name, "status": status, "reason": "AsExpected", "message": "",
            "observedGeneration": 2, "lastTransitionTime": "2026-11-21T09:00:00Z",
        })
    };
    json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Kettle",
        "metadata": { "name": "red", "uid": "u", "generation": 2, "resourceVersion": "7" },
        "status": {
            "observedGeneration": 2,
            "state": "Hot",
            "conditions": [
                condition("Ready", "True"),
                condition("Deleting", "False"),
                condition("Paused", "False"),
                condition("mesh.example.org/Joined", "True"),
            ],
        },
    })
}

fn context() -> Context {
    Context::new()
        .declares(["Ready", "Deleting", "Paused"])
        .owns(["Ready", "Deleting", "Paused", "Reconciling", "Stalled"])
        .now("2026-11-21T10:00:00Z".parse().expect("a time"))
        .status_limit(4096)
        .settled()
}

/// Returns the good object, changed by a JSON patch, under the next version.
fn changed(patch: Value) -> Value {
    patched(&good(), patch, "8")
}

fn patched(object: &Value, patch: Value, version: &str) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = version.into();
    let patch: json_patch::Patch = serde_json::from_value(patch).expect("a JSON patch");
    json_patch::patch(&mut object, &patch).expect("it fits");
    object
}

fn ids(found: &[okt_view::conditions::Violation]) -> Vec<&'static str> {
    found.iter().map(|violation| violation.rule.id).collect()
}

/// Returns a condition that prevents `Ready`.
fn beside(name: &str) -> Value {
    json!({
        "type": name, "status": "True", "reason": "AsExpected", "message": "",
        "observedGeneration": 2, "lastTransitionTime": "2026-11-21T09:30:00Z",
    })
}

/// Returns patches of the good object, and the rules that each breaks.
fn one() -> Vec<(Value, &'static [&'static str])> {
    let set = |path: &str, value: Value| json!([{ "op": "replace", "path": path, "value": value }]);
    let ready = |key: &str, value: Value| set(&format!("/status/conditions/0/{key}"), value);
    let many: Vec<_> = (0..40)
        .map(|n| json!({ "op": "add", "path": "/status/conditions/-", "value": beside(&format!("Run{n}")) }))
        .collect();
    vec![
        (json!([]), &[]),
        (
            json!([{ "op": "copy", "from": "/status/conditions/1", "path": "/status/conditions/-" }]),
            &["S01"],
        ),
        (
            set("/status/conditions/3/type", json!("Not A Type")),
            &["S03"],
        ),
        (ready("reason", json!("")), &["S04"]),
        (ready("reason", json!("not a reason")), &["S04"]),
        (ready("status", json!("Maybe")), &["S05", "D05"]),
        (ready("message", json!("x".repeat(40_000))), &["S05", "D14"]),
        (
            json!([{ "op": "remove", "path": "/status/conditions/0/message" }]),
            &["S05"],
        ),
        (ready("lastTransitionTime", json!("yesterday")), &["S05"]),
        (
            json!([{ "op": "remove", "path": "/status/conditions/2" }]),
            &["D01"],
        ),
        (
            ready("lastTransitionTime", json!("2026-11-21T11:00:00Z")),
            &["D02"],
        ),
        (ready("observedGeneration", json!(3)), &["D03", "D04"]),
        (ready("observedGeneration", json!(1)), &["D04"]),
        (set("/status/observedGeneration", json!(1)), &["D04"]),
        (
            json!([{ "op": "remove", "path": "/status/conditions/0" }]),
            &["D01", "D05"],
        ),
        (ready("status", json!("False")), &["D05"]),
        (
            json!([{ "op": "add", "path": "/status/conditions/-", "value": beside("Stalled") }]),
            &["D05"],
        ),
        (
            json!([
                { "op": "replace", "path": "/status/conditions/0/status", "value": "False" },
                { "op": "add", "path": "/status/conditions/-", "value": beside("Stalled") },
            ]),
            &[],
        ),
        (
            json!([
                { "op": "replace", "path": "/status/conditions/0/status", "value": "False" },
                { "op": "add", "path": "/status/conditions/-", "value": beside("Stalled") },
                { "op": "add", "path": "/status/conditions/-", "value": beside("Reconciling") },
            ]),
            &["D06"],
        ),
        (
            json!([
                { "op": "add", "path": "/status/conditions/-", "value": beside("Stalled") },
                { "op": "replace", "path": "/status/conditions/4/status", "value": "False" },
            ]),
            &["D06"],
        ),
        (
            json!([
                { "op": "replace", "path": "/status/conditions/0/status", "value": "False" },
                { "op": "add", "path": "/status/conditions/-", "value": beside("Reconciling") },
                { "op": "replace", "path": "/status/conditions/4/reason", "value": "Heating" },
            ]),
            &["D07"],
        ),
        (set("/status/conditions/1/status", json!("True")), &["D12"]),
        (
            json!([{ "op": "add", "path": "/metadata/deletionTimestamp", "value": "2026-11-21T09:59:00Z" }]),
            &["D12"],
        ),
        (
            set("/status/conditions/2/status", json!("Unknown")),
            &["D13"],
        ),
        (many.into(), &["D14", "D14"]),
    ]
}

/// Returns patches from the good object to the next version, and the rules that each breaks.
fn two() -> Vec<(Value, &'static [&'static str])> {
    let set = |path: &str, value: Value| json!([{ "op": "replace", "path": path, "value": value }]);
    let both = |a: Value, b: Value| json!([a[0], b[0]]);
    let time = |time: &str| set("/status/conditions/0/lastTransitionTime", json!(time));
    vec![
        (set("/status/state", json!("Warm")), &[]),
        (time("2026-11-21T09:30:00Z"), &["D02", "D09"]),
        (
            both(
                set("/status/state", json!("Warm")),
                time("2026-11-21T09:30:00Z"),
            ),
            &["D02"],
        ),
        (
            both(
                set("/status/state", json!("Warm")),
                time("2026-11-21T08:30:00Z"),
            ),
            &["D02"],
        ),
        (
            both(
                set("/status/conditions/3/status", json!("False")),
                set("/status/state", json!("Warm")),
            ),
            &["D11"],
        ),
        (json!([]), &["D09"]),
        (
            json!([{ "op": "remove", "path": "/status/conditions/3" }]),
            &["D11"],
        ),
    ]
}

#[test]
fn each_example_for_one_version_breaks_only_its_rules() {
    for (patch, broken) in one() {
        let found = check(None, &changed(patch.clone()), &context());
        assert_eq!(ids(&found), broken, "after {patch}: {found:?}");
    }
}

#[test]
fn each_example_for_two_versions_breaks_only_its_rules() {
    for (patch, broken) in two() {
        let found = check(Some(&good()), &changed(patch.clone()), &context());
        assert_eq!(ids(&found), broken, "after {patch}: {found:?}");
    }
}

#[test]
fn a_decreasing_observed_generation_breaks_a_rule() {
    let newer = patched(
        &good(),
        json!([{ "op": "replace", "path": "/metadata/generation", "value": 3 }]),
        "8",
    );
    let back = patched(
        &newer,
        json!([
            { "op": "replace", "path": "/status/observedGeneration", "value": 1 },
            { "op": "replace", "path": "/status/conditions/0/observedGeneration", "value": 1 },
        ]),
        "9",
    );
    let found = check(Some(&newer), &back, &Context::new());
    assert_eq!(ids(&found), ["D03", "D03"]);
}

#[test]
fn a_message_in_which_only_numbers_change_breaks_a_rule() {
    let message = |text: &str, version: &str| {
        patched(
            &good(),
            json!([{ "op": "replace", "path": "/status/conditions/0/message", "value": text }]),
            version,
        )
    };
    let (first, second) = (message("3 of 5 tries", "8"), message("4 of 5 tries", "9"));
    assert_eq!(ids(&check(Some(&first), &second, &context())), ["D10"]);
    let other = message("it is hot", "9");
    assert_eq!(ids(&check(Some(&first), &other, &context())), [""; 0]);
}

#[test]
fn reordering_conditions_of_other_controllers_breaks_a_rule() {
    let two = patched(
        &good(),
        json!([{ "op": "copy", "from": "/status/conditions/3", "path": "/status/conditions/-" },
               { "op": "replace", "path": "/status/conditions/4/type", "value": "mesh.example.org/Left" }]),
        "8",
    );
    let swapped = patched(
        &two,
        json!([{ "op": "move", "from": "/status/conditions/4", "path": "/status/conditions/3" },
               { "op": "replace", "path": "/status/state", "value": "Warm" }]),
        "9",
    );
    assert_eq!(ids(&check(Some(&two), &swapped, &context())), ["D11"]);
}

#[test]
fn an_object_without_a_written_status_breaks_no_rule() {
    let fresh = json!({ "metadata": { "uid": "u", "generation": 1 }, "status": { "observedGeneration": -1 } });
    assert_eq!(check(None, &fresh, &context()), []);
    assert_eq!(
        check(None, &json!({ "metadata": { "uid": "u" } }), &context()),
        []
    );
}

#[test]
fn an_object_with_another_uid_is_not_compared() {
    let mut other = changed(json!([{ "op": "remove", "path": "/status/conditions/3" }]));
    other["metadata"]["uid"] = "v".into();
    assert_eq!(check(Some(&good()), &other, &context()), []);
}

/// Returns a CRD that breaks no rule.
fn crd() -> Value {
    let text = |limit: u32, pattern: &str| json!({ "type": "string", "maxLength": limit, "minLength": 1, "pattern": pattern });
    json!({
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "kettles.demo.okt.dev", "uid": "c" },
        "spec": {
            "names": { "kind": "Kettle" },
            "versions": [{
                "name": "v1",
                "served": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Ready", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                    { "name": "Age", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": { "openAPIV3Schema": { "properties": {
                    "spec": { "properties": { "mode": { "enum": ["Tea", "Coffee"] } } },
                    "status": { "properties": {
                        "observedGeneration": { "type": "integer", "format": "int64" },
                        "state": { "type": "string", "pattern": "^[A-Z]" },
                        "conditions": {
                            "type": "array",
                            "maxItems": 32,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["type"],
                            "items": {
                                "required": ["lastTransitionTime", "message", "reason", "status", "type"],
                                "properties": {
                                    "type": text(316, "^.+$"),
                                    "reason": text(1024, "^.+$"),
                                    "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                                    "message": { "type": "string", "maxLength": 32768 },
                                    "lastTransitionTime": { "type": "string", "format": "date-time" },
                                    "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                                },
                            },
                        },
                    } },
                } } },
            }],
        },
    })
}

/// Returns patches of the CRD, and the rules that each breaks.
fn schemas() -> Vec<(Value, &'static [&'static str])> {
    let version = "/spec/versions/0";
    let status = format!("{version}/schema/openAPIV3Schema/properties/status");
    let conditions = format!("{status}/properties/conditions");
    let item = format!("{conditions}/items/properties");
    let set = |path: String, value: Value| json!([{ "op": "add", "path": path, "value": value }]);
    let gone = |path: String| json!([{ "op": "remove", "path": path }]);
    let values = ["Ready"];
    vec![
        (json!([]), &[]),
        (gone(conditions.clone()), &["S01"]),
        (
            gone(format!("{conditions}/x-kubernetes-list-type")),
            &["S01"],
        ),
        (
            set(format!("{status}/required"), json!(["conditions"])),
            &["S01"],
        ),
        (gone(format!("{conditions}/items/required/0")), &["S02"]),
        (gone(format!("{item}/observedGeneration/minimum")), &["S02"]),
        (set(format!("{item}/type/enum"), json!(values)), &["S03"]),
        (gone(format!("{item}/type/pattern")), &["S03"]),
        (gone(format!("{item}/reason/maxLength")), &["S04"]),
        (gone(format!("{item}/reason/minLength")), &["S04"]),
        (gone(format!("{item}/status/enum")), &["S05"]),
        (gone(format!("{item}/message/maxLength")), &["S05"]),
        (gone(format!("{item}/lastTransitionTime/format")), &["S05"]),
        (gone(format!("{conditions}/maxItems")), &["S07"]),
        (set(format!("{conditions}/maxItems"), json!(2)), &["S07"]),
        (gone(format!("{version}/subresources/status")), &["S08"]),
        (
            gone(format!("{status}/properties/observedGeneration")),
            &["S08"],
        ),
        (
            gone(format!("{version}/additionalPrinterColumns")),
            &["S08", "S08"],
        ),
        (
            set(
                format!("{version}/schema/openAPIV3Schema/properties/spec/properties/mode/enum"),
                json!(["Tea", "Milk"]),
            ),
            &["S09"],
        ),
        (
            set(format!("{status}/properties/state/enum"), json!(["Hot"])),
            &["S10"],
        ),
        (set(format!("{version}/served"), json!(false)), &[]),
    ]
}

#[test]
fn each_example_for_schemas_breaks_only_its_rules() {
    for (patch, broken) in schemas() {
        let found = lint(
            Some(&crd()),
            &patched(&crd(), patch.clone(), "8"),
            &context(),
        );
        assert_eq!(ids(&found), broken, "after {patch}: {found:?}");
    }
}

#[test]
fn a_type_name_must_be_pascal_case_without_the_kind() {
    let named = |name: &str| ids(&lint(None, &crd(), &Context::new().declares([name])));
    assert_eq!(named("Boiling"), [""; 0]);
    assert_eq!(named("KettleReady"), ["S06"]);
    assert_eq!(named("is_boiling"), ["S06"]);
    assert_eq!(named("mesh.example.org/Joined"), [""; 0]);
}

#[test]
fn every_rule_has_an_example() {
    let tables = [one(), two(), schemas()];
    let mut covered: BTreeSet<_> = tables
        .iter()
        .flatten()
        .flat_map(|(_, broken)| *broken)
        .copied()
        .collect();
    // These have tests of their own.
    covered.extend(["D10", "S06"]);
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(covered, rules);
}

#[test]
fn a_rule_that_is_left_out_is_not_checked() {
    let lazy = changed(
        json!([{ "op": "replace", "path": "/status/conditions/0/status", "value": "False" }]),
    );
    assert_eq!(check(None, &lazy, &context().without("D05")), []);
}

#[test]
fn lists_and_documents_are_read_and_other_content_is_refused() {
    let yaml = "kind: List\nmetadata: {}\nitems:\n- {kind: Kettle, metadata: {name: a}}\n- {kind: Kettle, metadata: {name: b}}\n---\nkind: Kettle\nmetadata: {name: c}\n";
    assert_eq!(read(yaml).expect("it is YAML").len(), 3);
    for (text, why) in [
        ("a: [", "unclosed bracket"),
        ("- 1", "no object of Kubernetes: [1]"),
        ("kind: x", "no object of Kubernetes: {\"kind\":\"x\"}"),
    ] {
        let error = read(text).expect_err("it is refused").to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let mut checker = Checker::new(context());
    checker
        .judge_yaml("nonsense: [")
        .expect_err("it is refused");
}

#[test]
fn versions_of_an_object_in_one_text_are_checked_in_order() {
    let time = json!([{ "op": "replace", "path": "/status/conditions/0/lastTransitionTime", "value": "2026-11-21T09:30:00Z" }]);
    let text = format!("{}\n---\n{}\n", good(), changed(time));
    let verdict = Checker::new(context())
        .judge_yaml(&text)
        .expect("it is JSON");
    let found: Vec<_> = verdict
        .violations()
        .map(|(name, found)| format!("{name} {}", found.rule.id))
        .collect();
    assert_eq!(found, ["Kettle red D02", "Kettle red D09"]);
    assert_eq!(verdict.exit_code(), 1);
}

#[test]
fn a_value_that_is_no_object_is_checked_without_a_panic() {
    let version = json!({ "metadata": { "resourceVersion": "1" } });
    for odd in [
        json!([]),
        json!(null),
        json!({ "metadata": 1, "status": [] }),
    ] {
        check(Some(&odd), &version, &context());
        check(Some(&version), &odd, &context());
        lint(Some(&odd), &odd, &context());
    }
}
