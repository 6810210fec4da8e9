//! Serves the map over HTTP, and decides who may read it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures::stream;
use jiff::Timestamp;
use okt_serve::{ListenAddress, server};
use okt_wire::scope::with_name;
use okt_wire::texts::api_message;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{sleep_until, timeout};

use super::Map;
use crate::object::View;
use crate::why::Why;

/// The name of the cookie that holds the token.
const COOKIE: &str = "okt-map";

/// How often the stream of changes shows that it is alive.
const ALIVE: Duration = Duration::from_secs(15);

/// How many connections there are at most: each page has a few, and may hold everything for as long as it reads it.
const VIEWERS: usize = 64;

/// The least length of a token, in bytes.
const TOKEN: usize = 16;

/// The headers of each answer: nothing but the page's own files runs, and no other page may show it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// A map that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The address is in use, or the process may not listen on it. A retry helps once that has changed.
    #[error("cannot listen: {0}")]
    Listen(#[from] io::Error),
    /// The address is not only of this machine, so a token decides who may read the map.
    #[error("the map is open to other machines at this address: it needs a token")]
    NoToken,
    /// The token can be guessed, or is no text that a browser can send.
    #[error("a token is at least {TOKEN} letters, digits, `-` and `_`")]
    WeakToken,
}

/// Who may read the map.
#[derive(Clone)]
enum MapAccess {
    /// Whoever is on this machine. A page of another site, whose name leads here, is refused by that name.
    Local,
    /// Whoever knows this token.
    Token(Arc<str>),
}

impl Map {
    /// Serves the map until the returned future is dropped; also returns the address that it is served at.
    ///
    /// Without a token only addresses of this machine are possible. With one, a browser opens `/?token=…` once; the
    /// token is a cookie from then on. The connection is not encrypted: put a proxy with TLS before it.
    ///
    /// # Errors
    ///
    /// [`MapError`]: choose another address or token.
    pub async fn serve(
        &self,
        address: ListenAddress,
        token: Option<String>,
    ) -> Result<(SocketAddr, impl Future<Output = ()> + Send + use<>), MapError> {
        let is_local = matches!(address, ListenAddress::One(address) if address.ip().is_loopback());
        let access = match token {
            Some(token) if is_strong(&token) => MapAccess::Token(token.into()),
            Some(_) => return Err(MapError::WeakToken),
            None if is_local => MapAccess::Local,
            None => return Err(MapError::NoToken),
        };
        let listener = address.bind().await?;
        let address = listener.local_addr()?;
        let served = server(listener, VIEWERS).serve(self.routes(access).into_make_service());
        // It never ends with an error: the server goes on after a connection that failed.
        Ok((address, async move { drop(served.await) }))
    }

    fn routes(&self, access: MapAccess) -> Router {
        let file = |kind: &'static str, text: &'static str| {
            get(move || std::future::ready(([(header::CONTENT_TYPE, kind)], text)))
        };
        Router::new()
            .route(
                "/",
                file("text/html; charset=utf-8", include_str!("page/index.html")),
            )
            .route(
                "/map.css",
                file("text/css; charset=utf-8", include_str!("page/map.css")),
            )
            .route(
                "/map.js",
                file(
                    "text/javascript; charset=utf-8",
                    include_str!("page/map.js"),
                ),
            )
            .route("/events", get(events))
            .route("/objects/{uid}", get(object))
            .with_state(self.clone())
            .layer(from_fn_with_state(access, guarded))
    }
}

fn is_strong(token: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    token.len() >= TOKEN && token.bytes().all(is_plain)
}

/// Refuses requests of others, and sets the headers of the answer.
async fn guarded(State(access): State<MapAccess>, request: Request, next: Next) -> Response {
    let mut response = match access.refusal(request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    };
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

impl MapAccess {
    /// Returns the answer to a request that may read nothing.
    fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
        let text = |name: HeaderName| {
            headers
                .get(name)
                .and_then(|it| it.to_str().ok())
                .unwrap_or("")
        };
        match self {
            Self::Local if is_local(text(header::HOST)) => None,
            Self::Local => {
                let why = "open the map at http://127.0.0.1, under no other name";
                Some((StatusCode::FORBIDDEN, why).into_response())
            }
            Self::Token(token) => {
                let pieces = text(header::COOKIE).split(';');
                let mut cookies = pieces.filter_map(|it| it.trim().split_once('='));
                if cookies.any(|(name, value)| name == COOKIE && is_same(value, token)) {
                    return None;
                }
                let given = uri.query().unwrap_or_default().strip_prefix("token=");
                if given.is_some_and(|given| is_same(given, token)) {
                    let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/");
                    return Some(
                        ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
                    );
                }
                let why = "open the map at /?token=…, with the token that it was started with";
                Some((StatusCode::UNAUTHORIZED, why).into_response())
            }
        }
    }
}

/// Returns whether the name of a host is one of this machine.
fn is_local(host: &str) -> bool {
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else {
        return false;
    };
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|it: std::net::IpAddr| it.is_loopback())
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_same(a: &str, b: &str) -> bool {
    let differing = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

/// All objects, and then each change. The event with all objects is one text for many readers, which the events of axum
/// would copy for each.
async fn events(State(map): State<Map>) -> Response {
    let changes = stream::unfold(None, move |changes| {
        let map = map.clone();
        async move {
            let (event, changes) = next(&map, changes).await;
            Some((Ok::<_, Infallible>(event), changes))
        }
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(changes)).into_response()
}

type Changes = Receiver<Arc<str>>;

/// Returns the next event; a page that is too far behind gets everything anew.
async fn next(map: &Map, changes: Option<Changes>) -> (Bytes, Option<Changes>) {
    if let Some(mut changes) = changes {
        match timeout(ALIVE, changes.recv()).await {
            Ok(Ok(change)) => {
                let event = format!("event: change\ndata: {change}\n\n");
                return (event.into(), Some(changes));
            }
            Ok(Err(RecvError::Lagged(_) | RecvError::Closed)) => {}
            Err(_) => return (Bytes::from_static(b":\n\n"), Some(changes)),
        }
    }
    loop {
        let opened = map.board.lock().open(Timestamp::now());
        match opened {
            Ok((all, changes)) => return (all, Some(changes)),
            Err(later) => sleep_until(later).await,
        }
    }
}

/// One object, as it is now, and why it is there.
async fn object(State(map): State<Map>, Path(uid): Path<String>) -> Response {
    let place = map
        .board
        .lock()
        .point(&uid)
        .map(|point| (point.kind, point.namespace.clone(), point.name.clone()));
    let gone = || (StatusCode::NOT_FOUND, "the object is gone").into_response();
    let Some((number, namespace, name)) = place else {
        return gone();
    };
    let kind = &map.kinds[number];
    let listed = kind
        .list(&map.client, namespace.as_deref(), with_name(&name))
        .await;
    let object = match listed.map(|mut listed| listed.pop()) {
        Ok(Some(object)) => object,
        Ok(None) => return gone(),
        Err(error) => {
            let why = format!("cannot read it: {}", api_message(&error));
            return (StatusCode::BAD_GATEWAY, why).into_response();
        }
    };
    let view = View::of(kind, object);
    let why = Why::of(&map.client, &view, Timestamp::now()).await;
    let all =
        json!({ "details": view.details(), "conditions": view.status.conditions, "why": why });
    (
        [(header::CONTENT_TYPE, "application/json")],
        all.to_string(),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(access: &MapAccess, uri: &str, headers: &[(HeaderName, &str)]) -> StatusCode {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).expect("a value")));
        let refusal = access.refusal(&uri.parse().expect("an address"), &headers.collect());
        refusal.map_or(StatusCode::OK, |refusal| refusal.status())
    }

    #[test]
    fn a_page_of_another_site_reads_nothing_although_its_name_leads_to_this_machine() {
        for (host, status) in [
            ("127.0.0.1:8090", 200),
            ("localhost:1", 200),
            ("[::1]:8090", 200),
            ("127.0.0.2", 200),
            ("evil.example:8090", 403),
            ("localhost.evil.example", 403),
            ("10.0.0.1:8090", 403),
            ("", 403),
        ] {
            let judged = judged(&MapAccess::Local, "/events", &[(header::HOST, host)]);
            assert_eq!(judged.as_u16(), status, "{host}");
        }
        assert_eq!(judged(&MapAccess::Local, "/", &[]), StatusCode::FORBIDDEN);
    }

    #[test]
    fn with_a_token_only_who_knows_it_reads_the_map() {
        let access = MapAccess::Token("0123456789abcdef".into());
        for (uri, cookie, status) in [
            ("/", "", 401),
            ("/?token=0123456789abcdef", "", 303),
            ("/?token=0123456789abcdeF", "", 401),
            ("/?token=0123456789abcdef0", "", 401),
            ("/?token=", "", 401),
            ("/events", "okt-map=0123456789abcdef", 200),
            ("/events", "a=b; okt-map=0123456789abcdef", 200),
            ("/events", "okt-map=", 401),
            ("/events", "other=0123456789abcdef", 401),
        ] {
            let judged = judged(&access, uri, &[(header::COOKIE, cookie)]);
            assert_eq!(judged.as_u16(), status, "{uri} {cookie}");
        }
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused() {
        assert!(is_strong("0123456789abcdef") && is_strong("A-b_0123456789abcdef"));
        assert!(!is_strong("short") && !is_strong("0123456789abcde;") && !is_strong(""));
    }
}
