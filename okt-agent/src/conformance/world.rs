//! The owner that the test pretends to be, and helpers for expectations.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::subject::{Killed, States, Subject};
use crate::client::{Accepted, AgentReply, Client, ClientError, Endpoint};
use crate::wire::{
    Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Fence, Owner, Phase, Problem,
};

/// The time limit for steps that should take a moment.
const PATIENCE: Duration = Duration::from_mins(1);

/// The reason why a check ends early.
#[derive(Debug)]
pub(super) enum Stop {
    Broken(String),
    Skipped(&'static str),
}

impl From<ClientError> for Stop {
    fn from(error: ClientError) -> Self {
        Self::Broken(error.to_string())
    }
}

/// The result of a check.
pub(super) type Check<T = ()> = Result<T, Stop>;

/// Breaks the rule, unless `so` is true.
pub(super) fn expect(so: bool, seen: impl FnOnce() -> String) -> Check {
    if so {
        Ok(())
    } else {
        Err(Stop::Broken(seen()))
    }
}

/// Breaks the rule, unless both values are equal.
pub(super) fn same<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Check {
    expect(seen == expected, move || {
        format!("{what} is {seen:?}, not {expected:?}")
    })
}

/// The agent under test, and the owner that the test pretends to be. Its transitions rise.
pub(super) struct World<'s> {
    pub(super) client: Client,
    pub(super) restart: Option<&'s (dyn Fn() -> Killed + Send + Sync)>,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) states: States,
    pub(super) owner: Owner,
    pub(super) epoch: u64,
    /// When the first work was recorded. Each transition is recorded a second later.
    pub(super) recorded_at: Timestamp,
    transition: u64,
    /// The faults of refusals that had the right code.
    wrong_problems: Vec<String>,
    refusals: usize,
}

/// A piece of work to request.
#[derive(Clone)]
pub(super) struct WorldWork {
    pub(super) id: ActionId,
    pub(super) request: ActionRequest,
}

impl<'s> World<'s> {
    /// Creates the owner: an object that was created just now, in an epoch above all others.
    pub(super) async fn enter(subject: &'s Subject) -> Check<Self> {
        let client = subject.client.clone();
        let status = client.status().await?;
        let now = Timestamp::now();
        // A clock that is behind must not make this owner an old one.
        let created_at = (status.owner.as_ref()).map_or(now, |owner| now.max(owner.created_at));
        let created_at = created_at + Duration::from_millis(1);
        let uid = format!("conformance-{:x}", now.as_nanosecond());
        // An agent that belongs to an object gets a later object of the same name.
        let (namespace, name) = match status.object {
            Some(object) => (object.namespace, object.name),
            None => (String::new(), "conformance".to_owned()),
        };
        Ok(Self {
            client,
            restart: subject.restart.as_deref(),
            endpoint: subject.endpoint.clone(),
            states: subject.states.clone(),
            owner: Owner {
                uid,
                created_at,
                name,
                namespace,
            },
            epoch: status.fence.epoch.saturating_add(1),
            recorded_at: now,
            transition: 0,
            wrong_problems: Vec::new(),
            refusals: 0,
        })
    }

    /// Cancels any running action and waits for its end.
    pub(super) async fn rest(&mut self) -> Check {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.client.status().await?;
            self.epoch = self.epoch.max(status.fence.epoch);
            let Some(action) = status.action.filter(|action| !action.phase.is_final()) else {
                return Ok(());
            };
            expect(Instant::now() < until, || {
                format!("{} does not end, though it was cancelled", action.id)
            })?;
            self.client.cancel(&action.id, self.epoch).await?;
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns new work of a state, in the next transition.
    pub(super) fn work(&mut self, state: &str) -> WorldWork {
        self.transition += 1;
        let recorded_at = self.recorded_at + Duration::from_secs(self.transition);
        let id = format!("{}.{}", self.owner.uid, self.transition);
        WorldWork {
            id: id.parse().expect("letters, digits, a dash and a dot"),
            request: ActionRequest {
                state: state.to_owned(),
                owner: self.owner.clone(),
                fence: Fence {
                    epoch: self.epoch,
                    transition: self.transition,
                    run: 1,
                    recorded_at,
                },
                graph: None,
                from: Vec::new(),
                input: serde_json::Map::new(),
            },
        }
    }

    pub(super) fn brief(&mut self) -> WorldWork {
        let state = self.states.brief.clone();
        self.work(&state)
    }

    pub(super) fn failing(&mut self) -> WorldWork {
        let state = self.states.failing.clone();
        self.work(&state)
    }

    pub(super) fn endless(&mut self) -> WorldWork {
        let state = self.states.endless.clone();
        self.work(&state)
    }

    pub(super) async fn ask(&self, work: &WorldWork) -> Check<Accepted> {
        Ok(self.client.ask(&work.id, &work.request, None).await?)
    }

    /// Requests work, and expects that this begins an attempt.
    pub(super) async fn begin(&self, work: &WorldWork) -> Check<ActionReport> {
        let asked = self.ask(work).await?;
        expect(asked.began, || {
            "PUT of new work answers 200, not 201".to_owned()
        })?;
        Ok(asked.report)
    }

    /// Requests work and waits for its end, which must have this phase.
    pub(super) async fn done(&self, work: &WorldWork, phase: Phase) -> Check<ActionReport> {
        self.begin(work).await?;
        let report = self.ended(&work.id).await?;
        same("the phase", report.phase, phase)?;
        Ok(report)
    }

    /// Waits for the end of an action.
    pub(super) async fn ended(&self, id: &ActionId) -> Check<ActionReport> {
        let until = Instant::now() + PATIENCE;
        loop {
            let report = self.client.report(id, Duration::from_secs(1)).await?;
            if report.phase.is_final() {
                return Ok(report);
            }
            expect(Instant::now() < until, || format!("{id} does not end"))?;
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an action runs.
    pub(super) async fn running(&self, id: &ActionId) -> Check {
        let until = Instant::now() + PATIENCE;
        loop {
            let report = self.client.report(id, Duration::ZERO).await?;
            expect(!report.phase.is_final(), || {
                format!("{id} has ended ({:?}), and should go on", report.phase)
            })?;
            if report.phase == Phase::Running {
                return Ok(());
            }
            expect(Instant::now() < until, || format!("{id} is not begun"))?;
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn acknowledge(&self, id: &ActionId, attempt: u32) -> Check<ActionReport> {
        let epoch = self.epoch;
        let taken = Acknowledgement { attempt, epoch };
        Ok(self.client.acknowledge(id, &taken).await?)
    }

    /// Sends any request under the version.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(Bytes, &'static str)>,
    ) -> Check<AgentReply> {
        let path = format!("/lifecycle/v1{path}");
        let first = (self.client).raw(method.clone(), path.clone(), body.clone(), true);
        match first.await {
            // An agent may close an idle connection just when it is used again. Another connection works.
            Err(error) if error.code().is_none() && error.retry_helps() => {
                Ok(self.client.raw(method, path, body, true).await?)
            }
            reply => Ok(reply?),
        }
    }

    /// Requests work with a custom body.
    pub(super) async fn put(&self, id: &str, body: &Value) -> Check<AgentReply> {
        let body = Bytes::from(body.to_string());
        let path = format!("/actions/{id}");
        self.send(Method::PUT, &path, Some((body, "application/json")))
            .await
    }

    /// Requests work, and expects this refusal.
    pub(super) async fn refused(&mut self, work: &WorldWork, code: Code) -> Check<Problem> {
        let body = serde_json::to_value(&work.request).map_err(|e| Stop::Broken(e.to_string()))?;
        let reply = self.put(work.id.as_str(), &body).await?;
        self.is_refusal(&reply, code)
    }

    /// Expects that an answer is this refusal. Faults of its document are kept for [`problem_documents`].
    pub(super) fn is_refusal(&mut self, reply: &AgentReply, code: Code) -> Check<Problem> {
        let status = reply.status.as_u16();
        let (expected, mender, retry) = code.meaning();
        let problem = serde_json::from_slice::<Problem>(&reply.body);
        let said = problem.as_ref().ok().map(|problem| problem.code);
        let is = said.map_or_else(|| "no code".to_owned(), |code| format!("{code:?}"));
        expect(
            status == expected && said.is_none_or(|said| said == code),
            || format!("the answer is {status} ({is}), not {expected} ({code:?})"),
        )?;
        self.refusals += 1;
        let kind = reply
            .headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if !kind.is_some_and(|kind| kind.starts_with("application/problem+json")) {
            let kind = kind.unwrap_or("nothing");
            self.wrong_problems.push(format!(
                "{code:?} is sent as {kind}, not application/problem+json"
            ));
        }
        match problem {
            Ok(problem) => {
                if (problem.status, problem.mender, problem.retry) != (expected, mender, retry) {
                    self.wrong_problems.push(format!(
                        "{code:?} says status {}, mender {:?}, retry {}, not {expected}, {mender:?}, {retry}",
                        problem.status, problem.mender, problem.retry
                    ));
                }
                Ok(problem)
            }
            Err(error) => {
                self.wrong_problems.push(format!(
                    "the body of {code:?} is no problem document: {error}"
                ));
                Ok(Problem::new(code, ""))
            }
        }
    }
}

/// Checks the faults that the earlier checks have found in refusals.
pub(super) async fn problem_documents(world: &mut World<'_>) -> Check {
    if world.refusals == 0 {
        let work = world.work("NoSuchState-conformance");
        world.refused(&work, Code::NoSuchWork).await?;
    }
    let wrong = &world.wrong_problems;
    expect(wrong.is_empty(), || wrong.join("; "))
}
