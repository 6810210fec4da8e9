//! Tests of templates: rendering, and the errors of wrong templates.

use okt_fuzz::check;
use serde_json::json;

use super::*;

fn values() -> Value {
    json!({ "name": "web", "replicas": 2, "labels": { "a": "b" }, "evil": "x\nkind: Secret # \"'{{ name }}" })
}

fn wrong(source: &str) -> String {
    match Template::new("web.yaml", source) {
        Err(error) => error.to_string(),
        Ok(template) => match template.declare(&values()) {
            Err(failure) => {
                assert!(failure.is_permanent());
                assert_eq!(failure.reason(), "BadTemplate");
                failure.message().to_owned()
            }
            Ok(declared) => panic!("{declared:?}"),
        },
    }
}

fn made(source: &str) -> Value {
    let template = Template::new("web.yaml", source).expect("a template");
    let declared = template.declare(&values()).expect("an object");
    declared.object.expect("an object")
}

#[test]
fn values_are_filled_in_and_keep_their_types() {
    let made = made(
        "kind: A\nname: {{ name }}\nlong: {{ name ~ \"-x\" }}\nreplicas: {{ replicas }}\nlabels: {{ labels }}\n\
             list:\n{% for i in range(replicas) %}- {{ i }}\n{% endfor %}",
    );
    assert_eq!(
        made,
        json!({
            "kind": "A", "name": "web", "long": "web-x", "replicas": 2, "labels": { "a": "b" }, "list": [0, 1],
        })
    );
}

#[test]
fn no_value_breaks_out_of_its_place() {
    let made = made("kind: ConfigMap\ndata:\n  text: {{ evil }}");
    assert_eq!(made["kind"], "ConfigMap");
    assert_eq!(made["data"]["text"], values()["evil"]);
}

#[test]
fn an_error_names_file_and_line() {
    for (source, message) in BAD {
        assert_eq!(wrong(source), *message, "{source}");
    }
}

#[test]
fn no_value_is_in_a_message() {
    let values = json!({ "password": "hunter2", "pin": 471_147, "names": ["hunter2"], "logins": { "hunter2": 471_147 } });
    for source in [
        "a: \"{{ password }}x\"",
        "a: {{ password }}x",
        "{{ password }}: 1\n{{ password }}: 2",
        "a: !!{{ password }} b",
        "a: !{{ password | safe }} b",
        "a: *{{ password | safe }}",
        "a: !!binary {{ password }}",
        "a: !!int {{ password }}",
        "a: !!float {{ password }}",
        "a: [{{ password }}",
        "a: b\n  {{ password }}: c",
        "{{ password }}",
        "{{ pin }}",
        "a: {{ pin / 0 }}",
        "a: {{ pin // 0 }}",
        "a: {{ pin ** pin }}",
        "a: {{ password + pin }}",
        "a: {{ password - 1 }}",
        "a: {{ -password }}",
        "a: {{ password.a.b }}",
        "a: {{ logins[password].a.b }}",
        "a: {{ password() }}",
        "a: {{ password.shout() }}",
        "a: {{ password | int }}",
        "a: {{ password | float }}",
        "a: {{ password | abs }}",
        "a: {{ password | round }}",
        "a: {{ password | sum }}",
        "a: {{ password | items }}",
        "a: {{ names | map(password) }}",
        "a: {{ names | select(password) }}",
        "a: {{ names | sort(attribute=password) | first | int }}",
        "a: {{ range(pin, pin * pin) }}",
        "{% include password %}",
        "{% extends password %}",
        "{% import password as a %}",
        "{% for a, b in names %}{% endfor %}",
        "{% for a in pin %}{% endfor %}",
        "a: \u{1}{{ password | safe }}",
    ] {
        let made = Template::new("web.yaml", source).map(|it| it.declare(&values));
        let message = match made {
            Err(error) => error.to_string(),
            Ok(Err(failure)) => failure.message().to_owned(),
            Ok(Ok(_)) => continue,
        };
        assert!(
            !message.contains("hunter2") && !message.contains("471147"),
            "{source}: {message}"
        );
    }
}

const WHOLE: &str = r#"{% set full = name ~ "-web" %}{% macro port(n) %}{ name: {{ n }} }{% endmacro %}
apiVersion: v1
kind: {{ labels.kind | default("ConfigMap") }}
metadata: { name: {{ full }}, labels: {{ labels }} }
data:
{% for i in range(replicas) if i is odd %}
  n{{ i }}: {{ "05" ~ (i * replicas) | string | trim }} # {{ loop.index }}
{% else %}
  none: {{ [name, 1, none] | join(",") | upper | replace("A", "b") }}
{% endfor %}
  evil: {{ evil[:4] ~ evil | length }}
  port: {{ port(8080) }}
"#;

#[test]
fn any_number_of_operators_in_a_row_is_parsed() {
    let times = SOURCE_LIMIT / 2 - 100;
    for (begin, again, end) in [
        ("{{ 1", "+1", " }}"),
        ("{{ a", ".a", " }}"),
        ("{{ a", "()", " }}"),
        ("{{ a", "|a", " }}"),
        ("{{ a is b", "()", " }}"),
        ("{{ ", "[[", ""),
        ("{{ ", "- ", "1 }}"),
        ("{{ ", "((", ""),
    ] {
        let _ = Template::new("long.yaml", &format!("{begin}{}{end}", again.repeat(times)));
    }
}

#[test]
fn every_template_makes_an_object_or_says_why_not() {
    let values = values();
    check(600, |dice| {
        let source = String::from_utf8_lossy(&dice.bytes(WHOLE.as_bytes())).into_owned();
        let values = serde_json::from_slice(&dice.json(&values)).unwrap_or_else(|_| values.clone());
        let message = match Template::new("web.yaml", &source).map(|it| it.declare(&values)) {
            Ok(Ok(declared)) => {
                assert!(declared.object.is_ok_and(|object| object.is_object()));
                return;
            }
            Ok(Err(failure)) => failure.message().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(
            message.starts_with("web.yaml:") && message.len() < 1200,
            "{message}"
        );
    });
}

#[test]
fn what_is_too_large_is_refused_before_it_takes_memory() {
    let long = "#".repeat(SOURCE_LIMIT + 1);
    assert_eq!(
        wrong(&long),
        "web.yaml: 262145 bytes are more than a template may have (262144)"
    );
    let growing = "{% for i in range(9000) %}{{ \"x\" * 1000 }}\n{% endfor %}";
    assert_eq!(
        wrong(growing),
        "web.yaml: it renders more than 1572864 bytes"
    );
    let long = "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}";
    assert_eq!(wrong(long), "web.yaml:1: rendering it takes too long");
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 'b'..='z' {
        let before = char::from(level as u8 - 1);
        let all = vec![format!("*{before}"); 10].join(", ");
        bomb.push_str(&format!("{level}: &{level} [{all}]\n"));
    }
    let message = wrong(&bomb);
    assert!(
        message.starts_with("web.yaml: it renders no YAML: "),
        "{message}"
    );
}

const BAD: &[(&str, &str)] = &[
    (
        "{{ name",
        "web.yaml:1: unexpected end of input, expected end of variable block",
    ),
    (
        "{{ name }",
        "web.yaml:1: unexpected `}`, expected end of variable block",
    ),
    (
        "kind: A\n{% if name %}\nx: 1",
        "web.yaml:2: unexpected end of input, expected end of block",
    ),
    (
        "kind: A\n{% endif %}",
        "web.yaml:2: unknown statement endif",
    ),
    (
        "kind: A\n{% for x %}{% endfor %}",
        "web.yaml:2: unexpected end of block, expected in",
    ),
    (
        "kind: A\nname: {{ nmae }}",
        "web.yaml:2: `nmae` is undefined",
    ),
    (
        "kind: A\nname: {{ labels.b }}",
        "web.yaml:2: `labels.b` is undefined",
    ),
    (
        "kind: A\nname: {{ labels.b.c }}",
        "web.yaml:2: `labels.b` is undefined",
    ),
    (
        "kind: A\nname: {{ name | shout }}",
        "web.yaml:2: `shout`: filter shout is unknown",
    ),
    (
        "kind: A\nname: {{ '%09999999999999d' | format(1) }}",
        "web.yaml:2: `format(1)`: filter format is unknown",
    ),
    (
        "kind: A\nname: {{ name | indent(9999999999999) }}",
        "web.yaml:2: `indent(9999999999999)`: filter indent is unknown",
    ),
    (
        "kind: A\nname: {{ now() }}",
        "web.yaml:2: `now()`: now is unknown",
    ),
    (
        "kind: A\nname: {{ name + replicas }}",
        "web.yaml:2: `name + replicas`: tried to use + operator on unsupported types string and number",
    ),
    (
        "kind: A\nname: {{ replicas / 0 }}",
        "web.yaml:2: `replicas / 0`: invalid operation",
    ),
    (
        "kind: A\n{% include 'other.yaml' %}",
        "web.yaml:2: `include 'other.yaml'`: template not found",
    ),
    (
        "kind: A\n{% extends 'other.yaml' %}",
        "web.yaml:2: `extends 'other.yaml'`: template not found",
    ),
    (
        "kind: A\n{% for x in replicas %}{% endfor %}",
        "web.yaml:2: `replicas`: number is not iterable",
    ),
    (
        "kind: A\n{% for x in range(10000000000) %}{% endfor %}",
        "web.yaml:2: `range(10000000000)`: range has too many elements",
    ),
    (
        "kind: A\n{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "web.yaml:2: `a()`: recursion limit exceeded",
    ),
    ("", "web.yaml: it renders no object"),
    ("# nothing\n", "web.yaml: it renders no object"),
    ("---\n---\n", "web.yaml: it renders no object"),
    ("- kind: A", "web.yaml: what it renders is no object"),
    ("7", "web.yaml: what it renders is no object"),
    (
        "kind: A\n---\nkind: B",
        "web.yaml: it renders 2 objects; a template makes one",
    ),
    (
        "kind: A\n  name: b",
        "web.yaml: it renders no YAML: mapping values are not allowed in this context at line 2, column 7",
    ),
    (
        "kind: A\nname: \"{{ name }}-x\"",
        "web.yaml: it renders no YAML: invalid trailing content after double-quoted scalar at line 2, column 9",
    ),
    (
        "kind: A\n\tname: b",
        "web.yaml: it renders no YAML: while scanning a plain scalar, found a tab at line 1, column 7",
    ),
    (
        "kind: A\nkind: B",
        "web.yaml: it renders no YAML: duplicate mapping key at line 2, column 1",
    ),
    (
        "kind: [A",
        "web.yaml: it renders no YAML: unclosed bracket '[' at line 1, column 7",
    ),
    (
        "kind: &a [*a]",
        "web.yaml: it renders no YAML: recursive references require weak recursion types at line 1, column 11",
    ),
    (
        "kind: *nowhere",
        "web.yaml: it renders no YAML: alias references unknown anchor at line 1, column 7",
    ),
    (
        "kind: !!binary x",
        "web.yaml: it renders no YAML: invalid !!binary base64 at line 1, column 16",
    ),
    (
        "kind: A\n? [a]\n: b",
        "web.yaml: it renders no YAML: expected string scalar at line 2, column 3",
    ),
];
