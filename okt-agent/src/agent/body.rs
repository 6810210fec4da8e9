//! Request bodies: read with a time limit, and so few at once that they need little memory.
//!
//! A body may be long and arrive slowly, and its values in memory are far larger than its text.
//! Both have a limited number of permits. Only requests that need a permit wait for one.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::connections::Busy;
use crate::wire::{BODY_LIMIT, Code, Problem, VALUES_LIMIT};

/// A body that is longer, in bytes, needs a permit.
const SMALL: usize = 8 * 1024;

/// How much of a body that is too long is read and dropped, in bytes.
const DRAINED: usize = 4 * BODY_LIMIT;

/// The number of longer bodies that are read at once.
const LARGE_AT_ONCE: usize = 8;

/// The limit for the total length of the bodies whose requests are being handled, in bytes. A longer body is handled
/// alone.
///
/// The densest JSON takes a hundred times as much memory as text.
const ASKED_AT_ONCE: usize = 64 * 1024;

/// The permits for bodies.
#[derive(Debug)]
pub(super) struct BodyPermits {
    /// How long a body may take to arrive.
    limit: Duration,
    large: Semaphore,
    asked: Arc<Semaphore>,
}

/// A permit for a request that is being handled. It is held until the answer.
pub(super) type BodyPermit = OwnedSemaphorePermit;

impl BodyPermits {
    /// Creates permits that are all free.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            large: Semaphore::new(LARGE_AT_ONCE),
            asked: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
        }
    }

    /// Reads and decodes the body of a request, limited in length and time. The caller must keep the permit as long as
    /// the decoded value.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<(T, BodyPermit), Problem> {
        let (parts, mut body) = request.into_parts();
        let deadline = Instant::now() + self.limit;
        json_by_its_headers(&parts.headers)?;
        if is_too_large(&parts.headers) {
            drain(&mut body, deadline).await;
            return Err(too_large());
        }
        let (bytes, large) = self.bytes(&mut body, deadline).await?;
        if let Some(busy) = parts.extensions.get::<Arc<Busy>>() {
            busy.arrived();
        }
        if values(&bytes) > VALUES_LIMIT {
            let detail = format!("the body holds more than {VALUES_LIMIT} values");
            return Err(Problem::new(Code::TooLarge, detail));
        }
        let weight = u32::try_from(bytes.len().min(ASKED_AT_ONCE)).unwrap_or(u32::MAX);
        let asked = Arc::clone(&self.asked).acquire_many_owned(weight);
        let Ok(Ok(permit)) = timeout_at(deadline, asked).await else {
            return Err(crowded());
        };
        let read = parse(&bytes);
        drop((bytes, large));
        let read = read.map_err(|why| {
            let detail = format!("the body is not right: {why}");
            Problem::new(Code::BadRequest, detail)
        })?;
        Ok((read, permit))
    }

    /// Reads a whole body, and takes a permit if the body needs one.
    async fn bytes(
        &self,
        body: &mut Body,
        deadline: Instant,
    ) -> Result<(Vec<u8>, Option<SemaphorePermit<'_>>), Problem> {
        let mut limited = Limited::new(&mut *body, BODY_LIMIT);
        let mut bytes = Vec::new();
        let mut large = None;
        loop {
            let frame = timeout_at(deadline, limited.frame()).await.map_err(|_| {
                let detail = format!("the body did not arrive within {:?}", self.limit);
                Problem::new(Code::TooSlow, detail)
            })?;
            let data = match frame {
                None => return Ok((bytes, large)),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) if error.is::<LengthLimitError>() => {
                    drop((bytes, large));
                    drain(body, deadline).await;
                    return Err(too_large());
                }
                Some(Err(error)) => {
                    let detail = format!("the body is broken off: {error}");
                    return Err(Problem::new(Code::BadRequest, detail));
                }
            };
            if large.is_none() && bytes.len() + data.len() > SMALL {
                let Ok(Ok(permit)) = timeout_at(deadline, self.large.acquire()).await else {
                    return Err(crowded());
                };
                large = Some(permit);
            }
            bytes.extend_from_slice(&data);
        }
    }
}

fn json_by_its_headers(headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if essence != "application/json" && !essence.ends_with("+json") {
            let detail = "the body has to be application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    }
    Ok(())
}

fn is_too_large(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_LENGTH).map(HeaderValue::to_str);
    let length = text.and_then(|text| text.ok()?.parse::<u64>().ok());
    length.is_some_and(|length| length > BODY_LIMIT as u64)
}

/// Reads the rest of a body without keeping it, up to a limit: many clients read an answer only after they have sent
/// their body.
async fn drain(body: &mut Body, deadline: Instant) {
    let mut rest = Limited::new(body, DRAINED);
    let end = async { while let Some(Ok(_)) = rest.frame().await {} };
    // A client that has not sent everything by then may miss the answer.
    let _ = timeout_at(deadline, end).await;
}

/// Decodes JSON. An error names the field.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Returns an upper bound for the number of values in JSON text: each value follows a comma or an opening bracket.
fn values(json: &[u8]) -> usize {
    let mut values = 1;
    let mut quoted = false;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => values += 1,
            _ => {}
        }
    }
    values
}

fn too_large() -> Problem {
    let detail = format!("the body is longer than {BODY_LIMIT} bytes");
    Problem::new(Code::TooLarge, detail)
}

fn crowded() -> Problem {
    Problem::new(Code::Overloaded, "too many large requests at once")
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn values_are_counted_but_not_inside_of_texts() {
        assert_eq!(values(b"1"), 1);
        assert_eq!(values(br#"{"a":[1,2,{"b":null}]}"#), 6);
        assert_eq!(values(br#"{"[,{":"\",[\\","b":","}"#), 3);
        assert_eq!(values(br#""\"#), 1);
    }
}
