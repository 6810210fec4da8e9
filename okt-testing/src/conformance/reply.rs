//! [`RawReply`]: the response to a raw request.

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use super::claim::{Failure, Given};

/// A response of any status.
#[derive(Debug)]
pub(super) struct RawReply {
    pub(super) code: u16,
    headers: http::HeaderMap,
    body: Bytes,
}

impl RawReply {
    pub(super) async fn read(answer: http::Response<Body>) -> Result<Self, Failure> {
        let (head, body) = answer.into_parts();
        Ok(Self {
            code: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        Ok(serde_json::from_slice(&self.body)?)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// Returns the events of a watch.
    pub(super) fn lines(&self) -> Result<Vec<Value>, Failure> {
        let lines = self.body.split(|byte| *byte == b'\n');
        let events = lines.filter(|line| !line.is_empty());
        Ok(events
            .map(serde_json::from_slice)
            .collect::<Result<_, _>>()?)
    }

    /// Returns the message of a `Status`.
    pub(super) fn message(&self) -> Result<String, Failure> {
        Ok(self.json()?["message"].as_str().given()?.to_owned())
    }
}
