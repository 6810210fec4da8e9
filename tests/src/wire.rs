//! The wire between an operator and the API: what went over it, and what a test does to it.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;

use crate::rules::Rules;

/// The wire; clones are the same one.
#[derive(Clone, Default)]
pub struct Wire(Arc<Shared>);

#[derive(Default)]
struct Shared {
    plan: Mutex<Plan>,
    cut: Notify,
}

#[derive(Default)]
struct Plan {
    writes: Vec<String>,
    cut: Option<Cut>,
    refusal: Option<(Refused, StatusCode, &'static str)>,
    rules: Rules,
}

/// Where the wire is cut: at a write, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The write never reaches the server.
    Before(usize),
    /// The server carries it out, and its answer never comes.
    After(usize),
}

/// Which requests are refused.
type Refused = fn(&Method, &str) -> bool;

impl Wire {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client of the same server over this wire.
    pub fn client(&self, direct: Client) -> Client {
        let wire = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (wire, direct) = (wire.clone(), direct.clone());
            async move { Ok::<_, Infallible>(wire.pass(direct, request).await) }
        });
        Client::new(service, "default")
    }

    /// Every write that went over the wire, as `PATCH /path`.
    pub fn writes(&self) -> Vec<String> {
        self.plan().writes.clone()
    }

    /// Forgets the writes so far.
    pub fn clear(&self) {
        self.plan().writes.clear();
    }

    /// Cuts the wire once.
    pub fn cut(&self, cut: Cut) {
        self.plan().cut = Some(cut);
    }

    /// Ends when the wire has been cut.
    pub async fn was_cut(&self) {
        self.0.cut.notified().await;
    }

    /// From now on answers the chosen requests with this status instead of passing them on.
    pub fn refuse(&self, which: Refused, status: u16, message: &'static str) {
        let status = StatusCode::from_u16(status).expect("a status");
        self.plan().refusal = Some((which, status, message));
    }

    /// Passes everything on again.
    pub fn mend(&self) {
        self.plan().refusal = None;
    }

    async fn pass(&self, direct: Client, request: Request<Body>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let mut cut = None;
        {
            let mut plan = self.plan();
            if method != Method::GET {
                plan.writes.push(format!("{method} {path}"));
                let number = plan.writes.len();
                let here =
                    |cut: &mut Cut| matches!(cut, Cut::Before(n) | Cut::After(n) if *n == number);
                cut = plan.cut.take_if(here);
            }
            if let Some((which, status, message)) = plan.refusal
                && which(&method, &path)
            {
                return refusal(status, message);
            }
        }
        if let Some(Cut::Before(_)) = cut {
            self.0.cut.notify_one();
            return std::future::pending().await;
        }
        let answer = match direct.send(request).await {
            Ok(answer) => answer,
            Err(error) => refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
        };
        let answer = self.judged(answer, &path).await;
        if let Some(Cut::After(_)) = cut {
            self.0.cut.notify_one();
            return std::future::pending().await;
        }
        answer
    }
}

impl Wire {
    /// Holds the rules for conditions against every status that is written; the answer passes unchanged.
    async fn judged(&self, answer: Response<Body>, path: &str) -> Response<Body> {
        if !path.ends_with("/status") || !answer.status().is_success() {
            return answer;
        }
        let (head, body) = answer.into_parts();
        let bytes = body.collect_bytes().await.unwrap_or_default();
        if let Ok(object) = serde_json::from_slice(&bytes) {
            self.plan().rules.judge(&object);
        }
        Response::from_parts(head, Body::from(bytes.to_vec()))
    }

    /// Every status must have these conditions.
    pub(crate) fn expect_conditions(&self, declared: Vec<String>) {
        self.plan().rules.declared = declared;
    }

    /// The rules that were broken by what was written.
    pub fn broken_rules(&self) -> Vec<String> {
        self.plan().rules.broken.clone()
    }
}

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "", "code": status.as_u16(),
    });
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = status;
    response
}
