//! [`Reply`]: the response to a request, and what a test expects of it.

use http::HeaderMap;
use serde_json::Value;

/// A response of any status.
#[derive(Debug)]
pub(crate) struct Reply {
    /// The method and the path of the request.
    pub(crate) request: String,
    /// The group of the widgets, which messages contain.
    pub(crate) group: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Reply {
    /// Returns the object of a request that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        let is_good = (200..300).contains(&self.code);
        assert!(is_good, "{}: {} {}", self.request, self.code, self.body);
        self.json()
    }

    /// Checks the code and the message of a refusal, and the reason that belongs to the code; returns the `Status`.
    ///
    /// The message is whole, or has gaps (`…`). The group of the widgets is written as `demo.okt.dev`.
    #[track_caller]
    pub(crate) fn refused(&self, code: u16, message: &str) -> Value {
        let found = self.message();
        assert!(
            self.code == code && fits(&found, message),
            "{}\n  is:       {} {found}\n  expected: {code} {message}",
            self.request,
            self.code,
        );
        let status: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let reasons = reasons(code);
        let reason = status["reason"].as_str().unwrap_or_default();
        let is_known = status.is_null() || reasons.is_empty() || reasons.contains(&reason);
        assert!(is_known, "{}: {code} {reason}", self.request);
        status
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let json = serde_json::from_str(&self.body);
        json.unwrap_or_else(|error| panic!("{}: {error}: {}", self.request, self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("a text"))
    }

    /// Returns the events of a watch.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let lines = self.body.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("an event"))
            .collect()
    }

    /// Returns the message of a `Status`, or the text of another body.
    fn message(&self) -> String {
        let status: Option<Value> = serde_json::from_str(&self.body).ok();
        let message = status.as_ref().map(|status| &status["message"]);
        let message = message.and_then(Value::as_str).unwrap_or(&self.body);
        message.trim_end().replace(&self.group, "demo.okt.dev")
    }
}

/// Returns the reasons that a refusal with a code may have; none if any will do.
fn reasons(code: u16) -> &'static [&'static str] {
    match code {
        400 => &["BadRequest"],
        403 => &["Forbidden"],
        404 => &["NotFound"],
        405 => &["MethodNotAllowed"],
        406 => &["NotAcceptable"],
        409 => &["AlreadyExists", "Conflict"],
        410 => &["Expired"],
        413 => &["RequestEntityTooLarge"],
        415 => &["UnsupportedMediaType"],
        422 => &["Invalid"],
        504 => &["Timeout"],
        _ => &[],
    }
}

/// Returns whether a text fits a pattern with gaps.
pub(crate) fn fits(text: &str, pattern: &str) -> bool {
    let (start, rest) = pattern.split_once('…').unwrap_or((pattern, ""));
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    if !pattern.contains('…') {
        return text.is_empty();
    }
    let (middle, end) = rest.rsplit_once('…').unwrap_or(("", rest));
    for part in middle.split('…') {
        match text.split_once(part) {
            Some((_, after)) if !part.is_empty() => text = after,
            None => return false,
            Some(_) => {}
        }
    }
    text.ends_with(end)
}
