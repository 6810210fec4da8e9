//! The owner that the test pretends to be, and helpers for expectations.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::subject::{Killed, States, Subject};
use crate::client::{Accepted, AgentReply, Client, ClientError, Endpoint, JSON};
use crate::wire::{
    Acknowledgement, ActionId, ActionReport, ActionRequest, Code, Fence, Owner, Phase, Problem,
};

/// The time limit for steps that should take a moment.
const STEP_LIMIT: Duration = Duration::from_mins(5);

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

/// Breaks the rule, unless `so` is true; `otherwise` is what was seen instead.
pub(super) fn expect(so: bool, otherwise: &str) -> Check {
    expect_or(so, || otherwise.to_owned())
}

/// Breaks the rule, unless `so` is true.
pub(super) fn expect_or(so: bool, otherwise: impl FnOnce() -> String) -> Check {
    if so {
        Ok(())
    } else {
        Err(Stop::Broken(otherwise()))
    }
}

/// Breaks the rule, unless both values are equal.
pub(super) fn same<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Check {
    expect_or(seen == expected, move || {
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

impl WorldWork {
    /// Returns the body of the request.
    pub(super) fn body(&self) -> Check<Value> {
        serde_json::to_value(&self.request).map_err(|error| Stop::Broken(error.to_string()))
    }
}

impl<'s> World<'s> {
    /// Creates the owner: an object that was created just now, in an epoch above all others.
    pub(super) async fn enter(subject: &'s Subject) -> Check<Self> {
        let client = subject.client.clone();
        let status = client.status().await?;
        let now = Timestamp::now();
        // A clock that is behind must not make this owner an old one.
        let before = status.owner.as_ref().map(|owner| owner.created_at);
        let created_at = before.map_or(now, |before| now.max(before)) + Duration::from_millis(1);
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
        let until = Instant::now() + STEP_LIMIT;
        loop {
            let status = self.client.status().await?;
            self.epoch = self.epoch.max(status.fence.epoch);
            let Some(action) = status.action.filter(|action| !action.phase.is_final()) else {
                return Ok(());
            };
            expect_or(Instant::now() < until, || {
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
        self.work(&self.states.brief.clone())
    }

    pub(super) fn failing(&mut self) -> WorldWork {
        self.work(&self.states.failing.clone())
    }

    pub(super) fn endless(&mut self) -> WorldWork {
        self.work(&self.states.endless.clone())
    }

    pub(super) async fn ask(&self, work: &WorldWork) -> Check<Accepted> {
        Ok(self.client.ask(&work.id, &work.request, None).await?)
    }

    /// Requests work, and expects that this begins an attempt.
    pub(super) async fn begin(&self, work: &WorldWork) -> Check<ActionReport> {
        let asked = self.ask(work).await?;
        expect(asked.began, "PUT of new work answers 200, not 201")?;
        Ok(asked.report)
    }

    /// Requests work that does not end by itself.
    pub(super) async fn begin_endless(&mut self) -> Check<WorldWork> {
        let work = self.endless();
        self.begin(&work).await?;
        Ok(work)
    }

    /// Requests short work and waits for its end, which must be a success.
    pub(super) async fn done_brief(&mut self) -> Check<WorldWork> {
        let work = self.brief();
        self.done(&work, Phase::Succeeded).await?;
        Ok(work)
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
        let ended = |report: &ActionReport| Ok(report.phase.is_final());
        self.wait(id, "does not end", ended).await
    }

    /// Waits until an action runs.
    pub(super) async fn running(&self, id: &ActionId) -> Check {
        let running = |report: &ActionReport| {
            expect_or(!report.phase.is_final(), || {
                format!("{id} has ended ({:?}), and should go on", report.phase)
            })?;
            Ok(report.phase == Phase::Running)
        };
        self.wait(id, "is not begun", running).await.map(drop)
    }

    /// Waits until the report about an action fits.
    pub(super) async fn wait(
        &self,
        id: &ActionId,
        otherwise: &str,
        fits: impl Fn(&ActionReport) -> Check<bool>,
    ) -> Check<ActionReport> {
        let until = Instant::now() + STEP_LIMIT;
        loop {
            let report = self.report(id).await?;
            if fits(&report)? {
                return Ok(report);
            }
            expect_or(Instant::now() < until, || format!("{id} {otherwise}"))?;
            sleep(Duration::from_millis(20)).await;
        }
    }

    pub(super) async fn report(&self, id: &ActionId) -> Check<ActionReport> {
        Ok(self.client.report(id, Duration::ZERO).await?)
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
        Ok(self.client.raw(method, &path, body).await?)
    }

    /// Sends any request under the version, and expects this refusal.
    pub(super) async fn refuses(
        &mut self,
        method: Method,
        path: &str,
        body: Option<(Bytes, &'static str)>,
        code: Code,
    ) -> Check<Problem> {
        let reply = self.send(method, path, body).await?;
        self.is_refusal(&reply, code)
    }

    /// Sends a body with PUT, and expects this refusal.
    pub(super) async fn refuses_put(
        &mut self,
        path: &str,
        body: &Value,
        code: Code,
    ) -> Check<Problem> {
        let put = Some((Bytes::from(body.to_string()), JSON));
        self.refuses(Method::PUT, path, put, code).await
    }

    /// Acknowledges an attempt, and expects this refusal.
    pub(super) async fn refuses_acknowledgement(
        &mut self,
        work: &WorldWork,
        attempt: u32,
        epoch: u64,
        code: Code,
    ) -> Check {
        let path = format!("/actions/{}/acknowledgement", work.id);
        let body = json!({ "attempt": attempt, "epoch": epoch });
        self.refuses_put(&path, &body, code).await.map(drop)
    }

    /// Cancels an action, and expects this refusal.
    pub(super) async fn refuses_cancel(
        &mut self,
        work: &WorldWork,
        epoch: u64,
        code: Code,
    ) -> Check {
        let path = format!("/actions/{}?epoch={epoch}", work.id);
        let refused = self.refuses(Method::DELETE, &path, None, code);
        refused.await.map(drop)
    }

    /// Requests work, and expects this refusal.
    pub(super) async fn refused(&mut self, work: &WorldWork, code: Code) -> Check<Problem> {
        let path = format!("/actions/{}", work.id);
        self.refuses_put(&path, &work.body()?, code).await
    }

    /// Expects that an answer is this refusal. Faults of its document are kept for [`problem_documents`].
    pub(super) fn is_refusal(&mut self, reply: &AgentReply, code: Code) -> Check<Problem> {
        let status = reply.status.as_u16();
        let (expected, mender, retry) = code.meaning();
        let problem = serde_json::from_slice::<Problem>(&reply.body);
        let given = problem.as_ref().ok().map(|problem| problem.code);
        expect_or(
            status == expected && given.is_none_or(|given| given == code),
            || {
                let given = given.map_or_else(|| "no code".to_owned(), |code| format!("{code:?}"));
                format!("the answer is {status} ({given}), not {expected} ({code:?})")
            },
        )?;
        self.refusals += 1;
        let header = reply.headers.get(CONTENT_TYPE);
        let text = header.and_then(|kind| kind.to_str().ok());
        let kind = text.unwrap_or("nothing");
        let wrong = &mut self.wrong_problems;
        if !kind.starts_with("application/problem+json") {
            wrong.push(format!(
                "{code:?} is sent as {kind}, not application/problem+json"
            ));
        }
        match &problem {
            Ok(Problem {
                status,
                mender: by,
                retry: again,
                ..
            }) if (*status, *by, *again) != (expected, mender, retry) => wrong.push(format!(
                "{code:?} has status {status}, mender {by:?}, retry {again}, not {expected}, {mender:?}, {retry}"
            )),
            Ok(_) => {}
            Err(error) => wrong.push(format!(
                "the body of {code:?} is no problem document: {error}"
            )),
        }
        Ok(problem.unwrap_or_else(|_| Problem::new(code, "")))
    }
}

/// Checks the faults that the earlier checks have found in refusals.
pub(super) async fn problem_documents(world: &mut World<'_>) -> Check {
    if world.refusals == 0 {
        let work = world.work("NoSuchState-conformance");
        world.refused(&work, Code::NoSuchWork).await?;
    }
    let wrong = &world.wrong_problems;
    expect_or(wrong.is_empty(), || wrong.join("; "))
}
