//! Tests of `cargo okt new`: the text of a new project; a refused one leaves no files. `.ci/packages` builds one, and
//! runs its tests.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn okt(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-okt"))
        .args(["okt", "new"])
        .args(arguments)
        .current_dir(place)
        .output()
        .expect("it starts")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Creates a directory that is removed with the test.
fn place() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_project_has_the_given_names_wherever_the_template_has_its_own() {
    let place = place();
    // Names that contain the names that they replace; `.ci/packages` builds this project.
    let options = ["--kind", "HTTPServer", "--group", "web.widget.io"];
    let output = okt(place.path(), &[&["my-widget"][..], &options].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let read =
        |file: &str| fs::read_to_string(place.path().join("my-widget").join(file)).expect(file);
    let manifest = read("Cargo.toml");
    assert!(manifest.contains("name = \"my-widget\"\n"), "{manifest}");
    let example = read("examples/http_server.yaml");
    let served = "apiVersion: web.widget.io/v1alpha1\nkind: HTTPServer\n";
    assert!(example.starts_with(served), "{example}");
    let readme = read("README.md");
    assert!(readme.contains("kubectl get httpserver -w\n"), "{readme}");
}

#[test]
fn the_code_of_a_project_is_formatted_for_any_name() {
    let place = place();
    for kind in ["A", "HTTPServer", "QuiteALongNameForAKindOfObjects"] {
        let name = kind.to_lowercase();
        let output = okt(place.path(), &[&name, "--kind", kind]);
        assert!(output.status.success(), "{}", errors(&output));
        let formatted = Command::new("rustfmt")
            .args(["--edition", "2024", "--check"])
            .arg(place.path().join(name).join("src/main.rs"))
            .output()
            .expect("rustfmt starts");
        let diff = String::from_utf8_lossy(&formatted.stdout);
        assert!(formatted.status.success(), "{diff}");
    }
}

#[test]
fn okt_comes_from_the_given_source() {
    let place = place();
    let from = |name: &str, okt_at: &str| {
        let output = okt(place.path(), &[name, "--okt", okt_at]);
        assert!(output.status.success(), "{}", errors(&output));
        fs::read_to_string(place.path().join(name).join("Cargo.toml")).expect("a manifest")
    };
    let git = from("from-git", "https://example.org/o\"k t.git");
    assert!(
        git.contains(r#"okt = { git = "https://example.org/o\"k t.git", features"#),
        "{git}"
    );
    assert!(git.contains(r#"okt-testing = { git = "https://example.org/o\"k t.git" }"#));
    let version = from("from-version", "0.1.0-rc.1");
    let okt = r#"okt = { version = "0.1.0-rc.1", features"#;
    assert!(version.contains(okt), "{version}");
    let checkout = here().join("..");
    let path = from("from-path", checkout.to_str().expect("text"));
    let whole = checkout.canonicalize().expect("it is there");
    let okt = format!("okt = {{ path = \"{}/okt\", features", whole.display());
    assert!(path.contains(&okt), "{path}");
}

#[test]
fn an_invalid_argument_is_one_clear_error_and_creates_nothing() {
    let place = place();
    let long = "a".repeat(57);
    let far = format!("{}.example.com", "a".repeat(64));
    let mut refused = vec![
        (vec![long.as_str()], "at most 56"),
        (vec!["orders", "--kind", ""], "UpperCamelCase"),
        (vec!["orders", "--group", ""], "is no API group"),
        (vec!["orders", "--group", &far], "is no API group"),
        (
            vec!["orders", "--okt", "https://a\nb"],
            "neither a version, nor a path, nor a URL",
        ),
        (vec![], "<PATH>"),
    ];
    let table = "
        Orders | bücher | orders! -> lower case letters
        2orders -> a letter first
        orders- -> no `-` or `_` last
        .. -> does not end in a name
        fn -> a word of Rust; try `fn-operator`
        async | gen -> a word of Rust
        test | proc_macro | nul | com1 | tokio | okt | okt-runtime | okt_view -> taken
        keeper -> `--kind` names another one
        nowhere/orders -> cannot make the directory
        orders --kind order | orders --kind Big_Order | orders --kind Größe -> UpperCamelCase
        orders --kind Self | orders --kind Option -> taken for something else
        orders --kind Endpoint | orders --kind Nodes | orders --kind ClusterRole -> Kubernetes has a kind
        orders --kind Lifecycle -> taken for something else
        orders --kind Pod | orders --kind CronJob | orders --kind Configmap -> Kubernetes has a kind
        orders --group demo | orders --group demo..com -> is no API group
        orders --group Demo.example.com -> is no API group
        orders --group apps.k8s.io -> belongs to Kubernetes
        orders --okt /nowhere -> no okt/Cargo.toml
    ";
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let (commands, why) = line.split_once(" -> ").expect("two parts");
        let commands = commands.split(" | ");
        refused.extend(commands.map(|words| (words.split_whitespace().collect(), why)));
    }
    for (arguments, why) in refused {
        let output = okt(place.path(), &arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let error = errors(&output);
        assert!(
            error.starts_with("error: ") && error.contains(why),
            "{arguments:?}: {error}"
        );
        let left: Vec<_> = fs::read_dir(place.path()).expect("a directory").collect();
        assert!(left.is_empty(), "{arguments:?}: {left:?}");
    }
}

#[test]
fn existing_files_are_never_overwritten() {
    let place = place();
    let file = place.path().join("orders");
    for make in [
        |path: &Path| fs::write(path, "mine"),
        |path: &Path| fs::create_dir(path),
    ] {
        make(&file).expect("it is made");
        let before = fs::metadata(&file).expect("it is there");
        let output = okt(place.path(), &["orders"]);
        assert_eq!(
            errors(&output),
            "error: orders is there already; nothing was changed\n"
        );
        let after = fs::metadata(&file).expect("it is still there");
        assert_eq!(after.modified().ok(), before.modified().ok());
        if after.is_dir() {
            assert_eq!(fs::read_dir(&file).expect("a directory").count(), 0);
        } else {
            assert_eq!(fs::read_to_string(&file).expect("text"), "mine");
            fs::remove_file(&file).expect("it is removed");
        }
    }
}
