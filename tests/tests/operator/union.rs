//! The CRD for one release of an upgrade, and CRDs that are too large for an API server.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt::{CrdError, GRAPH_ANNOTATION, LifecycleObject, crd, crd_union};
use okt_testing::conditions::{self, Context};
use okt_tests::{Database, Site, definition, releases};
use releases::{first, leaner, mixed, renamed, wider};
use serde_json::{Value, json};

fn union<New: LifecycleObject, Old: LifecycleObject>() -> Value {
    let old = crd::<Old>().expect("a CRD");
    let union = crd_union::<New>(&old).expect("they fit");
    serde_json::to_value(union).expect("JSON")
}

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
}

fn graph(crd: &Value) -> Value {
    let text = crd["metadata"]["annotations"][GRAPH_ANNOTATION].as_str();
    serde_json::from_str(text.expect("a graph")).expect("JSON")
}

#[test]
fn a_union_has_the_states_and_the_desired_states_of_both() {
    let crd = union::<mixed::Broker, wider::Broker>();
    let lifecycle = &schema(&crd)["spec"]["properties"]["lifecycle"]["properties"];
    assert_eq!(
        lifecycle["state"]["enum"],
        json!(["Serving", "Running", "End", "Standby"])
    );
    assert_eq!(
        lifecycle["visit"]["properties"]["state"]["enum"],
        json!(["Moving", "Compacting"])
    );
    let graph = graph(&crd);
    let states = graph["states"].as_array().expect("states");
    let names: Vec<_> = states.iter().map(|state| &state["name"]).collect();
    assert_eq!(
        names,
        [
            "Start",
            "Serving",
            "Moving",
            "Stopping",
            "End",
            "Compacting",
            "Standby"
        ]
    );
    assert_eq!(states[1]["was"], json!(["Running"]));
    assert_eq!(
        states[1]["children"],
        json!(["Compacting", "Standby", "Moving", "Stopping"]),
        "the last child is the newer operator's"
    );
}

#[test]
fn a_union_with_itself_is_nothing_new() {
    assert_eq!(
        union::<first::Broker, first::Broker>(),
        json!(crd::<first::Broker>().expect("a CRD"))
    );
    let once = union::<mixed::Broker, first::Broker>();
    let old = serde_json::from_value(once.clone()).expect("a CRD");
    let twice = crd_union::<mixed::Broker>(&old).expect("they fit");
    assert_eq!(json!(twice), once);
}

#[test]
fn a_union_breaks_no_rule_for_schemas() {
    for crd in [
        union::<mixed::Broker, wider::Broker>(),
        union::<leaner::Broker, wider::Broker>(),
        union::<renamed::Broker, first::Broker>(),
    ] {
        let context = Context::new().declares(["Available"]);
        let found = conditions::lint(None, &crd, &context);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, [""; 0]);
    }
}

#[test]
fn fields_and_columns_of_the_old_definition_are_kept() {
    let mut old = json!(crd::<first::Broker>().expect("a CRD"));
    let version = &mut old["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"]
        .as_array_mut()
        .expect("columns");
    columns.push(json!({ "name": "Topics", "type": "integer", "jsonPath": ".status.topics" }));
    let schema = &mut version["schema"]["openAPIV3Schema"]["properties"];
    schema["status"]["properties"]["topics"] = json!({ "type": "integer" });
    schema["status"]["required"] = json!(["topics"]);
    schema["spec"]["properties"]["size"] = json!({ "type": "string" });
    let old = serde_json::from_value(old).expect("a CRD");
    let union = json!(crd_union::<wider::Broker>(&old).expect("they fit"));
    let version = &union["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"]
        .as_array()
        .expect("columns");
    let columns: Vec<_> = columns
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert!(columns.ends_with(&["Topics", "Age"]), "{columns:?}");
    let schema = &version["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(
        schema["status"]["properties"]["topics"],
        json!({ "type": "integer" })
    );
    assert_eq!(
        schema["status"].get("required"),
        None,
        "the new operator does not write it"
    );
    assert_eq!(
        schema["spec"]["properties"]["size"],
        json!({ "type": "string" })
    );
}

fn annotated(graph: Option<&str>) -> CustomResourceDefinition {
    let mut old = definition::with_graph::<first::Broker>(|_| None);
    if let Some(graph) = graph {
        let annotations = old.metadata.annotations.get_or_insert_default();
        annotations.insert(GRAPH_ANNOTATION.to_owned(), graph.to_owned());
    }
    old
}

#[test]
fn a_definition_that_cannot_be_joined_is_reported_with_the_reason() {
    let other_type = definition::with_schema::<first::Broker>(|schema| {
        schema["properties"]["status"]["properties"]["lifecycle"]["properties"]["trail"] =
            json!({ "type": "integer" });
    });
    let mut other_version = crd::<first::Broker>().expect("a CRD");
    other_version.spec.versions[0].name = "v1alpha1".to_owned();
    let ambiguous = definition::with_graph::<first::Broker>(|mut graph| {
        graph["states"][3]["was"] = json!(["Moving"]);
        Some(graph)
    });
    for (old, message) in [
        (
            crd::<Database>().expect("a CRD"),
            "the CRD in use is that of databases.demo.okt.dev, not of brokers.demo.okt.dev",
        ),
        (
            annotated(None),
            "the CRD brokers.demo.okt.dev in use has no annotation okt.dev/graph: no operator of OKT made it",
        ),
        (
            annotated(Some("graph")),
            "cannot read the annotation okt.dev/graph of the CRD brokers.demo.okt.dev in use: expected value at line 1 column 1",
        ),
        (
            annotated(Some(r#"{"states":[]}"#)),
            "cannot read the annotation okt.dev/graph of the CRD brokers.demo.okt.dev in use: it does not say its format",
        ),
        (
            annotated(Some(r#"{"format":1,"states":[{"name":"A'B"}]}"#)),
            "cannot read the annotation okt.dev/graph of the CRD brokers.demo.okt.dev in use: `A'B` is no name of a state",
        ),
        (
            annotated(Some(r#"{"format":2,"states":"all"}"#)),
            "the graph of the CRD brokers.demo.okt.dev in use has format 2, and this operator knows 1: have the newer operator print the union",
        ),
        (
            other_version,
            "the CRD brokers.demo.okt.dev in use has the version v1alpha1, which this operator does not know: name it with `#[lifecycle(previous(..))]`, or bring all objects to another version and let the CRD serve it no more",
        ),
        (
            other_type,
            "the field status.lifecycle.trail is of another type in the CRD in use; give it another name",
        ),
        (
            ambiguous,
            "`Moving` is Moving to this operator, and to the one before it would be Stopping: choose another name, or let a release without this one lie between",
        ),
    ] {
        let error = crd_union::<wider::Broker>(&old).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_graph_too_large_for_an_api_server_is_refused_with_its_size() {
    let error = crd_union::<first::Broker>(&definition::crowded::<first::Broker>(300))
        .expect_err("it is too large");
    assert_eq!(
        error.to_string(),
        "the rule of brokers.demo.okt.dev about its edges has 436401 characters, and an API server takes 100000: declare fewer edges or shorter names"
    );
    let wordy = definition::with_graph::<first::Broker>(|mut graph| {
        let more = json!({ "name": "Wordy", "doc": "x".repeat(300_000) });
        graph["states"].as_array_mut().expect("states").push(more);
        Some(graph)
    });
    let error = crd_union::<first::Broker>(&wordy).expect_err("it is too large");
    assert!(
        matches!(error, CrdError::AnnotationsTooLarge { size, .. } if size > 300_000),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_largest_allowed_graph_is_accepted() {
    let of = |states| crd_union::<first::Broker>(&definition::crowded::<first::Broker>(states));
    let (mut fits, mut too_large) = (1, 300);
    while too_large - fits > 1 {
        let states = usize::midpoint(fits, too_large);
        match of(states) {
            Ok(_) => fits = states,
            Err(_) => too_large = states,
        }
    }
    let union = of(fits).expect("one fits");
    let rules = json!(union).pointer("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/lifecycle/x-kubernetes-validations/1/rule").cloned();
    let length = rules.as_ref().and_then(Value::as_str).map(str::len);
    println!("the longest rule that fits has {length:?} characters");
    assert!(length > Some(99_000));
    okt_tests::Rig::<first::Brokers>::bare().define(union).await;
}

/// A file that the drop deletes.
struct File(tempfile::NamedTempFile);

impl File {
    fn of(text: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("it is written");
        Self(file)
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}

fn three_operators(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_three-operators"))
        .args(arguments)
        .output()
        .expect("it starts")
}

#[test]
fn the_command_line_joins_each_definition_with_the_one_of_the_same_name() {
    let databases = definition::with_graph::<Database>(|mut graph| {
        let states = graph["states"].as_array_mut().expect("states");
        states.push(json!({ "name": "Mending", "children": ["Running"] }));
        Some(graph)
    });
    let both = format!(
        "{}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: other }}\n---\n{}",
        serde_saphyr::to_string(&crd::<Site>().expect("a CRD")).expect("YAML"),
        serde_saphyr::to_string(&databases).expect("YAML"),
    );
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [databases] }).to_string();
    for (file, note) in [
        (both, ""),
        (list, "sites.demo.okt.dev: it is taken to be new"),
    ] {
        let file = File::of(&file);
        let path = file.path();
        let output = three_operators(&["crd", "--union", &path.to_string_lossy()]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && message.contains(note),
            "{message}"
        );
        let yaml = String::from_utf8_lossy(&output.stdout);
        let documents: Vec<&str> = yaml.split("---\n").collect();
        assert_eq!(documents.len(), 3);
        assert!(documents[0].contains("'Mending': ['Running']"), "{yaml}");
        let sites = crd::<Site>().expect("a CRD");
        assert_eq!(documents[1], serde_saphyr::to_string(&sites).expect("YAML"));
    }
}

#[test]
fn the_command_line_reads_the_standard_input() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_databases"))
        .args(["crd", "--union", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = program.stdin.take().expect("an input");
    std::io::Write::write_all(&mut input, include_bytes!("database.crd.yaml")).expect("it reads");
    drop(input);
    let output = program.wait_with_output().expect("it ends");
    let yaml = String::from_utf8_lossy(&output.stdout);
    assert_eq!(yaml, include_str!("database.crd.yaml"));
}

#[test]
fn an_unusable_file_is_reported_in_one_line() {
    let sites = serde_saphyr::to_string(&crd::<Site>().expect("a CRD")).expect("YAML");
    let broken =
        "kind: CustomResourceDefinition\nmetadata: { name: databases.demo.okt.dev }\nspec: 5";
    for (text, message) in [
        (
            &*sites,
            "holds no CRD databases.demo.okt.dev; it holds sites.demo.okt.dev",
        ),
        (
            "kind: Pod\nmetadata: { name: p }",
            "holds no CustomResourceDefinition; give it what `crd`",
        ),
        ("", "holds no CustomResourceDefinition; give it what `crd`"),
        ("a: [", "as YAML: "),
        (broken, "cannot read the CRD \"databases.demo.okt.dev\" of "),
    ] {
        let file = File::of(text);
        let output = Command::new(env!("CARGO_BIN_EXE_databases"))
            .args(["crd", "--union", &file.path().to_string_lossy()])
            .output()
            .expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(
            error.starts_with("error: ") && error.contains(message),
            "{error}"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
    let output = three_operators(&["crd", "--union", "/nowhere/old.yaml"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.starts_with("error: cannot read /nowhere/old.yaml: "),
        "{error}"
    );
}
