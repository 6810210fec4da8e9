//! Compares the responses of the test double to CEL rules with those of a real API server.
//!
//! `cel_rules.json` contains the rules, their schemas, and the response of kube-apiserver 1.36.1 to
//! a CRD with them: nothing, or the first refusal of each expression, without its line and column.
//! `cel_values.json` contains rules with values, and its response to an object with each value.

use okt_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::{CRDS, Comparison, crd, post, send, without_reason};

/// The features in rules of the tables that the `cel` crate does not have.
const NOT_SERVED: [&str; 4] = [
    "with two variables",
    "'transformList'",
    "'transformMap'",
    "'sortBy'",
];

/// The results of the test double for a table; rules that are not served are counted apart.
#[derive(Default)]
struct Table {
    served: Comparison,
    not_served: Vec<String>,
}

impl Table {
    fn add(&mut self, case: &Value, code: u16, answer: &str) {
        let expected = case["answer"].as_str().unwrap_or_default();
        let what = format!("{} {} {}", case["schema"], case["rule"], case["value"]);
        if code == 501 && NOT_SERVED.iter().any(|known| answer.contains(known)) {
            self.not_served.push(what);
        } else {
            let is_same = code != 501 && without_reason(answer) == without_reason(expected);
            let answer = format!("{code} {answer}");
            self.served.add(is_same, &what, expected, &answer);
        }
    }

    fn check(&self, not_served: usize) {
        self.served.check();
        assert_eq!(self.not_served.len(), not_served, "{:?}", self.not_served);
    }
}

#[tokio::test]
async fn rules_are_accepted_and_refused_as_on_a_real_server() {
    let file: Value = serde_json::from_str(include_str!("cel_rules.json")).expect("JSON");
    let server = ApiServer::new();
    let mut table = Table::default();
    for case in file["cases"].as_array().expect("cases") {
        let name = case["schema"].as_str().expect("a name");
        let mut schema = file["schemas"][name].clone();
        if let Some(rule) = case.get("rule") {
            schema["x-kubernetes-validations"] = json!([{ "rule": rule }]);
        }
        if !name.starts_with("root") {
            schema = json!({ "type": "object", "properties": { "spec": schema } });
        }
        let path = format!("{CRDS}?dryRun=All");
        let (code, answer) = post(&server, &path, &crd(&schema)).await;
        table.add(case, code, &answer);
    }
    table.check(2);
}

#[tokio::test]
async fn rules_evaluate_values_as_on_a_real_server() {
    let file: Value = serde_json::from_str(include_str!("cel_values.json")).expect("JSON");
    let mut table = Table::default();
    for case in file["cases"].as_array().expect("cases") {
        let server = ApiServer::new();
        let mut schema = file["schema"].clone();
        schema["x-kubernetes-validations"] =
            json!([{ "rule": case["rule"], "message": "it does not hold" }]);
        let schema = json!({ "type": "object", "properties": { "value": schema } });
        let (mut code, mut answer) = post(&server, CRDS, &crd(&schema)).await;
        if code == 201 {
            let path = "/apis/rules.okt.dev/v1/namespaces/default/things";
            let thing = json!({
                "apiVersion": "rules.okt.dev/v1",
                "kind": "Thing",
                "metadata": { "name": "one" },
                "value": case["value"],
            });
            (code, answer) = post(&server, path, &thing).await;
        }
        table.add(case, code, &answer);
    }
    table.check(9);
}

/// The largest graph of an OKT operator, with some renamed states, which a real server accepts too.
#[tokio::test]
async fn a_graph_of_300_states_is_accepted() {
    let edges: Vec<String> = (0..300)
        .map(|state| {
            let targets: Vec<_> = (1..=10)
                .map(|step| format!("'State{}'", (state + step) % 300))
                .collect();
            format!("'State{state}': [{}]", targets.join(", "))
        })
        .collect();
    let edges = format!("{{{}}}", edges.join(", "));
    let former: Vec<String> = (0..30)
        .map(|state| format!("'Former{state}': 'State{state}'"))
        .collect();
    let former = format!("{{{}}}", former.join(", "));
    let name = |of: &str| format!("({of} in {former} ? {former}[{of}] : {of})");
    let (now, before) = (name("self.state"), name("oldSelf.state"));
    let schema = json!({
        "type": "object",
        "properties": { "status": { "type": "object", "properties": { "lifecycle": {
            "type": "object",
            "required": ["state", "jumps"],
            "properties": {
                "state": { "type": "string", "maxLength": 63 },
                "jumps": { "type": "integer" },
            },
            "x-kubernetes-validations": [
                {
                    "rule": format!("oldSelf.hasValue() || {now} == 'State0' || self.jumps > 0"),
                    "optionalOldSelf": true,
                },
                {
                    "rule": format!(
                        "{now} == {before} || self.jumps > oldSelf.jumps || ({before} in {edges} && {now} in {edges}[{before}])"
                    ),
                    "messageExpression": "'no edge from ' + oldSelf.state + ' to ' + self.state",
                },
            ],
        } } } },
    });
    let server = ApiServer::new();
    let (code, answer) = post(&server, CRDS, &crd(&schema)).await;
    assert_eq!((code, answer.as_str()), (201, ""));
}

#[tokio::test]
async fn an_expression_of_more_than_100_000_characters_is_refused() {
    let rule = format!("self != '{}'", "x".repeat(100_000));
    let schema = json!({
        "type": "object",
        "properties": { "spec": {
            "type": "string",
            "maxLength": 10,
            "x-kubernetes-validations": [{ "rule": rule }],
        } },
    });
    let (code, answer) = post(&ApiServer::new(), CRDS, &crd(&schema)).await;
    assert_eq!(code, 422);
    let expected = "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100010, limit 100000";
    assert!(answer.ends_with(expected), "{answer}");
}

#[tokio::test]
async fn a_message_beside_an_optional_old_value_is_evaluated_without_it() {
    let rules = json!([
        { "rule": "oldSelf.hasValue() || self.n < 5", "optionalOldSelf": true, "message": "m",
          "messageExpression": "'new without old: ' + self.s" },
        { "rule": "self.n != 7 || oldSelf.hasValue()", "optionalOldSelf": true, "message": "fallback",
          "messageExpression": "'seven, had ' + oldSelf.value().s" },
        { "rule": "!oldSelf.hasValue() || self.n >= oldSelf.value().n", "optionalOldSelf": true,
          "messageExpression": "'smaller than ' + oldSelf.value().s" },
        { "rule": "self.n != 10 || (oldSelf.hasValue() && oldSelf.value().n == 10)", "optionalOldSelf": true,
          "messageExpression": "self.s == '' ? oldSelf.value().s : 'ten ' + self.s" },
    ]);
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "properties": { "n": { "type": "integer" }, "s": { "type": "string", "maxLength": 20 } },
        "x-kubernetes-validations": rules,
    } } });
    let server = ApiServer::new();
    assert_eq!(post(&server, CRDS, &crd(&schema)).await.0, 201);
    let path = "/apis/rules.okt.dev/v1/namespaces/default/things";
    let thing = |name: &str, n: i64, s: &str| {
        json!({
            "apiVersion": "rules.okt.dev/v1", "kind": "Thing",
            "metadata": { "name": name }, "spec": { "n": n, "s": s },
        })
    };
    for (n, expected) in [
        (6, "spec: Invalid value: new without old: x"),
        (
            7,
            "[spec: Invalid value: new without old: x, spec: Invalid value: fallback]",
        ),
        (
            10,
            "[spec: Invalid value: new without old: x, spec: Invalid value: ten x]",
        ),
    ] {
        let answer = post(&server, path, &thing("a", n, "x")).await;
        assert_eq!(answer, (422, expected.to_owned()));
    }
    assert_eq!(post(&server, path, &thing("b", 4, "bb")).await.0, 201);
    for (n, expected) in [
        (
            2,
            "spec: Invalid value: failed rule: !oldSelf.hasValue() || self.n >= oldSelf.value().n",
        ),
        (10, "spec: Invalid value: ten bb"),
    ] {
        let patch = json!({ "spec": { "n": n } });
        let answer = send(&server, "PATCH", &format!("{path}/b"), &patch).await;
        assert_eq!(answer, Err((422, expected.to_owned())));
    }
}
