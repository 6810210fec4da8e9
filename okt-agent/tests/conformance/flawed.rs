//! A deliberately wrong agent: the real one, with one flaw in its requests or in its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use okt_agent::client::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::ServiceExt;

macro_rules! flaws {
    ($( $flaw:ident => $check:literal, )*) => {
        /// A flaw.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Flaw { $( $flaw, )* }

        /// Every flaw, with the check that must catch it.
        pub(crate) const FLAWS: &[(Flaw, &str)] = &[ $( (Flaw::$flaw, $check), )* ];
    };
}

flaws! {
    AnswersEveryVersion => "unsupported-version",
    MethodIsNotFound => "paths",
    HealthNeedsToken => "health",
    BootIdChanges => "status",
    StatusWaits => "status-at-once",
    AlwaysCreated => "begins-once",
    CreatedInACrowd => "thousand-at-once",
    DoesNotSayWhatRuns => "busy",
    IgnoresInput => "other-work",
    EpochIsPartOfTheWork => "same-work-of-another-epoch",
    UnknownWorkIsBusy => "no-such-work",
    UnknownActionIsGone => "no-such-action",
    IgnoresFrom => "wrong-state",
    OldestFirst => "list",
    AcknowledgedSuccessBeginsAgain => "success-for-ever",
    AcknowledgesByItself => "kept-until-acknowledged",
    NoReason => "failure-says-why",
    SecondAcknowledgementIsWrong => "acknowledged-twice",
    TakesAnyAttempt => "other-attempt",
    AcknowledgesWhatRuns => "not-ended",
    CancelledIsFailed => "cancels",
    EndedIsEnding => "cancels-nothing",
    ForgetsEarlyCancellations => "cancelled-before",
    NeverWaits => "wait",
    OldSighting => "unobserved-after-end",
    RangeBeyondTotal => "output",
    MalformedIsAnAccident => "malformed",
    IgnoresUnknownFields => "unknown-field",
    CutsIds => "bad-id",
    HugeIsMalformed => "too-large",
    IgnoresMediaType => "media-type",
    IgnoresTransitions => "fenced-transition",
    IgnoresRecordedAt => "restored-transition",
    TakesFarEpochs => "far-epoch",
    IgnoresEpochOfAsking => "fenced-asking",
    IgnoresEpochOfCancelling => "fenced-cancelling",
    IgnoresEpochOfAcknowledging => "fenced-acknowledging",
    IgnoresGraph => "other-graph",
    IgnoresAgeOfOwners => "foreign-owner",
    IgnoresNames => "foreign-owner",
    KeepsTheFirstOwner => "newer-owner",
    LetsOwnersComeBack => "same-second-owner",
    ForgetsAll => "restart-keeps-results",
    ProblemsArePlainJson => "problem-documents",
    ProblemsSayRetry => "problem-documents",
}

/// The state of the flaws.
#[derive(Default)]
struct Memory {
    /// The epoch of the first request for each action.
    epochs: BTreeMap<String, u64>,
    acknowledged: BTreeSet<String>,
    owner: Option<String>,
    counter: u32,
}

#[derive(Clone)]
struct Wrong {
    flaw: Option<Flaw>,
    agent: Router,
    memory: Arc<Mutex<Memory>>,
    asking: Arc<AtomicUsize>,
}

/// Returns a client of an agent with this flaw.
pub(crate) fn flawed(flaw: Option<Flaw>, agent: Router) -> Client {
    let wrong = Wrong {
        flaw,
        agent,
        memory: Arc::default(),
        asking: Arc::default(),
    };
    Client::over(tower::service_fn(move |request| {
        let wrong = wrong.clone();
        async move { Ok::<_, std::convert::Infallible>(wrong.answer(request).await) }
    }))
}

/// One request, taken apart.
struct Asked {
    method: Method,
    path: String,
    query: String,
    kind: Option<HeaderValue>,
    body: Vec<u8>,
}

/// One answer, taken apart.
struct Answer {
    status: StatusCode,
    response: axum::http::response::Parts,
    body: Vec<u8>,
}

impl Asked {
    fn new(method: Method, path: String) -> Self {
        Self {
            method,
            path,
            query: String::new(),
            kind: None,
            body: Vec::new(),
        }
    }

    /// Returns the id if the request is about one action and no subpath.
    fn action(&self) -> Option<&str> {
        let id = self.path.strip_prefix("/lifecycle/v1/actions/")?;
        (!id.contains('/')).then_some(id)
    }

    fn acknowledged(&self) -> Option<&str> {
        let below = self.path.strip_prefix("/lifecycle/v1/actions/")?;
        below.strip_suffix("/acknowledgement")
    }

    fn asks(&self) -> bool {
        self.method == Method::PUT && self.action().is_some()
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        if let Ok(mut body) = serde_json::from_slice(&self.body) {
            change(&mut body);
            self.body = body.to_string().into_bytes();
        }
    }
}

impl Answer {
    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        if let Ok(mut body) = serde_json::from_slice(&self.body) {
            change(&mut body);
            self.body = body.to_string().into_bytes();
        }
    }

    fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["code"].as_str().unwrap_or_default().to_owned()
    }

    fn header(&mut self, name: &'static str, value: &'static str) {
        let value = HeaderValue::from_static(value);
        self.response.headers.insert(name, value);
    }
}

fn next(memory: &mut Memory) -> u32 {
    memory.counter += 1;
    memory.counter
}

impl Wrong {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.memory.lock())
    }

    async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: axum::body::HttpBody<Data = axum::body::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let (parts, body) = request.into_parts();
        let body = to_bytes(Body::new(body), usize::MAX).await.expect("a body");
        let mut asked = Asked {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            kind: parts.headers.get(CONTENT_TYPE).cloned(),
            body: body.to_vec(),
        };
        self.before(&mut asked).await;
        let crowd = self.asking.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.send(&asked).await;
        self.asking.fetch_sub(1, Ordering::SeqCst);
        self.after(&asked, crowd, &mut answer).await;
        let mut response = Response::from_parts(answer.response, Body::from(answer.body));
        *response.status_mut() = answer.status;
        response.headers_mut().remove(CONTENT_LENGTH);
        response
    }

    async fn send(&self, asked: &Asked) -> Answer {
        let mut request = Request::builder()
            .method(&asked.method)
            .uri(format!("{}?{}", asked.path, asked.query));
        if let Some(kind) = &asked.kind {
            request = request.header(CONTENT_TYPE, kind);
        }
        let request = request
            .body(Body::from(asked.body.clone()))
            .expect("a request");
        let Ok(response) = self.agent.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("a body");
        Answer {
            status: parts.status,
            response: parts,
            body: body.to_vec(),
        }
    }

    /// Applies the flaws of requests.
    async fn before(&self, asked: &mut Asked) {
        let Some(flaw) = self.flaw else {
            return;
        };
        match flaw {
            Flaw::AnswersEveryVersion => asked.path = asked.path.replace("/v999/", "/v1/"),
            Flaw::IgnoresInput if asked.asks() => {
                asked.change(|body| body["input"] = json!({}));
            }
            Flaw::IgnoresFrom if asked.asks() => asked.change(|body| body["from"] = json!([])),
            Flaw::IgnoresGraph if asked.asks() => asked.change(|body| body["graph"] = Value::Null),
            Flaw::AcknowledgesByItself if asked.asks() => {
                let path = format!("{}/acknowledgement", asked.path);
                let body = json!({ "attempt": 1, "epoch": 1_000_000 }).to_string();
                let acknowledgement = Asked {
                    kind: asked.kind.clone(),
                    body: body.into_bytes(),
                    ..Asked::new(Method::PUT, path)
                };
                self.send(&acknowledgement).await;
                asked.change(|body| body["fence"]["epoch"] = json!(1_000_000));
            }
            Flaw::TakesAnyAttempt if asked.acknowledged().is_some() => {
                asked.change(|body| body["attempt"] = json!(1));
            }
            Flaw::ForgetsEarlyCancellations if asked.method == Method::DELETE => {
                let known = Asked::new(Method::GET, asked.path.clone());
                if self.send(&known).await.status == StatusCode::NOT_FOUND {
                    asked.path = String::from("/lifecycle/v1/actions/nobody");
                }
            }
            Flaw::NeverWaits => asked.query = String::from("wait=0"),
            Flaw::IgnoresUnknownFields if asked.asks() => asked.change(|body| {
                body.as_object_mut().map(|body| body.remove("noSuchField"));
            }),
            Flaw::CutsIds => {
                let path = asked.path.replace("%20", "").replace("%2F", "");
                asked.path = path.chars().take(128).collect();
            }
            Flaw::IgnoresMediaType => {
                asked.kind = Some(HeaderValue::from_static("application/json"));
            }
            Flaw::IgnoresTransitions if asked.asks() => asked.change(|body| {
                body["fence"]["transition"] = json!(self.memory(next));
                body["fence"]["run"] = json!(1);
            }),
            Flaw::IgnoresRecordedAt if asked.asks() => asked.change(|body| {
                body["fence"]["recordedAt"] = json!("2026-11-21T09:00:00Z");
            }),
            Flaw::TakesFarEpochs if asked.asks() => asked.change(|body| {
                let epoch = body["fence"]["epoch"].as_u64().unwrap_or_default();
                body["fence"]["epoch"] = json!(epoch.min(1_000_000));
            }),
            Flaw::IgnoresNames if asked.asks() => asked.change(|body| {
                body["owner"]["name"] = json!("conformance");
                body["owner"]["namespace"] = json!("");
            }),
            Flaw::LetsOwnersComeBack if asked.asks() => asked.change(|body| {
                let uid = body["owner"]["uid"].as_str().unwrap_or_default().to_owned();
                let time = self.memory(|memory| {
                    if memory.owner.replace(uid.clone()).as_ref() != Some(&uid) {
                        memory.counter += 1;
                    }
                    memory.counter
                });
                body["owner"]["uid"] = json!(format!("{uid}-{time}"));
            }),
            Flaw::IgnoresEpochOfAsking if asked.asks() => {
                asked.change(|body| body["fence"]["epoch"] = json!(1_000_000));
            }
            Flaw::IgnoresEpochOfCancelling if asked.method == Method::DELETE => {
                asked.query = String::from("epoch=1000000");
            }
            Flaw::IgnoresEpochOfAcknowledging if asked.acknowledged().is_some() => {
                asked.change(|body| body["epoch"] = json!(1_000_000));
            }
            Flaw::IgnoresAgeOfOwners if asked.asks() => asked.change(|body| {
                let second = self.memory(next);
                body["owner"]["createdAt"] = json!(format!("2099-01-01T00:00:{second:02}Z"));
            }),
            _ => {}
        }
    }

    /// Applies the flaws of answers.
    #[expect(clippy::too_many_lines, reason = "one arm for each flaw")]
    async fn after(&self, asked: &Asked, crowd: usize, answer: &mut Answer) {
        let Some(flaw) = self.flaw else {
            return;
        };
        let is_status = asked.path.ends_with("/v1/status");
        match flaw {
            Flaw::MethodIsNotFound if answer.code() == "MethodNotAllowed" => {
                answer.status = StatusCode::NOT_FOUND;
            }
            Flaw::HealthNeedsToken if asked.path == "/livez" => {
                answer.status = StatusCode::UNAUTHORIZED;
            }
            Flaw::BootIdChanges if is_status => {
                let boot = self.memory(next);
                answer.change(|body| body["bootId"] = json!(boot.to_string()));
            }
            Flaw::StatusWaits if is_status => {
                tokio::time::sleep(Duration::from_millis(1500)).await;
            }
            Flaw::AlwaysCreated if asked.asks() && answer.status == StatusCode::OK => {
                answer.status = StatusCode::CREATED;
            }
            Flaw::CreatedInACrowd if asked.asks() && crowd > 20 => {
                answer.status = StatusCode::CREATED;
            }
            Flaw::DoesNotSayWhatRuns => answer.change(|body| {
                body.as_object_mut().map(|body| body.remove("running"));
            }),
            Flaw::EpochIsPartOfTheWork if asked.asks() => {
                let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
                let epoch = body["fence"]["epoch"].as_u64().unwrap_or_default();
                let id = asked.action().unwrap_or_default().to_owned();
                let first = self.memory(|memory| *memory.epochs.entry(id).or_insert(epoch));
                if first != epoch {
                    refuse(answer, 422, "OtherWork");
                }
            }
            Flaw::UnknownWorkIsBusy if answer.code() == "NoSuchWork" => {
                refuse(answer, 409, "Busy");
            }
            Flaw::UnknownActionIsGone if answer.code() == "NoSuchAction" => {
                answer.status = StatusCode::GONE;
            }
            Flaw::OldestFirst if asked.path.ends_with("/v1/actions") => answer.change(|body| {
                if let Some(list) = body["actions"].as_array_mut() {
                    list.reverse();
                }
            }),
            Flaw::AcknowledgedSuccessBeginsAgain => {
                if let Some(id) = asked.acknowledged() {
                    self.memory(|memory| memory.acknowledged.insert(id.to_owned()));
                } else if let Some(id) = asked.action()
                    && asked.asks()
                    && answer.status == StatusCode::OK
                    && self.memory(|memory| memory.acknowledged.contains(id))
                {
                    answer.status = StatusCode::CREATED;
                }
            }
            Flaw::NoReason => answer.change(|body| {
                body.as_object_mut().map(|body| body.remove("reason"));
            }),
            Flaw::SecondAcknowledgementIsWrong => {
                if let Some(id) = asked.acknowledged()
                    && !self.memory(|memory| memory.acknowledged.insert(id.to_owned()))
                {
                    refuse(answer, 409, "OtherAttempt");
                }
            }
            Flaw::AcknowledgesWhatRuns if answer.code() == "NotEnded" => {
                answer.status = StatusCode::OK;
            }
            Flaw::CancelledIsFailed => answer.change(|body| {
                if body["phase"] == "Cancelled" {
                    body["phase"] = json!("Failed");
                }
            }),
            Flaw::EndedIsEnding if asked.method == Method::DELETE => {
                answer.status = StatusCode::ACCEPTED;
            }
            Flaw::OldSighting if is_status => answer.change(|body| {
                let time = "2020-01-01T00:00:00Z";
                body["application"] =
                    json!({ "seen": "in", "state": "Running", "observedAt": time });
            }),
            Flaw::RangeBeyondTotal => answer.header("okt-output-to", "1000000"),
            Flaw::MalformedIsAnAccident if answer.code() == "BadRequest" => {
                answer.status = StatusCode::INTERNAL_SERVER_ERROR;
            }
            Flaw::HugeIsMalformed if answer.code() == "TooLarge" => {
                refuse(answer, 400, "BadRequest");
            }
            Flaw::KeepsTheFirstOwner if asked.asks() => {
                let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
                let owner = body["owner"]["uid"].as_str().unwrap_or_default().to_owned();
                let first = self.memory(|memory| memory.owner.get_or_insert(owner.clone()).clone());
                if first != owner {
                    refuse(answer, 412, "ForeignOwner");
                }
            }
            Flaw::ProblemsArePlainJson if !answer.status.is_success() => {
                answer.header("content-type", "application/json");
            }
            Flaw::ProblemsSayRetry if !answer.status.is_success() => {
                answer.change(|body| body["retry"] = json!(true));
            }
            _ => {}
        }
    }
}

/// Replaces the answer by a refusal.
fn refuse(answer: &mut Answer, status: u16, code: &str) {
    answer.status = StatusCode::from_u16(status).expect("a status");
    answer.header("content-type", "application/problem+json");
    let problem = json!({
        "status": status, "code": code, "detail": "on purpose", "mender": "time", "retry": true,
    });
    answer.body = problem.to_string().into_bytes();
}
