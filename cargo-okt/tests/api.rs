//! Tests of `cargo okt api`: it serves the objects of the files, and refuses what it cannot read before it listens.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

const WIDGETS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {} }
    schema: { openAPIV3Schema: { type: object, properties: {
      spec: { type: object, required: [size], properties: { size: { type: integer } } },
      status: { type: object, properties: { seen: { type: boolean } } } } } }
";

const OBJECTS: &str = r"
# The CRD is in a file that comes later.
apiVersion: v1
kind: List
items:
- { apiVersion: example.com/v1, kind: Widget, metadata: { name: a }, spec: { size: 1 }, status: { seen: true } }
- { apiVersion: v1, kind: ConfigMap, metadata: { name: c }, data: { text: x } }
---
apiVersion: example.com/v1
kind: Widget
metadata: { name: b, namespace: team }
spec: { size: 2 }
---
apiVersion: v1
kind: Namespace
metadata: { name: team }
";

fn api(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-okt"));
    command.args(["okt", "api"]).args(arguments);
    command.current_dir(place).stdin(Stdio::null());
    command
}

fn place(files: &[(&str, &str)]) -> TempDir {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    for (name, text) in files {
        fs::write(place.path().join(name), text).expect("written");
    }
    place
}

/// A running API, which ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it; returns it with the first lines that it printed.
    fn start(place: &Path, arguments: &[&str]) -> (Self, Vec<String>) {
        let mut command = api(place, arguments);
        let mut running = Self(command.stdout(Stdio::piped()).spawn().expect("it starts"));
        let printed = running.0.stdout.take().expect("a pipe");
        let lines = BufReader::new(printed).lines().take(6);
        (running, lines.collect::<Result<_, _>>().expect("text"))
    }
}

/// Returns the answer to a GET.
fn get(address: &str, path: &str) -> String {
    send(address, &format!("GET {path}"), "")
}

/// Returns the answer to a request; `body` is YAML to apply.
fn send(address: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let length = body.len();
    let apply = "application/apply-patch+yaml";
    let request = format!(
        "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: {apply}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn it_serves_the_objects_of_the_files_and_writes_a_kubeconfig() {
    let place = place(&[("objects.yaml", OBJECTS), ("widgets.yaml", WIDGETS)]);
    let (running, printed) = Running::start(place.path(), &["objects.yaml", "widgets.yaml"]);
    let made = "1 CustomResourceDefinition, 1 Namespace, 2 Widget, 1 ConfigMap";
    assert!(
        printed[0].ends_with(&format!("It has: {made}.")),
        "{printed:?}"
    );
    let rest = printed[0].split("http://").nth(1).expect("an address");
    let address = rest.split(". ").next().expect("an address").to_owned();

    let widget = get(
        &address,
        "/apis/example.com/v1/namespaces/default/widgets/a",
    );
    assert!(
        widget.contains(r#""size":1"#) && widget.contains(r#""seen":true"#),
        "{widget}"
    );
    let path = "/apis/example.com/v1/namespaces/team/widgets/b";
    assert!(get(&address, path).contains("200 OK"));
    // `kubectl apply --server-side` of a changed file is no conflict.
    let changed = r#"{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":3}}"#;
    let request = format!("PATCH {path}?fieldManager=kubectl");
    let applied = send(&address, &request, changed);
    assert!(applied.contains(r#""size":3"#), "{applied}");
    let other = send(
        &address,
        &request.replace("kubectl", "other"),
        &changed.replace('3', "4"),
    );
    assert!(other.contains("409"), "{other}");
    let kubeconfig = place.path().join("okt-api.kubeconfig");
    let text = fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    assert!(
        text.contains(&format!("server: http://{address}")),
        "{text}"
    );

    let id = running.0.id().to_string();
    let ended = Command::new("kill").args(["-INT", &id]).status();
    assert!(ended.expect("kill runs").success());
    let mut running = running;
    assert!(running.0.wait().expect("it ends").success());
    assert!(!kubeconfig.exists());
}

fn errors(output: &Output) -> String {
    assert!(!output.status.success(), "it was not refused");
    String::from_utf8_lossy(&output.stderr)
        .trim_end()
        .to_owned()
}

#[test]
fn what_it_cannot_read_is_refused_with_the_file_and_the_document() {
    let place = place(&[
        ("broken.yaml", "a: ["),
        ("nameless.yaml", "kind: Widget"),
        (
            "unknown.yaml",
            "---\napiVersion: example.com/v1\nkind: Widget\nmetadata: { name: a }\n",
        ),
        (
            "invalid.yaml",
            &format!(
                "{WIDGETS}---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {{ name: a }}\nspec: {{}}\n"
            ),
        ),
    ]);
    let empty = place.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    for (file, why) in [
        ("broken.yaml", "error: broken.yaml is no YAML: "),
        (
            "nameless.yaml",
            "error: nameless.yaml, document 1: an object has an `apiVersion`, a `kind` and a `metadata.name`",
        ),
        (
            "unknown.yaml",
            "error: unknown.yaml, document 1: there is no kind Widget in example.com/v1; add the file with its CRD",
        ),
        (
            "invalid.yaml",
            "error: invalid.yaml, document 2: Widget.example.com \"a\" is invalid: spec.size: Required value",
        ),
        ("none.yaml", "error: cannot read none.yaml: "),
        ("empty", "error: empty has no .yaml, .yml or .json file"),
    ] {
        let output = api(place.path(), &[file]).output().expect("it ends");
        let error = errors(&output);
        assert!(error.starts_with(why), "{file}: {error}");
        assert!(!place.path().join("okt-api.kubeconfig").exists(), "{file}");
    }
    fs::write(place.path().join("okt-api.kubeconfig"), "mine").expect("written");
    let output = api(place.path(), &[]).output().expect("it ends");
    assert!(errors(&output).contains("exists already"), "{output:?}");
    let kept = fs::read_to_string(place.path().join("okt-api.kubeconfig"));
    assert_eq!(kept.expect("a file"), "mine");
}
