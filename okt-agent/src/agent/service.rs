//! The paths of the protocol and their handlers.

mod problem;
mod request;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{MatchedPath, Path, Query, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{MethodRouter, get, put};
use serde::Deserialize;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use self::request::{action_id, bad_query, bounded, traceparent};
use super::board::Board;
use super::body::BodyPermits;
use super::command::{ActorRequest, Command};
use super::metrics::Metrics;
use super::settings::AgentSettings;
use super::token::TokenHash;
use crate::wire::{
    Acknowledgement, ActionRequest, Actions, AgentStatus, Code, Problem, VERSION, Versions,
    WAIT_LIMIT,
};

/// The state that the handlers use.
#[derive(Debug)]
pub(super) struct ServiceState {
    pub(super) settings: Arc<AgentSettings>,
    pub(super) boot_id: String,
    /// The offered states, sorted by name.
    pub(super) states: Vec<String>,
    pub(super) board: watch::Receiver<Board>,
    pub(super) requests: mpsc::Sender<ActorRequest>,
    pub(super) metrics: Arc<Metrics>,
    /// One permit for each request that may wait for the end of an action.
    pub(super) waits: Semaphore,
    pub(super) permits: BodyPermits,
}

/// Who may use a listener.
#[derive(Clone, Debug)]
pub(super) enum ServiceAccess {
    /// Everyone who can connect.
    Open,
    /// Requests that name this machine as their host. A foreign name could lead a browser on the machine to the agent.
    ThisMachine,
    /// Requests that carry the token.
    Token(Arc<TokenHash>),
}

type Answer = Result<Response, Problem>;

/// Returns all paths with their handlers.
pub(super) fn paths() -> Vec<(&'static str, MethodRouter<Arc<ServiceState>>)> {
    vec![
        ("/lifecycle", get(versions)),
        ("/lifecycle/v1/status", get(status)),
        ("/lifecycle/v1/actions", get(actions)),
        (
            "/lifecycle/v1/actions/{id}",
            put(ask).get(action).delete(cancel),
        ),
        (
            "/lifecycle/v1/actions/{id}/acknowledgement",
            put(acknowledge),
        ),
        ("/lifecycle/v1/actions/{id}/output", get(output)),
        ("/livez", get(livez)),
        ("/readyz", get(readyz)),
        ("/metrics", get(metrics)),
    ]
}

/// Returns the service of one listener.
pub(super) fn router(service: Arc<ServiceState>, access: ServiceAccess) -> Router {
    let mut router = Router::new();
    for (path, methods) in paths() {
        router = router.route(path, methods);
    }
    router
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .layer(from_fn_with_state(
            (Arc::clone(&service), access),
            authorize,
        ))
        .with_state(service)
}

/// Checks who may use the listener, and counts the request.
async fn authorize(
    State((service, access)): State<(Arc<ServiceState>, ServiceAccess)>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    };
    let path = path.as_ref().map_or("other", MatchedPath::as_str);
    let is_health = matches!(path, "/livez" | "/readyz");
    let refused = match &access {
        ServiceAccess::Token(token) if !is_health && !token.admits(request.headers()) => {
            let detail = "a bearer token is needed, and the one that was given is not it";
            Some(Problem::new(Code::Unauthorized, detail))
        }
        ServiceAccess::ThisMachine if !request::is_for_this_machine(&request) => {
            let detail =
                "without a token only requests to localhost, 127.0.0.1 or [::1] are answered";
            Some(Problem::new(Code::ForeignHost, detail))
        }
        ServiceAccess::Open | ServiceAccess::ThisMachine | ServiceAccess::Token(_) => None,
    };
    let query = request.uri().query().unwrap_or_default();
    let waits = query.contains("wait=");
    let answer = match refused {
        None => next.run(request).await,
        Some(problem) => problem.into_response(),
    };
    let took = (!waits).then(|| begun.elapsed());
    let status = answer.status().as_u16();
    service.metrics.answered(method, path, status, took);
    answer
}

async fn versions() -> Json<Versions> {
    Json(Versions {
        versions: vec![VERSION.to_owned()],
    })
}

async fn livez() -> &'static str {
    "ok\n"
}

async fn readyz(State(service): State<Arc<ServiceState>>) -> Answer {
    match service.board.borrow().unready() {
        Some(problem) => Err(problem),
        None => Ok("ok\n".into_response()),
    }
}

async fn metrics(State(service): State<Arc<ServiceState>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], service.metrics.text()).into_response()
}

async fn status(State(service): State<Arc<ServiceState>>) -> Json<AgentStatus> {
    Json(service.status())
}

async fn actions(State(service): State<Arc<ServiceState>>) -> Answer {
    let board = service.board.borrow();
    let known = board.known()?.actions().iter().rev();
    let actions = known.map(|action| board.report_of(action)).collect();
    Ok(Json(Actions { actions }).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitQuery {
    #[serde(default)]
    wait: u64,
}

async fn action(
    State(service): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<WaitQuery>, QueryRejection>,
) -> Answer {
    let id = action_id(id)?;
    let Query(WaitQuery { wait }) = query.map_err(bad_query)?;
    let first = service.board.borrow().report(&id)?;
    if wait == 0 || first.phase.is_final() {
        return Ok(Json(first).into_response());
    }
    let Ok(_waiting) = service.waits.try_acquire() else {
        let detail = format!("{} requests wait for an end", service.settings.waits);
        return Err(Problem::new(Code::Overloaded, detail));
    };
    let mut board = service.board.clone();
    let limit = Duration::from_secs(wait.min(WAIT_LIMIT));
    let news = board.wait_for(|board| {
        let action = board.memory.action(&id);
        action.is_none_or(|it| it.report.attempt != first.attempt || it.report.phase.is_final())
    });
    // The action has ended, the time is over, or the agent has stopped: answer with the known report.
    let _ = timeout(limit, news).await;
    let report = service.board.borrow().report(&id)?;
    Ok(Json(report).into_response())
}

async fn ask(
    State(service): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answer {
    let id = action_id(id)?;
    let traceparent = traceparent(request.headers());
    let (request, permit): (ActionRequest, _) = service.permits.read(request).await?;
    bounded(&request)?;
    let command = Command::Ask {
        id,
        request: Box::new(request),
        traceparent,
        permit,
    };
    service.change(command, StatusCode::CREATED).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EpochQuery {
    #[serde(default)]
    epoch: u64,
}

async fn cancel(
    State(service): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<EpochQuery>, QueryRejection>,
) -> Answer {
    let id = action_id(id)?;
    let Query(EpochQuery { epoch }) = query.map_err(bad_query)?;
    let command = Command::Cancel { id, epoch };
    service.change(command, StatusCode::ACCEPTED).await
}

async fn acknowledge(
    State(service): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    request: Request,
) -> Answer {
    let id = action_id(id)?;
    let (acknowledgement, _): (Acknowledgement, _) = service.permits.read(request).await?;
    let command = Command::Acknowledge {
        id,
        acknowledgement,
    };
    service.change(command, StatusCode::OK).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromQuery {
    #[serde(default)]
    from: u64,
}

async fn output(
    State(service): State<Arc<ServiceState>>,
    id: Result<Path<String>, PathRejection>,
    query: Result<Query<FromQuery>, QueryRejection>,
) -> Answer {
    let id = action_id(id)?;
    let Query(FromQuery { from }) = query.map_err(bad_query)?;
    let board = service.board.borrow();
    let action = board.action(&id)?;
    let (from, bytes, total, gap) = if let Some(live) = board.live(&id) {
        let piece = live.output().piece(from);
        (piece.from, piece.bytes, piece.total, piece.gap)
    } else {
        // The output is from an earlier agent, or too old to be kept.
        let total = action.report.output_bytes;
        (total, Vec::new(), total, total)
    };
    let kind = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
    let range = [
        ("okt-output-from", from),
        ("okt-output-to", from + bytes.len() as u64),
        ("okt-output-total", total),
        ("okt-output-gap", gap),
    ];
    Ok((kind, range, bytes).into_response())
}

async fn method_not_allowed(request: Request) -> Problem {
    let detail = format!("{} is not for this path", request.method());
    Problem::new(Code::MethodNotAllowed, detail)
}

async fn not_found(request: Request) -> Problem {
    let below = request.uri().path().strip_prefix("/lifecycle/");
    let version = below.and_then(|rest| rest.split('/').next());
    if version.is_none_or(|version| version.is_empty() || version == VERSION) {
        return Problem::new(Code::NotFound, "nothing is under this path");
    }
    let detail = format!("this agent speaks {VERSION}");
    Problem::new(Code::UnsupportedVersion, detail)
}

impl ServiceState {
    fn status(&self) -> AgentStatus {
        let board = self.board.borrow();
        let last = board.memory.actions().last();
        AgentStatus {
            agent: self.settings.agent.clone(),
            boot_id: self.boot_id.clone(),
            graph: self.settings.graph.clone(),
            states: self.states.clone(),
            application: board.seen(),
            action: last.map(|action| board.report_of(action)),
            object: board.memory.object(self.settings.object.as_ref()),
            owner: board.memory.owner.clone(),
            fence: board.memory.fence,
        }
    }

    /// Has the actor carry out a command. The answer has the status `begun` if that has begun something.
    async fn change(&self, command: Command, begun: StatusCode) -> Answer {
        let gone = || Problem::new(Code::Stopping, "the agent has stopped");
        let (reply, answer) = oneshot::channel();
        let request = ActorRequest::Command { command, reply };
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                TrySendError::Full(_) => {
                    Problem::new(Code::Overloaded, "too many requests wait for the disk")
                }
                TrySendError::Closed(_) => gone(),
            })?;
        let limit = self.settings.request_limit;
        let Ok(answer) = timeout(limit, answer).await else {
            let detail = format!("nothing was recorded within {limit:?}; ask again for the result");
            return Err(Problem::new(Code::Overloaded, detail));
        };
        let (has_begun, report) = answer.map_err(|_| gone())??;
        let status = if has_begun { begun } else { StatusCode::OK };
        Ok((status, Json(report)).into_response())
    }
}
