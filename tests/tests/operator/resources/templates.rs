//! Invalid templates: each reports its error and changes nothing.

use std::fmt::Write;
use std::time::Duration;

use okt::{Failure, Resources, Template};
use okt_tests::ShopState::Open;
use serde_json::json;

use super::{map, open, writes};

/// Templates, each with the expected start of the message in the conditions.
const BAD: &[(&str, &str)] = &[
    // Not a template.
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
    // Values that are missing or have the wrong type.
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
    // Not YAML.
    ("kind: A\n  name: b", "web.yaml: it renders no YAML: "),
    (
        "kind: A\nname: \"{{ name }}-x\"",
        "web.yaml: it renders no YAML: ",
    ),
    ("kind: A\n\tname: b", "web.yaml: it renders no YAML: "),
    (
        "kind: A\nkind: B",
        "web.yaml: it renders no YAML: duplicate",
    ),
    ("kind: [A", "web.yaml: it renders no YAML: unclosed"),
    ("kind: *nowhere", "web.yaml: it renders no YAML: alias"),
    ("kind: &a [*a]", "web.yaml: it renders no YAML: recursive"),
    ("kind: !!binary x", "web.yaml: it renders no YAML: "),
    // No object, or several objects.
    ("", "web.yaml: it renders no object"),
    ("- kind: A", "web.yaml: what it renders is no object"),
    (
        "kind: A\n---\nkind: B",
        "web.yaml: it renders 2 objects; a template makes one",
    ),
    // Too large, too slow, too deeply nested.
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

/// Returns the resources that a template declares, or why it declares none.
fn declared(source: &str) -> Result<Resources, Failure> {
    let values = json!({ "name": "web", "replicas": 2, "labels": { "a": "b" } });
    let template = Template::new("web.yaml", source)
        .map_err(|error| Failure::permanent("BadTemplate", error.to_string()))?;
    Ok(Resources::new().with(template.declare(&values)?))
}

/// A YAML bomb: nested aliases that expand beyond any memory.
fn bomb() -> String {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 'b'..='z' {
        let before = char::from(level as u8 - 1);
        let all = vec![format!("*{before}"); 10].join(", ");
        writeln!(bomb, "{level}: &{level} [{all}]").expect("writing to a string succeeds");
    }
    bomb
}

#[tokio::test(start_paused = true)]
async fn an_invalid_template_reports_its_error_with_file_and_line_and_changes_nothing() {
    let (huge, bomb) = ("#".repeat(300_000), bomb());
    let endless = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
    let growing = "{% for i in range(9000) %}{{ \"x\" * 1000 }}\n{% endfor %}";
    let nested = format!("kind: {}1{}", "[".repeat(5000), "]".repeat(5000));
    let large: [(&str, &str); 5] = [
        (
            &huge,
            "web.yaml: 300000 bytes are more than a template may have (262144)",
        ),
        (growing, "web.yaml: it renders more than 1572864 bytes"),
        (endless, "web.yaml:1: rendering it takes too long"),
        (&bomb, "web.yaml: it renders no YAML: "),
        (&nested, "web.yaml: it renders no YAML: "),
    ];
    let bad = BAD.iter().chain(&large);
    assert!(bad.clone().count() >= 30);
    let rig = open(Resources::new().apply(map("a", "x"))).await;
    for (number, (source, part)) in bad.enumerate() {
        rig.wire.clear();
        match declared(source) {
            Ok(resources) => rig.app.declare(resources),
            Err(failure) => rig.app.fail_to_declare(Some(failure)),
        }
        // A different spec, so that this is no retry of the failure before.
        let key = json!({ "spec": { "key": format!("key-{number}") } });
        rig.patch("shop", key).await;
        rig.pass(Duration::from_mins(1)).await;
        let stalled = rig.condition("shop", "Stalled").await;
        let stalled = stalled.unwrap_or_else(|| panic!("no Stalled condition: {source}"));
        assert!(
            stalled.message.contains(part),
            "{source}: {}",
            stalled.message
        );
        assert_eq!(writes(&rig), [""; 0], "{source}");
        assert_eq!(rig.text("a").await.as_deref(), Some("x"), "{source}");
        rig.app.declare(Resources::new().apply(map("a", "x")));
        rig.app.fail_to_declare(None);
    }
    rig.patch("shop", json!({ "spec": { "key": "" } })).await;
    rig.until_ready("shop", Open).await;
}
