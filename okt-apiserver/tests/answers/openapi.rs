//! Reads the schemas that kubectl reads, in protobuf, as a real API server (kube-apiserver 1.36.1) sends them.

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use okt_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::support::{CRDS, crd, post};

/// A field of a protobuf message: a number and its bytes. All fields of an `OpenAPI` document that kubectl reads are
/// texts or messages.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn number<'b>(bytes: &mut &'b [u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let (first, rest): (&'b u8, &'b [u8]) = bytes.split_first().expect("a byte");
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        assert_eq!(key & 7, 2, "a text or a message");
        let length = usize::try_from(number(&mut bytes)).expect("a length");
        let (value, rest) = bytes.split_at(length);
        fields.push((key >> 3, value));
        bytes = rest;
    }
    fields
}

/// Returns the first field with a number; an empty one if there is none.
fn field(message: &[u8], number: u64) -> &[u8] {
    let mut fields = fields(message).into_iter();
    let found = fields.find(|(found, _)| *found == number);
    found.map(|(_, value)| value).unwrap_or_default()
}

/// Returns the value of a named pair in a list of pairs.
fn named<'b>(list: &'b [u8], name: &str) -> &'b [u8] {
    let mut pairs = fields(list).into_iter().map(|(_, pair)| pair);
    let pair = pairs.find(|pair| field(pair, 1) == name.as_bytes());
    field(pair.unwrap_or_else(|| panic!("no {name}")), 2)
}

#[tokio::test]
async fn kubectl_gets_openapi_v2_in_protobuf() {
    const ALL: u64 = 9;
    const REQUIRED: u64 = 19;
    const TYPE: u64 = 22;
    const ITEMS: u64 = 23;
    const PROPERTIES: u64 = 25;
    const EXTENSION: u64 = 31;
    let server = ApiServer::new();
    let spec = json!({
        "type": "object",
        "required": ["color", "maybe"],
        "properties": {
            "color": { "type": "string", "description": "d".repeat(200) },
            "ports": { "type": "array", "items": { "type": "integer" } },
            "maybe": { "type": "object", "nullable": true, "properties": { "a": { "type": "string" } } },
            "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        },
    });
    let crd = crd(&json!({ "type": "object", "properties": { "spec": spec } }));
    assert_eq!(post(&server, CRDS, &crd).await.0, 201);
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let request = Request::get("/openapi/v2").header("accept", accept);
    let request = request.body(Body::empty()).expect("a request");
    let answer = server.client().send(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!(head.headers["content-type"], media);
    let document = body.collect().await.expect("a body").to_bytes();
    assert_eq!(field(&document, 1), b"2.0");

    let thing = named(field(&document, ALL), "dev.okt.rules.v1.Thing");
    let kinds = field(field(field(thing, EXTENSION), 2), 2);
    let kinds: Value = serde_json::from_slice(kinds).expect("JSON");
    assert_eq!(
        kinds,
        json!([{ "group": "rules.okt.dev", "version": "v1", "kind": "Thing" }])
    );
    let spec = named(field(thing, PROPERTIES), "spec");
    assert_eq!(field(field(spec, TYPE), 1), b"object");
    // What may be null is not required, because kubectl knows no null.
    let required: Vec<_> = fields(spec)
        .into_iter()
        .filter(|(number, _)| *number == REQUIRED)
        .collect();
    assert_eq!(required, [(REQUIRED, &b"color"[..])]);
    let of = |name: &str| named(field(spec, PROPERTIES), name);
    assert_eq!(field(field(of("color"), TYPE), 1), b"string");
    assert_eq!(field(of("color"), 4), "d".repeat(200).as_bytes());
    let items = field(field(of("ports"), ITEMS), 1);
    assert_eq!(field(field(items, TYPE), 1), b"integer");
    for name in ["maybe", "open"] {
        assert_eq!(of(name), b"", "{name}");
    }
    // kubectl must not check the fields of built-in kinds, which are not known here.
    let map = named(field(&document, ALL), "v1.ConfigMap");
    assert_eq!(
        (field(map, TYPE), field(map, PROPERTIES)),
        (&b""[..], &b""[..])
    );
}
