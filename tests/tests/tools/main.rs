//! What programs write for the tools of others, and what those tools make of it and of objects: helm, kubectl, kstatus
//! and kube-state-metrics.
//!
//! ```sh
//! cargo test -p okt-tests --test tools -- --include-ignored --nocapture
//! ```

mod helm;
mod kstatus;
mod olm;
mod round_trip;
mod state_metrics;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;
use serde_json::Value;

/// The programs: of one kind, of a kind in two releases, of one with approvals, and of three kinds, one of which is
/// cluster-scoped and one of which has a webhook.
const PROGRAMS: [&str; 4] = [
    env!("CARGO_BIN_EXE_databases"),
    env!("CARGO_BIN_EXE_lamps"),
    env!("CARGO_BIN_EXE_mills"),
    env!("CARGO_BIN_EXE_three-operators"),
];

const IMAGE: &str = "registry.example:5000/a/operator:1.2";

/// Objects by kind, namespace and name.
type ObjectsByName = BTreeMap<[String; 3], Value>;

/// Builds a package of the Go module in a folder of `tests`, and returns the path of the program.
fn go_program(folder: &str, package: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = root.join("../target/clients/bin").join(folder);
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(package);
    run(build.current_dir(root.join(folder)));
    program
}

/// Runs a command, which must succeed, and returns what it printed.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs `manifests`, which must succeed, and returns what it printed.
fn manifests(program: &str, arguments: &[&str]) -> String {
    let output = try_manifests(program, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn try_manifests(program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(["manifests", "--image", IMAGE]);
    command.args(arguments).output().expect("it starts")
}

/// Reads a YAML stream, and takes it as the API server does: null is nothing, and 1.0 is 1.
fn objects(text: &str) -> ObjectsByName {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("YAML");
    let documents = documents.into_iter().filter(|it| !it.is_null());
    let named = documents.map(|mut object| {
        normalize(&mut object);
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let id = [
            text("/kind"),
            text("/metadata/namespace"),
            text("/metadata/name"),
        ];
        (id, object)
    });
    let mut all = ObjectsByName::new();
    for (id, object) in named {
        assert!(all.insert(id.clone(), object).is_none(), "{id:?} twice");
    }
    all
}

fn normalize(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(normalize);
        }
        Value::Array(list) => list.iter_mut().for_each(normalize),
        Value::Number(number) => *value = number.as_f64().into(),
        _ => {}
    }
}

fn assert_same(found: &ObjectsByName, wanted: &ObjectsByName, what: &str) {
    let (found_ids, wanted_ids): (Vec<_>, Vec<_>) =
        (found.keys().collect(), wanted.keys().collect());
    assert_eq!(found_ids, wanted_ids, "{what}");
    for (id, wanted) in wanted {
        assert_eq!(&found[id], wanted, "{what}: {id:?}");
    }
}

/// A list of files, as a kustomization names them.
#[derive(Deserialize)]
struct Kustomization {
    resources: Vec<String>,
}

#[test]
fn the_base_for_kustomize_has_what_manifests_prints() {
    for program in PROGRAMS {
        for flags in [
            &[][..],
            &[
                "--namespace=a",
                "--policy=states",
                "--service-monitor",
                "--network-policy",
            ],
            &[
                "--replicas=1",
                "--metrics-secure",
                "--service-account=ops/x",
            ],
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let directory = folder.path().to_str().expect("UTF-8");
            let printed = manifests(program, &[flags, &["--kustomize", directory]].concat());
            assert!(
                printed.contains("kubectl apply --server-side -k "),
                "{printed}"
            );
            let base = folder.path().join("base");
            let read = |file: &str| fs::read_to_string(base.join(file)).expect(file);
            let Kustomization { resources } =
                serde_saphyr::from_str(&read("kustomization.yaml")).expect("a kustomization");
            let texts: Vec<_> = resources.iter().map(|file| read(file)).collect();
            let wanted = objects(&manifests(program, flags));
            assert_same(&objects(&texts.join("---\n")), &wanted, program);
        }
    }
}

#[test]
fn files_of_people_are_neither_overwritten_nor_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().to_str().expect("UTF-8");
    let program = env!("CARGO_BIN_EXE_databases");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("templates")).expect("a folder");
    for name in ["templates/operator.yaml", "templates/roles.yaml"] {
        fs::write(path(name), "mine: true\n").expect("a file");
        let refused = try_manifests(program, &["--helm", directory]);
        assert!(!refused.status.success());
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            error.contains(name) && error.contains("is a file of yours"),
            "{error}"
        );
        assert_eq!(fs::read(path(name)).expect("the file"), b"mine: true\n");
        assert!(!path("Chart.yaml").exists(), "nothing was written");
        fs::remove_file(path(name)).expect("a file");
    }
    // A template that the chart does not have is theirs.
    fs::write(path("templates/webhooks.yaml"), "# mine\n").expect("a file");
    // Its own files are written again, and an overlay is not.
    manifests(program, &["--helm", directory, "--replicas=1"]);
    manifests(program, &["--helm", directory, "--replicas=3"]);
    let values = fs::read_to_string(path("values.yaml")).expect("the values");
    assert!(values.contains("\nreplicas: 3\n"), "{values}");
    let theirs = fs::read(path("templates/webhooks.yaml"));
    assert_eq!(theirs.expect("the file"), b"# mine\n");
    let directory = path("kustomize");
    let directory = directory.to_str().expect("UTF-8");
    manifests(program, &["--kustomize", directory, "--service-monitor"]);
    let overlay = path("kustomize/overlays/production/kustomization.yaml");
    fs::write(&overlay, "# mine\n").expect("an overlay");
    assert!(path("kustomize/base/monitoring.yaml").exists());
    manifests(program, &["--kustomize", directory]);
    assert_eq!(fs::read(&overlay).expect("the overlay"), b"# mine\n");
    assert!(!path("kustomize/base/monitoring.yaml").exists());
}

#[test]
fn the_defaults_of_a_chart_are_valid_values_whatever_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    // A program may not have a policy, and its chart refuses what stands twice in a list.
    let flags = [
        "--policy=states,rules,states",
        "--namespace=a",
        "--namespace=a",
    ];
    write_chart(env!("CARGO_BIN_EXE_lamps"), folder.path(), &flags);
    let values = fs::read_to_string(folder.path().join("values.yaml")).expect("values");
    assert!(
        values.contains("\npolicies:\n  - states\npriority"),
        "{values}"
    );
    assert!(values.contains("\nnamespaces:\n  - a\nnetwork"), "{values}");
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let below = file.join("chart");
    let below = below.to_str().expect("UTF-8");
    for option in ["--helm", "--kustomize"] {
        let refused = try_manifests(env!("CARGO_BIN_EXE_databases"), &[option, below]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && error.contains(below),
            "{error}"
        );
    }
    let both = ["--helm", below, "--kustomize", below];
    let refused = try_manifests(env!("CARGO_BIN_EXE_databases"), &both);
    assert_eq!(refused.status.code(), Some(2));
}

/// Writes the chart of a program.
fn write_chart(program: &str, to: &Path, flags: &[&str]) {
    let to = to.to_str().expect("UTF-8");
    manifests(program, &[flags, &["--helm", to]].concat());
}
