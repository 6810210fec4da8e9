//! Steps of a handler, which a crash does not repeat: single ones, and those for a set of parts, each with its own attempts.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use okt_core::{Cause, Lifecycle, reasons};
use okt_reach::Failure;
use okt_telemetry::event::Event;
use okt_wire::object::LifecycleObject;
use okt_wire::read;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::author::context::Action;
use crate::author::recording::{bad_step, check_name};

/// The reason of the Event about a part that is done.
const DONE: &str = "StepDone";

/// The reason of the Event about a failed attempt on a part.
const FAILED: &str = "StepFailed";

tokio::task_local! {
    /// Set while a step runs.
    static IN_STEP: ();
}

/// Runs the work of a step.
fn within_step<F: Future>(work: F) -> impl Future<Output = F::Output> {
    IN_STEP.scope((), work)
}

impl<K: LifecycleObject> Action<K> {
    /// Does a part of the work once: its result is recorded, and returned instead of doing it again, in a later attempt,
    /// after a crash, and by the next operator.
    ///
    /// `work` gets the id of the step, `<id of the action>/<name>`. A crash before the result is recorded repeats it under
    /// that id, so it must be idempotent by it, as all work. An error is not recorded.
    /// What the handler has [remembered](Self::remember) before is recorded with the result, in one write of the status.
    ///
    /// A step ends with its action: the next action, also of another revision, does it again.
    /// Name each step once in a handler, whatever the handler has found before, and begin no step within a step.
    ///
    /// ```
    /// # use okt::{Action, Failure, LifecycleObject};
    /// # async fn create_user(id: &str) -> Result<String, Failure> { Ok(id.to_owned()) }
    /// # async fn grant(id: &str, user: &str) -> Result<(), Failure> { Ok(()) }
    /// # async fn example<K: LifecycleObject>(cx: &Action<K>) -> Result<(), Failure> {
    /// let user: String = cx.step("create-user", |id| async move { create_user(&id).await }).await?;
    /// cx.step("grant", |id| async move { grant(&id, &user).await }).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// That of `work`. [`BAD_STEP`](okt_core::reasons::BAD_STEP), for which no retry helps, if the name is used twice or is no name
    /// of up to 63 lower-case letters, digits and hyphens, within another step, or if the result takes more than 4 KiB as
    /// JSON or cannot be read again. If the work is cancelled before the result is recorded.
    pub async fn step<T, F, E>(
        &self,
        name: &str,
        work: impl FnOnce(String) -> F,
    ) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>>,
        E: Into<Failure>,
    {
        self.begin_step(name)?;
        if let Some(result) = self.recording.done(name)? {
            return Ok(result);
        }
        let id = format!("{}/{name}", self.id());
        let result = within_step(work(id)).await.map_err(Into::into)?;
        self.recording.add(name, &result)?;
        self.recording.recorded_now(&self.cancellation).await?;
        Ok(result)
    }

    /// Takes a step for each of a set of parts, which [`step`](Self::step) describes: one after the other, or
    /// [several at once](PartSteps::at_once).
    ///
    /// Each part has its own attempts, with a backoff between them, that do not count as attempts of the action. Its
    /// result, or its failed attempts, are recorded under `<name>/<part>`. The progress text says how many parts are
    /// done, and a part that is done or fails is an Event. What is recorded of a part that is no longer in the set is
    /// dropped.
    ///
    /// ```
    /// # use okt::{Action, Failure, LifecycleObject};
    /// # async fn drain(node: &str, id: &str) -> Result<u64, Failure> { Ok(0) }
    /// # async fn example<K: LifecycleObject>(cx: &Action<K>, nodes: Vec<String>) -> Result<(), Failure> {
    /// let drain = |part: okt::StepPart| async move { drain(&part.name, &part.id).await };
    /// let messages: Vec<u64> = cx.steps("drain", nodes).at_once(2).each(drain).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn steps<P: Into<String>>(
        &self,
        name: &str,
        parts: impl IntoIterator<Item = P>,
    ) -> PartSteps<'_, K> {
        PartSteps::new(self, name, parts.into_iter().map(Into::into).collect())
    }

    /// Notes that a step, or a set of steps, of this name begins.
    ///
    /// # Errors
    ///
    /// If it must not. A retry does not help.
    fn begin_step(&self, name: &str) -> Result<(), Failure> {
        check_name(name)?;
        if IN_STEP.try_with(|()| ()).is_ok() {
            return Err(bad_step(format!("`{name}` is a step within a step")));
        }
        if !self.steps.lock().insert(name.to_owned()) {
            return Err(bad_step(format!("the handler has two steps `{name}`")));
        }
        Ok(())
    }

    /// Notes that a call of the handler begins: it may name each step once.
    pub(crate) fn begin_steps(&self) {
        self.steps.lock().clear();
    }
}

/// Steps for a set of parts, made by [`Action::steps`].
#[must_use = "`each` takes the steps"]
pub struct PartSteps<'a, K: LifecycleObject> {
    action: &'a Action<K>,
    name: String,
    parts: Vec<String>,
    at_once: usize,
    attempts: Option<u32>,
    /// How many parts are done.
    done: AtomicUsize,
}

/// One attempt on a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepPart {
    /// The name of the part.
    pub name: String,
    /// The id of its step, the same in each attempt: `<id of the action>/<name of the steps>/<part>`.
    pub id: String,
    /// The number of the attempt on this part, starting at 1.
    pub attempt: u32,
}

impl<'a, K: LifecycleObject> PartSteps<'a, K> {
    pub(crate) fn new(action: &'a Action<K>, name: &str, parts: Vec<String>) -> Self {
        let state = action.state().known();
        let declared = state.and_then(|state| K::State::GRAPH.get(state.id()));
        let mut triggers = declared.into_iter().flat_map(|state| state.triggers);
        Self {
            action,
            name: name.to_owned(),
            parts,
            at_once: 1,
            attempts: triggers.find_map(|trigger| match trigger.cause {
                Cause::OnError { attempts } => Some(attempts),
                _ => None,
            }),
            done: AtomicUsize::new(0),
        }
    }

    /// Sets how many parts are worked on at once; 1 by default, in the order of the parts.
    pub fn at_once(mut self, parts: usize) -> Self {
        self.at_once = parts.max(1);
        self
    }

    /// Sets how many attempts on one part may fail; by default as many as `on_error` of the state says, and any number if
    /// the state has no such trigger.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts.max(1));
        self
    }

    /// Takes the step of each part; returns their results, in the order of the parts.
    ///
    /// # Errors
    ///
    /// If the last attempt on a part fails, or one fails permanently: permanently, once the parts under way have ended;
    /// no other is begun. Otherwise as of [`Action::step`].
    pub async fn each<T, F, E>(self, work: impl Fn(StepPart) -> F) -> Result<Vec<T>, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>>,
        E: Into<Failure>,
    {
        self.action.begin_step(&self.name)?;
        let mut known = BTreeSet::new();
        for part in &self.parts {
            check_name(part)?;
            if !known.insert(part) {
                let name = &self.name;
                return Err(bad_step(format!("`{name}` has the part `{part}` twice")));
            }
        }
        let recording = &self.action.recording;
        recording.keep(&self.name, |part| known.iter().any(|it| *it == part));
        let mut results: Vec<Option<T>> = self.parts.iter().map(|_| None).collect();
        let mut waiting = self.parts.iter().enumerate();
        let mut under_way = FuturesUnordered::new();
        let mut failed = None;
        loop {
            while failed.is_none() && under_way.len() < self.at_once {
                let Some((number, part)) = waiting.next() else {
                    break;
                };
                let (steps, work) = (&self, &work);
                under_way.push(async move { (number, steps.part(part, work).await) });
            }
            let Some((number, result)) = under_way.next().await else {
                break;
            };
            match result {
                Ok(result) => results[number] = Some(result),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        match failed {
            Some(failure) => Err(failure),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }

    /// Takes the step of one part, in as many attempts as it needs.
    async fn part<T, F, E>(&self, part: &str, work: &impl Fn(StepPart) -> F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = Result<T, E>>,
        E: Into<Failure>,
    {
        let (action, name) = (self.action, format!("{}/{part}", self.name));
        let recording = &action.recording;
        if let Some(result) = recording.done(&name)? {
            self.done.fetch_add(1, Ordering::Relaxed);
            return Ok(result);
        }
        loop {
            let attempt = recording.attempts(&name).saturating_add(1);
            let id = format!("{}/{name}", action.id());
            let given = StepPart {
                name: part.to_owned(),
                id,
                attempt,
            };
            let failure = match within_step(work(given)).await.map_err(Into::into) {
                Ok(result) => {
                    recording.add(&name, &result)?;
                    self.report_done(part);
                    recording.recorded_now(&action.cancellation).await?;
                    return Ok(result);
                }
                Err(failure) => failure,
            };
            self.report_failed(part, attempt, &failure);
            let is_news = recording.failed(&name, attempt, &failure)?;
            // Without a limit, attempts are not counted: each would be a write.
            if is_news || self.attempts.is_some() {
                recording.recorded_now(&action.cancellation).await?;
            }
            if failure.is_permanent() || self.attempts.is_some_and(|most| attempt >= most) {
                let message = format!("{name}: {}", failure.message());
                return Err(Failure::permanent(failure.reason(), message));
            }
            let wait = action.backoff.wait(attempt, read::hash(&name));
            let wait = wait.max(failure.retry_after().unwrap_or_default());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = action.cancelled() => {
                    return Err(Failure::retry(reasons::CANCELLED, "the work was cancelled"));
                }
            }
        }
    }

    /// Reports that a part is done, in the progress text and as an Event.
    fn report_done(&self, part: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let text = format!(
            "{}: {done} of {}, {part} is done",
            self.name,
            self.parts.len()
        );
        self.action.progress(text.clone());
        let what = format!("{}/{part}", self.name);
        self.action.event(Event::normal(DONE, what, text));
    }

    /// Reports a failed attempt on a part, in the progress text, as an Event, and in the log.
    fn report_failed(&self, part: &str, attempt: u32, failure: &Failure) {
        let what = format!("{}/{part}", self.name);
        let why = format!("attempt {attempt} failed: {failure}");
        tracing::warn!(step = what, "{why}");
        self.action.progress(format!("{what}: {why}"));
        self.action.event(Event::warning(FAILED, what, why));
    }
}
