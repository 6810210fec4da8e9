//! Rule 1: what a request must be like, whatever it asks for.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::super::output::cut;
use super::Front;
use crate::wire::{ActionId, ActionRequest, BODY_LIMIT, Code, Problem};

impl Front {
    /// Reads a body of bounded length, in bounded time.
    pub(super) async fn body<T: DeserializeOwned>(&self, request: Request) -> Result<T, Problem> {
        let (parts, body) = request.into_parts();
        json_by_its_headers(&parts.headers)?;
        let limit = self.settings.request_limit;
        let bytes = timeout(limit, Limited::new(body, BODY_LIMIT).collect())
            .await
            .map_err(|_| {
                let detail = format!("the body did not arrive within {limit:?}");
                Problem::new(Code::TooSlow, detail)
            })?
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    too_large()
                } else {
                    Problem::new(Code::BadRequest, format!("the body is broken off: {error}"))
                }
            })?
            .to_bytes();
        let read = parse(&bytes);
        read.map_err(|why| {
            // It quotes what was sent, which may be long.
            let detail = cut(format!("the body is not right: {why}"), 1024);
            Problem::new(Code::BadRequest, detail)
        })
    }
}

fn json_by_its_headers(headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(kind) = headers.get(CONTENT_TYPE) {
        let essence = (kind.to_str().unwrap_or_default())
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        if essence != "application/json" && !essence.ends_with("+json") {
            let detail = "the body has to be application/json";
            return Err(Problem::new(Code::UnsupportedMediaType, detail));
        }
    }
    // What is said to be too long need not be read.
    let length = (headers.get(CONTENT_LENGTH))
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > BODY_LIMIT as u64) {
        return Err(too_large());
    }
    Ok(())
}

/// Reads JSON; an error names the place.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| error.to_string())?;
    json.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// What is answered and recorded again and again must be short, the input apart.
pub(super) fn bounded(request: &ActionRequest) -> Result<(), Problem> {
    let mut texts = vec![
        ("state", request.state.as_str(), 1, 128),
        ("owner.uid", &request.owner.uid, 1, 128),
        ("owner.name", &request.owner.name, 0, 253),
        ("owner.namespace", &request.owner.namespace, 0, 253),
        (
            "graph",
            request.graph.as_deref().unwrap_or_default(),
            0,
            256,
        ),
    ];
    texts.extend((request.from.iter()).map(|state| ("from", state.as_str(), 1, 128)));
    for (field, text, least, most) in texts {
        if !(least..=most).contains(&text.len()) {
            let detail = format!("{field} has to be {least} to {most} bytes long");
            return Err(Problem::new(Code::BadRequest, detail));
        }
    }
    if request.from.len() > 1024 {
        return Err(Problem::new(Code::BadRequest, "from names too many states"));
    }
    Ok(())
}

/// The id in a path.
pub(super) fn action_id(id: Result<Path<String>, PathRejection>) -> Result<ActionId, Problem> {
    let bad = |error: String| Problem::new(Code::BadRequest, error);
    let Path(id) = id.map_err(|error| bad(error.body_text()))?;
    id.parse::<ActionId>()
        .map_err(|error| bad(error.to_string()))
}

/// What is wrong with the part of a path that follows the question mark.
#[expect(clippy::needless_pass_by_value, reason = "it is used in map_err")]
pub(super) fn bad_query(error: QueryRejection) -> Problem {
    Problem::new(Code::BadRequest, error.body_text())
}

fn too_large() -> Problem {
    let detail = format!("the body is longer than {BODY_LIMIT} bytes");
    Problem::new(Code::TooLarge, detail)
}
