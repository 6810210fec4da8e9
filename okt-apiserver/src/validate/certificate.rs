//! Requests for certificates, and their approval.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::part::CheckedPart;
use crate::causes::{Causes, RefusalCause};
use crate::rules;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Checks a request and its conditions.
pub(super) fn request(request: &CheckedPart<'_>, causes: &mut Causes) {
    let spec = request.field("spec");
    let body = spec.field("request");
    // The signature is not checked.
    if !has_block(&body, "CERTIFICATE REQUEST") {
        body.invalid("PEM block type must be CERTIFICATE REQUEST", causes);
    }
    let usages = spec.field("usages");
    usages.require("", causes);
    for usage in usages.items() {
        usage.supported(USAGES, causes);
    }
    let mut seen = BTreeSet::new();
    for usage in usages.items().filter(|it| !seen.insert(it.text())) {
        causes.duplicate(&*usage.path, usage.value);
    }
    check_signer(&spec.field("signerName"), causes);
    let expiration = spec.field("expirationSeconds");
    if expiration.is_set() && expiration.number() < 600 {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        expiration.invalid(detail, causes);
    }
    check_conditions(&request.field("status.conditions"), causes);
    let certificate = request.field("status.certificate");
    if !certificate.is_empty() && !has_block(&certificate, "CERTIFICATE") {
        let detail = "must contain at least one CERTIFICATE PEM block";
        causes.invalid(&*certificate.path, "<certificate data>", detail);
    }
}

/// Whether bytes contain a block of PEM of this type.
fn has_block(bytes: &CheckedPart<'_>, kind: &str) -> bool {
    let pem = BASE64_STANDARD.decode(bytes.text()).unwrap_or_default();
    String::from_utf8_lossy(&pem).contains(&format!("-----BEGIN {kind}-----"))
}

fn check_signer(signer: &CheckedPart<'_>, causes: &mut Causes) {
    let Some((domain, name)) = signer
        .text()
        .split_once('/')
        .filter(|(_, name)| !name.contains('/'))
    else {
        if signer.is_empty() {
            signer.require("", causes);
        } else {
            let detail =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            signer.invalid(detail, causes);
        }
        return;
    };
    let first_wrong = |text: &str, check: fn(&str, &str, &mut Causes), causes: &mut Causes| {
        for label in text.split('.') {
            let mut found = Causes::default();
            check(&signer.path, label, &mut found);
            if let Some(RefusalCause { message, .. }) = found.first() {
                let why = message.split_once(": ").map_or("", |(_, rest)| rest);
                let why = why.split_once(": ").map_or(why, |(_, why)| why);
                let label = Value::from(label);
                causes.invalid(
                    &*signer.path,
                    text,
                    &format!("validating label {label}: {why}"),
                );
                return;
            }
        }
    };
    first_wrong(domain, rules::check_dns_label, causes);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.invalid(&*signer.path, domain, detail);
    }
    first_wrong(name, rules::check_dns_subdomain, causes);
}

fn check_conditions(conditions: &CheckedPart<'_>, causes: &mut Causes) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let (kind, status) = (condition.field("type"), condition.field("status"));
        kind.require("", causes);
        match kind.text() {
            "Approved" | "Denied" | "Failed" => status.one_of(&["True"], causes),
            _ => status.one_of(&["False", "True", "Unknown"], causes),
        }
        let other = match kind.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if seen.contains(other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            causes.invalid(&*conditions.path, kind.text(), detail);
        }
        if !seen.insert(kind.text()) {
            causes.duplicate(&*kind.path, kind.text());
        }
    }
}

/// Checks what an update must keep; the endpoint `approval` may approve and deny, `status` may set the certificate.
pub(super) fn check_change(
    old: &CheckedPart<'_>,
    new: &CheckedPart<'_>,
    approves: bool,
    causes: &mut Causes,
) {
    let path = "status.conditions";
    let of = |request: &CheckedPart<'_>, kind: &str| -> Vec<Value> {
        let all = request.field(path);
        let all = all.items().filter(|it| it.field("type").text() == kind);
        all.map(|it| it.value.clone()).collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if of(new, kind).len() < of(old, kind).len() {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            causes.forbidden(path, &detail);
        }
    }
    for kind in ["Approved", "Denied"].into_iter().filter(|_| !approves) {
        if of(new, kind).len() > of(old, kind).len() {
            let detail = format!("updates may not add a condition of type \"{kind}\"");
            causes.forbidden(path, &detail);
        }
    }
    let (before, certificate) = (
        old.field("status.certificate"),
        new.field("status.certificate"),
    );
    if !before.is_empty() && before.value != certificate.value {
        certificate.forbid(
            "updates may not modify existing certificate content",
            causes,
        );
    }
}
