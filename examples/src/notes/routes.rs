//! This file serves the requests that write and read documents.

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};

use super::error::{StoreError, sentence};
use super::library::{Added, Library};
use super::store::Store;
use super::wire::{BOOT_HEADER, Count, NewDocument, Problem};

/// The size limit of a request, in bytes: more than the largest body that can be configured, with its JSON.
const REQUEST_BYTES: usize = 20 << 20;
const TITLE_CHARS: usize = 200;
const DEFAULT_LIMIT: u16 = 100;
const MAXIMUM_LIMIT: u16 = 1000;

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) boot_id: String,
    pub(super) library: Arc<Library>,
}

/// Returns the routes of the server.
pub(super) fn router(desk: Arc<Desk>) -> Router {
    Router::new()
        .route("/documents", post(add).get(list))
        .route("/documents/count", get(count))
        .route("/documents/{id}", get(read))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "there is nothing here") })
        .method_not_allowed_fallback(|| async {
            refuse(
                StatusCode::METHOD_NOT_ALLOWED,
                "this method has no meaning here",
            )
        })
        .layer(DefaultBodyLimit::max(REQUEST_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&desk), addressed))
        .with_state(desk)
}

/// An error answer, from any error in a handler.
struct Refusal(Response);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        self.0
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = sentence(&error);
        tracing::error!(error = message, "request failed");
        Self(refuse(StatusCode::INTERNAL_SERVER_ERROR, message))
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        // Invalid JSON and JSON of the wrong shape get the same status.
        let status = match &rejection {
            JsonRejection::JsonSyntaxError(_) | JsonRejection::JsonDataError(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            other => other.status(),
        };
        Self(refuse(status, rejection.body_text()))
    }
}

impl From<QueryRejection> for Refusal {
    fn from(rejection: QueryRejection) -> Self {
        Self(refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            rejection.body_text(),
        ))
    }
}

async fn add(
    State(desk): State<Arc<Desk>>,
    body: Result<Json<NewDocument>, JsonRejection>,
) -> Result<Response, Refusal> {
    let Json(NewDocument { title, body }) = body?;
    let length = title.chars().count();
    if length == 0 || length > TITLE_CHARS {
        let message = format!("the title has {length} characters; use 1 to {TITLE_CHARS}");
        return Ok(refuse(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let length = body.len();
    Ok(match desk.library.add(title, body).await? {
        Added::Kept(document) => {
            let place = [(header::LOCATION, format!("/documents/{}", document.id))];
            (StatusCode::CREATED, place, Json(document)).into_response()
        }
        Added::TooLong(maximum) => {
            let message = format!("the body has {length} bytes; use at most {maximum}");
            refuse(StatusCode::PAYLOAD_TOO_LARGE, message)
        }
        Added::ReadOnly => refuse(
            StatusCode::FORBIDDEN,
            "this notebook is read-only, for ever; use another one",
        ),
        Added::Closed => refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "the server is about to end and takes no documents; try again when it is back",
        ),
    })
}

async fn read(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Result<Response, Refusal> {
    let document = match id.parse() {
        Ok(id) => desk.library.read(move |store| store.get(id)).await?,
        Err(_) => None,
    };
    Ok(match document {
        Some(document) => Json(document).into_response(),
        None => refuse(StatusCode::NOT_FOUND, format!("there is no document {id}")),
    })
}

#[derive(serde::Deserialize)]
struct Range {
    #[serde(default)]
    after: i64,
    limit: Option<u16>,
}

async fn list(
    State(desk): State<Arc<Desk>>,
    range: Result<Query<Range>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(Range { after, limit }) = range?;
    let limit = limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAXIMUM_LIMIT);
    let page = desk
        .library
        .read(move |store| store.list(after, limit))
        .await?;
    Ok(Json(page).into_response())
}

async fn count(State(desk): State<Arc<Desk>>) -> Result<Json<Count>, Refusal> {
    let documents = desk.library.read(Store::count).await?;
    Ok(Json(Count { documents }))
}

/// Passes a request on unless it names another process.
async fn addressed(State(desk): State<Arc<Desk>>, request: Request, next: Next) -> Response {
    match request.headers().get(BOOT_HEADER) {
        Some(boot) if boot.as_bytes() != desk.boot_id.as_bytes() => refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "this request is for another process; read notes.json again",
        ),
        Some(_) | None => next.run(request).await,
    }
}

fn refuse(status: StatusCode, error: impl Into<String>) -> Response {
    (
        status,
        Json(Problem {
            error: error.into(),
        }),
    )
        .into_response()
}
