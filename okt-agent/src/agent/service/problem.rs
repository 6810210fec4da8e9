//! The HTTP answer of a refusal.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};

use crate::wire::{Code, Problem, cut};

impl IntoResponse for Problem {
    fn into_response(mut self) -> Response {
        // It quotes the request, which may be long.
        self.detail = cut(self.detail);
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut answer = (status, Json(&self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        answer.headers_mut().insert(CONTENT_TYPE, kind);
        if self.code == Code::Unauthorized {
            let bearer = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        answer
    }
}
