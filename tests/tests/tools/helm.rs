//! What helm makes of a chart is what `manifests` prints with the options of the same meaning.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{IMAGE, ObjectsByName, PROGRAMS, assert_same, manifests, objects, run, write_chart};

/// Values of a chart, and the options of `manifests` that mean the same.
const MEANINGS: [(&[&str], &[&str]); 8] = [
    (&[], &[]),
    (
        &["replicas=1", "shards=auto"],
        &["--replicas=1", "--shards=auto"],
    ),
    (&["replicas=3", "shards=2"], &["--replicas=3", "--shards=2"]),
    (&["namespaces={a,on}"], &["--namespace=a", "--namespace=on"]),
    (&["metrics.secure=true"], &["--metrics-secure"]),
    (
        &[
            "metrics.secure=true",
            "serviceMonitor.enabled=true",
            "networkPolicy.enabled=true",
        ],
        &["--metrics-secure", "--service-monitor", "--network-policy"],
    ),
    (
        &[
            "serviceMonitor.enabled=true",
            "networkPolicy.enabled=true",
            "namespaces={a}",
        ],
        &["--service-monitor", "--network-policy", "--namespace=a"],
    ),
    (
        &["policies={states,status}", "image.tag=1.2"],
        &["--policy=states,status"],
    ),
];

/// Values that make no sense, and what helm says about them.
const WRONG: [(&str, &str); 17] = [
    ("replica=3", "additional properties 'replica' not allowed"),
    ("replicas=0", "minimum: got 0, want 1"),
    ("replicas=many", "got string, want integer"),
    ("shards=most", "does not match pattern"),
    ("namespaces={Team_A}", "does not match pattern"),
    ("namespaces=a", "got string, want array"),
    ("image=a:1", "got string, want object"),
    ("image.repository=", "minLength: got 0, want 1"),
    ("image.pullPolicy=Often", "value must be one of"),
    ("policies={all}", "value must be one of"),
    ("tolerations={a}", "got string, want object"),
    ("crds.keep=perhaps", "got string, want boolean"),
    ("shards=100000", "maximum: got 100,000, want 65,535"),
    ("image.repository=null", "missing property 'repository'"),
    ("metrics=null", "missing property 'metrics'"),
    ("serviceAccount.name=A b", "does not match pattern"),
    (
        r"podLabels.app\.kubernetes\.io/name=other",
        "invalid propertyName",
    ),
];

/// Runs helm, which is built the first time.
pub(super) fn helm(arguments: &[&str]) -> Command {
    static HELM: OnceLock<PathBuf> = OnceLock::new();
    let program = HELM.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut install = Command::new(root.join("clients/helm/install"));
        let path = run(install.arg(root.join("../target/clients")));
        path.trim_end().into()
    });
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Sets values on the command line of helm.
fn set(command: &mut Command, values: &[&str]) {
    for value in values {
        command.args(["--set", value]);
    }
}

/// Returns the objects that helm would install in a namespace.
fn rendered(chart: &Path, namespace: &str, values: &[&str]) -> ObjectsByName {
    let chart = chart.to_str().expect("UTF-8");
    let mut command = helm(&["template", "a-release", chart, "--namespace", namespace]);
    set(&mut command, values);
    let mut objects = objects(&run(&mut command));
    for definition in objects.values_mut() {
        if definition["kind"] == "CustomResourceDefinition" {
            let metadata = definition["metadata"].as_object_mut().expect("metadata");
            let annotations = metadata.get_mut("annotations").expect("the policy of helm");
            let annotations = annotations.as_object_mut().expect("a map");
            assert_eq!(
                annotations.remove("helm.sh/resource-policy"),
                Some("keep".into())
            );
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    objects
}

/// Returns what `manifests` prints without the namespace, which is that of a release.
fn printed(program: &str, flags: &[&str]) -> ObjectsByName {
    let mut objects = objects(&manifests(program, flags));
    objects.retain(|[kind, ..], _| kind != "Namespace");
    objects
}

/// The name of the program of a path.
fn name(program: &str) -> &str {
    let name = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str());
    name.expect("a name")
}

#[test]
#[ignore = "builds helm, which takes a minute or two"]
fn a_chart_renders_what_manifests_prints() {
    for program in PROGRAMS {
        let folder = tempfile::tempdir().expect("a folder");
        let home = format!("{}-system", name(program));
        write_chart(program, folder.path(), &[]);
        run(&mut helm(&[
            "lint",
            "--strict",
            folder.path().to_str().expect("UTF-8"),
        ]));
        for (values, flags) in MEANINGS {
            let what = format!("{program} {flags:?}");
            let wanted = printed(program, flags);
            assert_same(&rendered(folder.path(), &home, values), &wanted, &what);
            // What is given when the chart is written is the same as a value.
            let given = tempfile::tempdir().expect("a folder");
            write_chart(program, given.path(), flags);
            assert_same(&rendered(given.path(), &home, &[]), &wanted, &what);
        }
        // Another account in another namespace, whose names YAML would take for something else.
        let values = ["serviceAccount.name=off"];
        let moved = rendered(folder.path(), "on", &values);
        for (id, object) in &moved {
            let text = object.to_string();
            assert!(!text.contains("okt-release-namespace"), "{id:?}: {text}");
            assert!(!text.contains("okt-account-name"), "{id:?}: {text}");
            assert!(!text.contains(&home), "{id:?}: {text}");
        }
        let account = ["ServiceAccount", "on", "off"].map(str::to_owned);
        assert!(moved.contains_key(&account), "{:?}", moved.keys());
    }
}

#[test]
#[ignore = "builds helm, which takes a minute or two"]
fn what_a_pod_may_have_comes_from_the_values() {
    let folder = tempfile::tempdir().expect("a folder");
    write_chart(env!("CARGO_BIN_EXE_databases"), folder.path(), &[]);
    let digest = format!("sha256:{}", "0".repeat(64));
    let values = json!({
        "image": { "digest": digest, "pullPolicy": "Always" },
        "imagePullSecrets": [{ "name": "registry" }],
        "args": ["--log=debug", "--events=all"],
        "env": [{ "name": "A", "value": "{{ b }}" }],
        "envFrom": [{ "secretRef": { "name": "c" } }],
        "serviceAccount": { "create": false, "name": "theirs" },
        "resources": null,
        "podAnnotations": { "a/b": "true" },
        "podLabels": { "team": "12" },
        "nodeSelector": { "disk": "ssd" },
        "tolerations": [{ "operator": "Exists" }],
        "affinity": { "podAntiAffinity": {} },
        "priorityClassName": "high",
        "volumes": [{ "name": "v", "emptyDir": {} }],
        "volumeMounts": [{ "name": "v", "mountPath": "/v" }],
        "crds": { "enabled": false },
        "networkPolicy": { "enabled": true, "metricsFrom": [{ "namespaceSelector": {} }] },
        "serviceMonitor": { "enabled": true, "labels": { "release": "prometheus" } },
    });
    let file = folder.path().join("mine.json");
    std::fs::write(&file, values.to_string()).expect("a file");
    let chart = folder.path().to_str().expect("UTF-8");
    let mut command = helm(&["template", "r", chart, "--namespace", "ops", "--values"]);
    let objects = objects(&run(command.arg(&file)));
    let of = |kind: &str| objects.iter().find(|([it, ..], _)| it == kind);
    assert!(of("ServiceAccount").is_none() && of("CustomResourceDefinition").is_none());
    let pods = &of("Deployment").expect("a Deployment").1["spec"]["template"];
    let (pod, container) = (&pods["spec"], &pods["spec"]["containers"][0]);
    assert_eq!(container["image"], format!("{IMAGE}@{digest}"));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(
        container["args"],
        json!(["run", "--log=debug", "--events=all"])
    );
    assert_eq!(container.get("resources"), None);
    assert_eq!(pods["metadata"]["annotations"], values["podAnnotations"]);
    assert_eq!(pods["metadata"]["labels"]["team"], "12");
    assert_eq!(pod["serviceAccountName"], "theirs");
    for name in ["env", "envFrom", "volumeMounts"] {
        assert_eq!(container[name], values[name], "{name}");
    }
    for name in [
        "imagePullSecrets",
        "nodeSelector",
        "tolerations",
        "affinity",
        "priorityClassName",
        "volumes",
    ] {
        assert_eq!(pod[name], values[name], "{name}");
    }
    let network = &of("NetworkPolicy").expect("a policy").1["spec"];
    assert_eq!(
        network["ingress"][0]["from"],
        values["networkPolicy"]["metricsFrom"]
    );
    let monitor = &of("ServiceMonitor").expect("a monitor").1["metadata"];
    assert_eq!(monitor["labels"]["release"], "prometheus");
}

#[test]
#[ignore = "builds helm, which takes a minute or two"]
fn values_that_make_no_sense_are_refused_by_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_databases");
    write_chart(program, folder.path(), &[]);
    let chart = folder.path().to_str().expect("UTF-8");
    for (value, why) in WRONG {
        let output = helm(&["template", "r", chart, "--set", value]).output();
        let output = output.expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{value}");
        let (path, _) = value.split_once('=').expect("a value");
        let path = path.replace('\\', "");
        let (group, name) = path.split_once('.').unwrap_or((&path, &path));
        let is_named = error.contains(group) || error.contains(name);
        assert!(is_named && error.contains(why), "{value}: {error}");
    }
}

#[test]
#[ignore = "builds helm, which takes a minute or two"]
fn webhooks_are_asked_in_the_namespaces_of_the_values_and_not_at_all_if_they_are_off() {
    let folder = tempfile::tempdir().expect("a folder");
    write_chart(env!("CARGO_BIN_EXE_three-operators"), folder.path(), &[]);
    let webhook = |values: &[&str]| {
        let objects = rendered(folder.path(), "ops", values);
        let mut all = objects.into_iter();
        let found = all.find(|([kind, ..], _)| kind == "ValidatingWebhookConfiguration");
        found.map(|(_, object)| object["webhooks"][0].clone())
    };
    let whole = webhook(&[]).expect("a webhook");
    assert_eq!(whole.get("namespaceSelector"), None);
    assert_eq!(whole["clientConfig"]["service"]["namespace"], "ops");
    let limited = webhook(&["namespaces={a,b}", "webhooks.failurePolicy=Fail"]);
    let limited = limited.expect("a webhook");
    let selected = limited.pointer("/namespaceSelector/matchExpressions/0/values");
    assert_eq!(selected, Some(&json!(["a", "b"])));
    assert_eq!(limited["failurePolicy"], "Fail");
    assert_eq!(webhook(&["webhooks.enabled=false"]), None::<Value>);
}
