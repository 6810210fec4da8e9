//! [`ClientConfig`]: where a webhook is, and [`ConversionWebhook`]: how it is asked.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::causes::Causes;
use crate::object::{self, text};

/// The port of a Service that names none.
const PORT: u64 = 443;
const FORM: &str = "; desired format: https://host[/path]";

/// Where a webhook is, and which certificates are trusted there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientConfig {
    pub(crate) place: WebhookPlace,
    /// Certificates in PEM.
    pub(crate) authorities: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WebhookPlace {
    Url(String),
    Service {
        namespace: String,
        name: String,
        path: String,
        port: u16,
    },
}

impl ClientConfig {
    /// Reads a `clientConfig` that was checked.
    pub(crate) fn read(raw: &Value) -> Self {
        let service = |service: &Value| WebhookPlace::Service {
            namespace: text(service, &["namespace"]).to_owned(),
            name: text(service, &["name"]).to_owned(),
            path: text(service, &["path"]).to_owned(),
            port: u16::try_from(port(service)).unwrap_or_default(),
        };
        let bundle = BASE64_STANDARD.decode(text(raw, &["caBundle"]));
        Self {
            place: given(raw, "service").map_or_else(
                || WebhookPlace::Url(text(raw, &["url"]).to_owned()),
                service,
            ),
            authorities: bundle.unwrap_or_default(),
        }
    }

    /// Checks a `clientConfig` at a path.
    pub(crate) fn check(raw: &Value, path: &str, causes: &mut Causes) {
        match (given(raw, "url"), given(raw, "service")) {
            (Some(url), None) => check_url(url, &format!("{path}.url"), causes),
            (None, Some(service)) => check_service(service, &format!("{path}.service"), causes),
            (None, None) | (Some(_), Some(_)) => {
                causes.required(path, "exactly one of url or service is required");
            }
        }
    }

    /// Returns the address of the webhook as a client shows it.
    pub(crate) fn url(&self) -> String {
        match &self.place {
            WebhookPlace::Url(url) => url.clone(),
            WebhookPlace::Service {
                namespace,
                name,
                path,
                port,
            } => {
                let path = if path.is_empty() { "/" } else { path };
                format!("https://{name}.{namespace}.svc:{port}{path}")
            }
        }
    }
}

/// The webhook that converts the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConversionWebhook {
    pub(crate) client: ClientConfig,
    /// The version of the reviews.
    pub(crate) version: String,
}

impl ConversionWebhook {
    /// Reads the webhook of a CRD, if it has one.
    pub(crate) fn of(crd: &Value) -> Option<Self> {
        if text(crd, &["spec", "conversion", "strategy"]) != "Webhook" {
            return None;
        }
        let webhook = object::at(crd, &["spec", "conversion", "webhook"])?;
        let versions = object::texts(webhook, &["conversionReviewVersions"]);
        Some(Self {
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
            version: known_version(&versions)?.to_owned(),
        })
    }
}

/// Returns the first version of reviews that this server knows.
pub(crate) fn known_version<'v>(versions: &[&'v str]) -> Option<&'v str> {
    let mut versions = versions.iter().copied();
    versions.find(|version| matches!(*version, "v1" | "v1beta1"))
}

fn given<'v>(raw: &'v Value, key: &str) -> Option<&'v Value> {
    raw.get(key).filter(|value| !value.is_null())
}

fn port(service: &Value) -> u64 {
    object::at(service, &["port"])
        .and_then(Value::as_u64)
        .unwrap_or(PORT)
}

fn check_url(url: &Value, path: &str, causes: &mut Causes) {
    let url = url.as_str().unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        causes.invalid(path, scheme, &detail);
    }
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if scheme.is_empty() || host.is_empty() {
        causes.invalid(path, "", &format!("host must be specified{FORM}"));
    }
    if let Some((user, _)) = host.split_once('@') {
        causes.invalid(path, user, "user information is not permitted in the URL");
    }
    if let Some((_, fragment)) = url.split_once('#') {
        causes.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if let Some((_, query)) = url.split_once('?') {
        let detail = "query parameters are not permitted in the URL";
        causes.invalid(path, query, detail);
    }
}

fn check_service(service: &Value, path: &str, causes: &mut Causes) {
    // A real server mistakes one for the other.
    for (key, shown) in [("namespace", "name"), ("name", "namespace")] {
        if text(service, &[key]).is_empty() {
            causes.required(format!("{path}.{shown}"), "");
        }
    }
    let port = port(service);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.invalid(format!("{path}.port"), port, detail);
    }
    let given = text(service, &["path"]);
    if !given.is_empty() && !given.starts_with('/') {
        let detail = "must start with a '/'";
        causes.invalid(format!("{path}.path"), given, detail);
    }
}
