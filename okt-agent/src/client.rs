//! The client of an agent: one method for each request of the protocol, and a way to drive an action to its end.
//!
//! | content | file |
//! |---|---|
//! | the address of an agent, and how to connect to it | `endpoint`, `token` |
//! | one request and its answer, bounded in size and time | `transport` |
//! | errors, and whether a retry helps | `error` |
//! | driving an action to its end despite faults | `carry` |
//! | the clients of many agents in one process | `clients` |

mod carry;
mod clients;
mod endpoint;
mod error;
mod token;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::Full;
use serde::de::DeserializeOwned;

pub use self::carry::{Carried, News, Order};
pub use self::clients::Clients;
pub use self::endpoint::{Endpoint, EndpointError};
pub use self::error::ClientError;
use self::token::Token;
pub(crate) use self::transport::{AgentReply, JSON};
use self::transport::{Ask, Transport};
use crate::wire::{
    Acknowledgement, ActionId, ActionReport, ActionRequest, Actions, AgentStatus, Code, Problem,
    Seen, VERSION, Versions, WAIT_LIMIT, cut,
};

/// The limit for a list of actions or for output, in bytes.
const LONG_LIMIT: usize = 4 * 1024 * 1024;

/// The number of the agent's versions that an error lists.
const VERSIONS_SHOWN: usize = 8;

/// A client of one agent, for an operator; clones share its token and certificates.
///
/// Every method sends one request and waits for its answer, with the timeout of the endpoint.
/// You may repeat every request at any time, whether or not it succeeded.
///
/// ```no_run
/// use okt_agent::client::{Client, Endpoint};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::new(&Endpoint::parse("http://127.0.0.1:8470")?.token_file("/run/agent/token"))?;
/// println!("{:?}", client.status().await?.application);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    transport: Transport,
    timeout: Duration,
    token: Arc<Token>,
    /// Whether the agent is known to support [`VERSION`].
    negotiated: Arc<AtomicBool>,
}

/// The answer of an agent to a request for work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Whether this request began an attempt.
    pub began: bool,
    /// The report about the action.
    pub report: ActionReport,
}

/// The output of an action, as far as the agent keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The position where the text begins, in bytes of the whole output.
    pub from: u64,
    /// The position where the text ends, in bytes of the whole output.
    pub to: u64,
    /// The size of the whole output so far, in bytes.
    pub total: u64,
    /// The number of bytes dropped from the middle.
    pub gap: u64,
    /// The text. Invalid UTF-8 is replaced.
    pub text: String,
}

impl Client {
    /// Returns a client of the agent at an endpoint. It sends nothing yet.
    ///
    /// # Errors
    ///
    /// The certificates cannot be read, or TLS cannot be set up with them. A retry helps after they have changed.
    /// [`EndpointError::Unsafe`]: a retry does not help; use another endpoint.
    pub fn new(endpoint: &Endpoint) -> Result<Self, EndpointError> {
        Ok(Self::with(endpoint, Transport::of(endpoint)?))
    }

    fn with(endpoint: &Endpoint, transport: Transport) -> Self {
        Self {
            transport,
            timeout: endpoint.timeout,
            token: Arc::new(Token::new(endpoint.token.clone())),
            negotiated: Arc::default(),
        }
    }

    /// Returns a client of an agent in this process, without a socket. It is for tests and works under paused time.
    ///
    /// The service receives the requests as from a server; an `axum::Router` is such a service.
    pub fn over<S, B>(service: S) -> Self
    where
        S: tower::Service<http::Request<Full<Bytes>>, Response = http::Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<tower::BoxError>,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<tower::BoxError>,
    {
        Self {
            transport: Transport::over(service),
            timeout: endpoint::TIMEOUT,
            token: Arc::new(Token::new(None)),
            negotiated: Arc::default(),
        }
    }

    /// Returns the versions that the agent supports.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn versions(&self) -> Result<Versions, ClientError> {
        json(&self.send(Ask::get("/lifecycle")).await?)
    }

    /// Returns the status: the observation of the application, and the running or last action.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn status(&self) -> Result<AgentStatus, ClientError> {
        let mut status: AgentStatus = json(&self.ask_for(Ask::get("/status")).await?)?;
        status.action = status.action.map(bounded);
        if let Seen::Unreachable { why } = &mut status.application.seen {
            *why = cut(std::mem::take(why));
        }
        Ok(status)
    }

    /// Returns the actions that the agent remembers, the newest first.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn actions(&self) -> Result<Vec<ActionReport>, ClientError> {
        let ask = Ask::get("/actions").at_most(LONG_LIMIT);
        let list: Actions = json(&self.ask_for(ask).await?)?;
        Ok(list.actions.into_iter().map(bounded).collect())
    }

    /// Requests work; `traceparent` is the trace that it belongs to (W3C Trace Context), if it belongs to one.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn ask(
        &self,
        id: &ActionId,
        request: &ActionRequest,
        traceparent: Option<&str>,
    ) -> Result<Accepted, ClientError> {
        let ask = Ask {
            // A text that cannot be a header is left out.
            traceparent: traceparent.and_then(|it| HeaderValue::from_str(it).ok()),
            ..Ask::put(format!("/actions/{id}"), request)?
        };
        let reply = self.ask_for(ask).await?;
        Ok(Accepted {
            began: reply.status == StatusCode::CREATED,
            report: report_of(id, &reply)?,
        })
    }

    /// Returns the report about an action, at once or when the action has ended, but after `wait` at the latest (at
    /// most 30 s).
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn report(&self, id: &ActionId, wait: Duration) -> Result<ActionReport, ClientError> {
        let seconds = wait.as_secs().min(WAIT_LIMIT);
        let path = match seconds {
            0 => format!("/actions/{id}"),
            _ => format!("/actions/{id}?wait={seconds}"),
        };
        let ask = Ask {
            longer: Duration::from_secs(seconds),
            ..Ask::get(path)
        };
        report_of(id, &self.ask_for(ask).await?)
    }

    /// Cancels an action. It has ended when the phase of the report is final.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn cancel(&self, id: &ActionId, epoch: u64) -> Result<ActionReport, ClientError> {
        let ask = Ask::new(Method::DELETE, format!("/actions/{id}?epoch={epoch}"));
        report_of(id, &self.ask_for(ask).await?)
    }

    /// Acknowledges the result of an attempt.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn acknowledge(
        &self,
        id: &ActionId,
        taken: &Acknowledgement,
    ) -> Result<ActionReport, ClientError> {
        let ask = Ask::put(format!("/actions/{id}/acknowledgement"), taken)?;
        report_of(id, &self.ask_for(ask).await?)
    }

    /// Returns the output of an action, from this byte on.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn output(&self, id: &ActionId, from: u64) -> Result<Output, ClientError> {
        let ask = Ask::get(format!("/actions/{id}/output?from={from}")).at_most(LONG_LIMIT);
        let reply = self.ask_for(ask).await?;
        Ok(Output {
            from: number(&reply.headers, "okt-output-from")?,
            to: number(&reply.headers, "okt-output-to")?,
            total: number(&reply.headers, "okt-output-total")?,
            gap: number(&reply.headers, "okt-output-gap")?,
            text: String::from_utf8_lossy(&reply.body).into_owned(),
        })
    }

    /// Returns whether the agent runs.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn is_alive(&self) -> Result<bool, ClientError> {
        self.health("/livez").await
    }

    /// Returns whether the agent can take and record actions.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn is_ready(&self) -> Result<bool, ClientError> {
        self.health("/readyz").await
    }

    async fn health(&self, path: &str) -> Result<bool, ClientError> {
        let reply = self.exchange(&Ask::get(path)).await?;
        match reply.status {
            StatusCode::OK => Ok(true),
            StatusCode::SERVICE_UNAVAILABLE => Ok(false),
            _ => Err(refusal(&reply)),
        }
    }

    /// Returns the agent's metrics for Prometheus.
    ///
    /// # Errors
    ///
    /// A [`ClientError`] says whether a retry helps.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let ask = Ask::get("/metrics").at_most(LONG_LIMIT);
        let reply = self.send(ask).await?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// Sends a request of the common version. It asks for the agent's versions once.
    async fn ask_for(&self, ask: Ask) -> Result<AgentReply, ClientError> {
        if !self.negotiated.load(Ordering::Relaxed) {
            let versions = self.versions().await?.versions;
            if !versions.iter().any(|version| version == VERSION) {
                let spoken = versions.into_iter().take(VERSIONS_SHOWN).map(cut).collect();
                return Err(ClientError::NoCommonVersion { spoken });
            }
            self.negotiated.store(true, Ordering::Relaxed);
        }
        let answer = self.send(ask.under(VERSION)).await;
        if let Err(ClientError::Refused(problem)) = &answer
            && problem.code == Code::UnsupportedVersion
        {
            // The agent was replaced by another one.
            self.negotiated.store(false, Ordering::Relaxed);
        }
        answer
    }

    /// Sends a request. An answer that is not a success is an error.
    async fn send(&self, ask: Ask) -> Result<AgentReply, ClientError> {
        let mut reply = self.exchange(&ask).await?;
        // The token may have changed on disk.
        if reply.status == StatusCode::UNAUTHORIZED && self.token.renew().await? {
            reply = self.exchange(&ask).await?;
        }
        if reply.status.is_success() {
            Ok(reply)
        } else {
            Err(refusal(&reply))
        }
    }

    /// Sends a request that no client should send, and returns any answer.
    pub(crate) async fn raw(
        &self,
        method: Method,
        path: impl Into<String>,
        body: Option<(Bytes, &'static str)>,
    ) -> Result<AgentReply, ClientError> {
        let ask = Ask {
            body,
            ..Ask::new(method, path)
        };
        self.exchange(&ask).await
    }

    /// Reads a path without the token.
    pub(crate) async fn get_without_token(&self, path: &str) -> Result<AgentReply, ClientError> {
        self.transport
            .send(&Ask::get(path), None, self.timeout)
            .await
    }

    async fn exchange(&self, ask: &Ask) -> Result<AgentReply, ClientError> {
        let token = self.token.header().await?;
        self.transport.send(ask, token, self.timeout).await
    }
}

/// Decodes an answer in JSON.
fn json<T: DeserializeOwned>(reply: &AgentReply) -> Result<T, ClientError> {
    serde_json::from_slice(&reply.body).map_err(|error| ClientError::Foreign {
        status: reply.status.as_u16(),
        // The error quotes the body, which may be long.
        detail: cut(format!("the body is not of the right form: {error}")),
    })
}

/// Truncates the texts of a report, because people read them.
fn bounded(mut report: ActionReport) -> ActionReport {
    report.message = cut(report.message);
    report.reason = report.reason.map(cut);
    if let Some(progress) = &mut report.progress {
        progress.message = cut(std::mem::take(&mut progress.message));
    }
    report
}

/// Returns the report, if it is about the requested action.
fn report_of(id: &ActionId, reply: &AgentReply) -> Result<ActionReport, ClientError> {
    let report: ActionReport = json(reply)?;
    if report.id == *id {
        Ok(bounded(report))
    } else {
        Err(ClientError::Foreign {
            status: reply.status.as_u16(),
            detail: format!("it is about the action {}, not {id}", report.id),
        })
    }
}

/// Returns the error of an answer that is not a success.
fn refusal(reply: &AgentReply) -> ClientError {
    match serde_json::from_slice::<Problem>(&reply.body) {
        Ok(mut problem) => {
            problem.detail = cut(problem.detail);
            ClientError::Refused(problem)
        }
        Err(_) => ClientError::Foreign {
            status: reply.status.as_u16(),
            detail: "it is no success, and does not say in the form of a problem why".to_owned(),
        },
    }
}

fn number(headers: &HeaderMap, name: &str) -> Result<u64, ClientError> {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| ClientError::Foreign {
        status: 200,
        detail: format!("the header {name} is missing or no number"),
    })
}
