//! What the Operator Lifecycle Manager says of a bundle, by its own validation.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{IMAGE, PROGRAMS, go_program, manifests, try_manifests};

/// What is left to people: an icon and examples. The last one is about the option of the command.
const KNOWN: [&str; 3] = ["Icon not specified", "example annotation", "is deprecated"];

/// Returns the lines with errors and warnings about a bundle.
fn problems(bundle: &str) -> Vec<String> {
    let program = "github.com/operator-framework/api/cmd/operator-verify";
    let mut verify = Command::new(go_program("operator-verify", program));
    verify.args(["manifests", "--operatorhub_validate"]);
    let output = verify.arg(format!("{bundle}/manifests")).output();
    let output = output.expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text.lines().map(str::to_owned).collect()
}

fn read(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).expect("a file")).expect("YAML")
}

#[test]
#[ignore = "builds the validation of OLM, which takes a minute"]
fn a_bundle_is_valid_and_says_what_people_write_about_it() {
    for program in PROGRAMS {
        let name = Path::new(program).file_name().and_then(|it| it.to_str());
        let name = name.expect("a name");
        let folder = tempfile::tempdir().expect("a folder");
        let bundle = folder.path().to_str().expect("UTF-8");
        let flags = ["--service-monitor", "--metrics-secure", "--replicas=3"];
        manifests(program, &[&flags[..], &["--bundle", bundle]].concat());
        let is_known = |line: &String| KNOWN.iter().any(|known| line.contains(known));
        let problems = |bundle: &str| -> Vec<String> {
            let lines = problems(bundle).into_iter();
            lines.filter(|line| !is_known(line)).collect()
        };
        assert_eq!(problems(bundle), [""; 0], "{name}");
        let base = "spec: { displayName: Mine, provider: { name: We }, maintainers: [{ name: I, email: i@example.org }], \
                    links: [{ name: a, url: 'https://example.org' }] }\n\
                    metadata: { annotations: { capabilities: Deep Insights, alm-examples: '[]' } }\n";
        fs::write(folder.path().join("base.yaml"), base).expect("a file");
        manifests(program, &["--bundle", bundle]);
        assert_eq!(problems(bundle), [""; 0], "{name}");
        let manifests = folder.path().join("manifests");
        let csv = read(&manifests.join(format!("{name}.clusterserviceversion.yaml")));
        assert_eq!(csv["metadata"]["name"], format!("{name}.v1.2.0"));
        assert_eq!(csv["spec"]["displayName"], "Mine");
        assert_eq!(csv["metadata"]["annotations"]["containerImage"], IMAGE);
        // What only the first one had is gone.
        let names = fs::read_dir(&manifests).expect("a folder");
        let names = names.map(|it| it.expect("an entry").file_name());
        let is_monitor = |name: &std::ffi::OsString| name.to_string_lossy().contains("monitor");
        assert_eq!(names.filter(is_monitor).count(), 0);
    }
}

#[test]
#[ignore = "belongs to the others"]
fn a_bundle_has_the_rights_and_the_webhooks_of_the_manifests() {
    let program = env!("CARGO_BIN_EXE_three-operators");
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().to_str().expect("UTF-8");
    manifests(program, &["--bundle", bundle]);
    let csv = folder
        .path()
        .join("manifests/three-operators.clusterserviceversion.yaml");
    let spec = read(&csv)["spec"].take();
    let install = &spec["install"]["spec"];
    let resources = |permissions: &str| {
        let rules = install[permissions][0]["rules"].as_array().expect("rules");
        let resources = rules.iter().filter_map(|rule| rule["resources"].as_array());
        let names = resources.flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let (cluster, own) = (resources("clusterPermissions"), resources("permissions"));
    for name in [
        "databases",
        "sites",
        "charts",
        "sites/status",
        "events",
        "validatingwebhookconfigurations",
    ] {
        assert!(cluster.iter().any(|it| it == name), "{name}: {cluster:?}");
    }
    assert_eq!(own, ["leases", "secrets", "secrets"]);
    let webhook = &spec["webhookdefinitions"][0];
    assert_eq!(webhook["type"], "ValidatingAdmissionWebhook");
    assert_eq!(webhook["webhookPath"], "/validate/charts.demo.okt.dev");
    let container = &install["deployments"][0]["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].to_string();
    assert!(arguments.contains("--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs"));
    let people = folder
        .path()
        .join("manifests/databases.demo.okt.dev_view_clusterrole.yaml");
    assert!(people.exists());
}

#[test]
fn options_that_a_bundle_cannot_have_and_a_base_that_is_no_yaml_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = folder.path().to_str().expect("UTF-8");
    let program = env!("CARGO_BIN_EXE_databases");
    for option in [
        "--namespace=a",
        "--policy=states",
        "--service-account=a/b",
        "--helm=b",
    ] {
        let refused = try_manifests(program, &["--bundle", bundle, option]);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2));
        assert!(error.contains("cannot be used with"), "{error}");
    }
    fs::write(folder.path().join("base.yaml"), "spec: [").expect("a file");
    let refused = try_manifests(program, &["--bundle", bundle]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("base.yaml"),
        "{error}"
    );
    assert!(
        !folder.path().join("manifests").exists(),
        "nothing was written"
    );
}
