//! Sends requests to one of the two servers, and maps its versions and uids.

use std::collections::BTreeMap;

use http::{Request, header};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::normal::normalise;
use crate::operation::{Operation, Slot};

/// One of the two servers, as a lane sees it.
pub(crate) struct Side {
    pub(crate) client: Client,
    pub(crate) names: Names,
    marks: Regex,
}

/// The versions and uids of a server.
#[derive(Default)]
pub(crate) struct Names {
    versions: BTreeMap<Slot, Vec<String>>,
    uids: BTreeMap<Slot, Vec<String>>,
    /// The normalized uids, by uid.
    owners: BTreeMap<String, String>,
}

/// The answer of a server, in normalized form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
    /// The token of the next page.
    pub(crate) next: Next,
    /// The name that the server generated.
    pub(crate) generated: Next,
}

/// A server-specific token; two of them are equal if both or neither exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Next(pub(crate) Option<String>);

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_some() == other.0.is_some()
    }
}

impl Names {
    /// Returns the number of a version of an object, by order of appearance.
    pub(crate) fn version(&mut self, slot: &Slot, version: &str) -> String {
        number(
            self.versions.entry(slot.clone()).or_default(),
            version,
            "version",
        )
    }

    pub(crate) fn uid(&mut self, slot: &Slot, uid: &str) -> String {
        let text = number(self.uids.entry(slot.clone()).or_default(), uid, "uid");
        let named = format!("{slot} {text}");
        self.owners.insert(uid.to_owned(), named.clone());
        named
    }

    /// Returns the normalized uid of any object.
    pub(crate) fn known_uid(&self, uid: &str) -> Option<&String> {
        self.owners.get(uid)
    }

    /// Returns all known uids with their normalized forms.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&String, &String)> {
        self.owners.iter()
    }

    /// Returns the number of a known version.
    pub(crate) fn known_version(&self, slot: &Slot, version: &str) -> Option<String> {
        let seen = self.versions.get(slot)?;
        let place = seen.iter().position(|other| other == version)?;
        Some(format!("version {place}"))
    }

    pub(crate) fn forget(&mut self, slot: &Slot) {
        self.versions.remove(slot);
        self.uids.remove(slot);
    }

    fn resolve(&self, mark: &Captures<'_>) -> String {
        let slot = Slot {
            plural: mark[2].to_owned(),
            name: mark[3].to_owned(),
        };
        let back: usize = mark[4].parse().unwrap_or(1);
        let (seen, none) = match &mark[1] {
            "v" => (self.versions.get(&slot), "1"),
            _ => (self.uids.get(&slot), "00000000-0000-4000-8000-999999999999"),
        };
        seen.and_then(|seen| seen.get(seen.len().checked_sub(back)?))
            .map_or_else(|| none.to_owned(), Clone::clone)
    }
}

fn number(seen: &mut Vec<String>, value: &str, what: &str) -> String {
    let place = seen
        .iter()
        .position(|other| other == value)
        .unwrap_or_else(|| {
            seen.push(value.to_owned());
            seen.len() - 1
        });
    format!("{what} {place}")
}

impl Side {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            names: Names::default(),
            marks: Regex::new(r"@([vu]):([^:@/]+)/([^:@]+):(\d+)@").expect("the pattern is right"),
        }
    }

    /// Replaces the marks of a text by this server's values.
    pub(crate) fn render(&self, text: &str) -> String {
        self.marks
            .replace_all(text, |mark: &Captures<'_>| self.names.resolve(mark))
            .into_owned()
    }

    fn query(&self, operation: &Operation, next: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (key, value) in &operation.query {
            query.append_pair(key, &self.render(value));
        }
        if let Some(next) = next {
            query.append_pair("continue", next);
        }
        query.finish()
    }

    /// Sends a request without normalizing the answer.
    pub(crate) async fn send(
        &self,
        operation: &Operation,
        next: Option<&str>,
    ) -> (u16, Vec<String>, Value) {
        let query = self.query(operation, next);
        let uri = if query.is_empty() {
            operation.path.clone()
        } else {
            format!("{}?{query}", operation.path)
        };
        let body = operation
            .body
            .as_ref()
            .map_or_else(Vec::new, |body| self.render(&body.to_string()).into_bytes());
        let mut request = Request::builder()
            .method(operation.method)
            .uri(uri)
            .header(header::USER_AGENT, "differential/1")
            .header(header::ACCEPT, operation.accept);
        if operation.body.is_some() {
            request = request.header(header::CONTENT_TYPE, operation.media);
        }
        let request = request
            .body(Body::from(body))
            .expect("the request is well formed");
        let response = self.client.send(request).await.expect("the server answers");
        let (parts, body) = response.into_parts();
        let warnings = parts.headers.get_all(header::WARNING).iter();
        let mut warnings: Vec<_> = warnings
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        warnings.sort();
        let body = body
            .collect()
            .await
            .expect("the body is complete")
            .to_bytes();
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body).into_owned()));
        (parts.status.as_u16(), warnings, body)
    }

    /// Waits until the server's cache has the newest version of an object that is to be written.
    ///
    /// A server compares a write with its cache, and only if that is old with the stored object. So right after another
    /// write, it is random whether a write counts as a change.
    pub(crate) async fn catch_up(&self, operation: &Operation) {
        if matches!(operation.method, "GET" | "POST") {
            return;
        }
        let Some(slot) = &operation.slot else { return };
        let seen = self.names.versions.get(slot).into_iter().flatten();
        let newest = seen.filter_map(|version| version.parse::<u64>().ok()).max();
        let Some(newest) = newest else { return };
        let path = operation
            .path
            .trim_end_matches(&format!("/{}", operation.door()));
        let read = Operation {
            method: "GET",
            path: path.to_owned(),
            query: vec![("resourceVersion", newest.to_string())],
            body: None,
            ..operation.clone()
        };
        self.send(&read, None).await;
    }

    /// Runs an operation and normalizes its answer.
    pub(crate) async fn perform(&mut self, operation: &Operation, next: Option<&str>) -> Answer {
        let (code, warnings, mut body) = self.send(operation, next).await;
        let token = body
            .pointer("/metadata/continue")
            .and_then(Value::as_str)
            .filter(|token| !token.is_empty())
            .map(str::to_owned);
        let generated = body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .filter(|_| operation.verb == "create generated" && code == 201 && !operation.dry_run())
            .map(str::to_owned);
        normalise(
            &mut self.names,
            &operation.plural,
            operation.slot.as_ref(),
            &mut body,
        );
        Answer {
            code,
            warnings,
            body,
            next: Next(token),
            generated: Next(generated),
        }
    }
}
