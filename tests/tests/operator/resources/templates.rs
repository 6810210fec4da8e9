//! Bad templates: each says what is wrong with it, and touches nothing.

use std::fmt::Write;
use std::time::Duration;

use okt_runtime::{Failure, Resources, Template};
use okt_tests::ShopState::Open;
use serde_json::json;

use super::{map, open, text, writes};

/// What comes of each is said in the conditions.
const BAD: &[(&str, &str)] = &[
    // No template.
    ("{{ name", "web.yaml:1: "),
    ("{{ name }", "web.yaml:1: "),
    ("kind: A\n{% if name %}\nx: 1", "web.yaml:2: "),
    (
        "kind: A\n{% endif %}",
        "web.yaml:2: unknown statement endif",
    ),
    ("kind: A\n{% for x %}{% endfor %}", "web.yaml:2: "),
    ("kind: A\nname: {{ name | shout }}", "web.yaml:2: `shout`"),
    ("kind: A\nname: {{ now() }}", "web.yaml:2: `now()`"),
    (
        "kind: A\n{% include 'b.yaml' %}",
        "web.yaml:2: `include 'b.yaml'`",
    ),
    (
        "kind: A\n{% extends 'b.yaml' %}",
        "web.yaml:2: `extends 'b.yaml'`",
    ),
    // Values that are missing, or fit nowhere.
    (
        "kind: A\nname: {{ nmae }}",
        "web.yaml:2: `nmae` is undefined",
    ),
    (
        "kind: A\n\nname: {{ labels.b }}",
        "web.yaml:3: `labels.b` is undefined",
    ),
    (
        "kind: A\nname: {{ labels.b.c }}",
        "web.yaml:2: `labels.b` is undefined",
    ),
    (
        "kind: A\nname: {{ name + replicas }}",
        "web.yaml:2: `name + replicas`",
    ),
    (
        "kind: A\nname: {{ replicas / 0 }}",
        "web.yaml:2: `replicas / 0`",
    ),
    (
        "kind: A\n{% for x in replicas %}{% endfor %}",
        "web.yaml:2: `replicas`",
    ),
    // No YAML.
    (
        "kind: A\n  name: b",
        "web.yaml: what comes of it is no YAML: ",
    ),
    (
        "kind: A\nname: \"{{ name }}-x\"",
        "web.yaml: what comes of it is no YAML: ",
    ),
    (
        "kind: A\n\tname: b",
        "web.yaml: what comes of it is no YAML: ",
    ),
    (
        "kind: A\nkind: B",
        "web.yaml: what comes of it is no YAML: duplicate",
    ),
    (
        "kind: [A",
        "web.yaml: what comes of it is no YAML: unclosed",
    ),
    (
        "kind: *nowhere",
        "web.yaml: what comes of it is no YAML: alias",
    ),
    (
        "kind: &a [*a]",
        "web.yaml: what comes of it is no YAML: recursive",
    ),
    (
        "kind: !!binary x",
        "web.yaml: what comes of it is no YAML: ",
    ),
    // No object, or several.
    ("", "web.yaml: no object comes of it"),
    ("- kind: A", "web.yaml: what comes of it is no object"),
    (
        "kind: A\n---\nkind: B",
        "web.yaml: 2 objects come of it; a template makes one",
    ),
    // Too large, too long, too deep.
    (
        "kind: A\n{% for x in range(10000000000) %}{% endfor %}",
        "web.yaml:2: ",
    ),
    (
        "kind: A\n{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "web.yaml:2: `a()`",
    ),
    // An object that cannot be declared.
    (
        "kind: ConfigMap\nmetadata: { name: b }",
        "web.yaml: a resource has no `apiVersion`",
    ),
    (
        "apiVersion: v1\nkind: Pod\nmetadata: { name: b }",
        "web.yaml: Pod (v1) is declared",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap",
        "web.yaml: a ConfigMap has no name",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: b, namespace: c }",
        "web.yaml: ConfigMap b lives in",
    ),
    (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: 7",
        "web.yaml: the metadata of a ConfigMap is no object",
    ),
];

/// What comes of a template: what is declared, or why nothing is.
fn declared(source: &str) -> Result<Resources, Failure> {
    let values = json!({ "name": "web", "replicas": 2, "labels": { "a": "b" } });
    let template = Template::new("web.yaml", source)
        .map_err(|error| Failure::permanent("BadTemplate", error.to_string()))?;
    Ok(Resources::new().with(template.declare(&values)?))
}

/// Aliases of aliases, which would become more than any memory holds.
fn bomb() -> String {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 'b'..='z' {
        let before = char::from(level as u8 - 1);
        let all = vec![format!("*{before}"); 10].join(", ");
        writeln!(bomb, "{level}: &{level} [{all}]").expect("a text takes all");
    }
    bomb
}

#[tokio::test(start_paused = true)]
async fn a_bad_template_says_what_is_wrong_with_file_and_line_and_touches_nothing() {
    let (huge, bomb) = ("#".repeat(300_000), bomb());
    let endless = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
    let growing = "{% for i in range(9000) %}{{ \"x\" * 1000 }}\n{% endfor %}";
    let nested = format!("kind: {}1{}", "[".repeat(5000), "]".repeat(5000));
    let large: [(&str, &str); 5] = [
        (
            &huge,
            "web.yaml: 300000 bytes are more than a template may have (262144)",
        ),
        (growing, "web.yaml: more than 1572864 bytes come of it"),
        (endless, "web.yaml:1: filling it in takes too long"),
        (&bomb, "web.yaml: what comes of it is no YAML: "),
        (&nested, "web.yaml: what comes of it is no YAML: "),
    ];
    let bad = BAD.iter().chain(&large);
    assert!(bad.clone().count() >= 30);
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    for (number, (source, said)) in bad.enumerate() {
        rig.wire.clear();
        match declared(source) {
            Ok(resources) => rig.app.declare(resources),
            Err(failure) => rig.app.fail_to_declare(Some(failure)),
        }
        // Another spec, so that it is no repetition of what failed before.
        let key = json!({ "spec": { "key": format!("key-{number}") } });
        rig.patch("shop", key).await;
        rig.pass(Duration::from_mins(1)).await;
        let stalled = rig.condition("shop", "Stalled").await;
        let stalled = stalled.unwrap_or_else(|| panic!("it is told: {source}"));
        assert!(
            stalled.message.contains(said),
            "{source}: {}",
            stalled.message
        );
        assert_eq!(writes(&rig), [""; 0], "{source}");
        assert_eq!(text(&rig, "a").await.as_deref(), Some("x"), "{source}");
        rig.app.declare(Resources::new().apply(map("a", "x")));
        rig.app.fail_to_declare(None);
    }
    rig.patch("shop", json!({ "spec": { "key": "" } })).await;
    rig.until_ready("shop", Open).await;
}
