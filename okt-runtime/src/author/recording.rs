//! What a handler wants recorded of its object: with the end of its attempt, or at once.

use std::sync::Arc;

use okt_core::reasons;
use okt_reach::Failure;
use okt_wire::limits::{MEMORY_LIMIT, RESULT_LIMIT, STEP_LIMIT, STEPS_BYTES, STEPS_LIMIT};
use okt_wire::sealed::Sealed;
use okt_wire::status::{RecordedFailure, RecordedStep};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::resources::is_label;

/// What a handler wants recorded of its object; clones share it.
#[derive(Clone)]
pub(crate) struct Recording(Arc<Shared>);

struct Shared {
    pending: Mutex<Pending>,
    /// Up to which request everything is recorded.
    recorded: watch::Sender<u64>,
    /// Enqueues the object; none in tests of handlers, where everything counts as recorded at once.
    wake: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Clone, Default)]
struct Pending {
    /// What is to be remembered; none if that is recorded already.
    memory: Option<Sealed>,
    /// The steps of the action that are done.
    steps: Vec<RecordedStep>,
    /// The result of the request that the work serves.
    result: Option<Result<Sealed, String>>,
    /// The number of requests to record at once.
    asked: u64,
}

/// What is to be recorded at one moment.
pub(crate) struct ToRecord {
    pub(crate) memory: Option<Sealed>,
    /// The steps that are done; none if there are none.
    pub(crate) steps: Option<Sealed>,
    /// The result of the request that the work serves.
    pub(crate) result: Option<Sealed>,
    asked: u64,
}

impl Recording {
    /// Creates one for an action with these steps on record.
    pub(crate) fn new(steps: Vec<RecordedStep>, wake: Option<Box<dyn Fn() + Send + Sync>>) -> Self {
        let pending = Pending {
            steps,
            ..Pending::default()
        };
        Self(Arc::new(Shared {
            pending: Mutex::new(pending),
            recorded: watch::Sender::new(0),
            wake,
        }))
    }

    /// Returns what is to be recorded.
    pub(crate) fn get(&self) -> ToRecord {
        let Pending {
            memory,
            steps,
            result,
            asked,
        } = self.0.pending.lock().clone();
        ToRecord {
            memory,
            result: result.and_then(Result::ok),
            // A list of texts and JSON can always be written.
            steps: (!steps.is_empty())
                .then(|| Sealed::of(&steps).ok())
                .flatten(),
            asked,
        }
    }

    /// Returns whether the handler waits until something is recorded.
    pub(crate) fn is_awaited(&self) -> bool {
        self.0.pending.lock().asked > *self.0.recorded.borrow()
    }

    /// Notes that this is recorded.
    pub(crate) fn recorded(&self, what: &ToRecord) {
        let mut pending = self.0.pending.lock();
        pending
            .memory
            .take_if(|it| Some(&*it) == what.memory.as_ref());
        drop(pending);
        self.0.recorded.send_if_modified(|recorded| {
            let is_news = what.asked > *recorded;
            *recorded = what.asked.max(*recorded);
            is_news
        });
    }

    /// Changes what is to be remembered; `recorded` returns what is recorded.
    ///
    /// # Errors
    ///
    /// If it cannot be recorded or read again: then what was to be recorded before stays. A retry does not help.
    pub(crate) fn remember<M: Serialize + DeserializeOwned>(
        &self,
        recorded: impl FnOnce() -> M,
        change: impl FnOnce(&mut M),
    ) -> Result<(), Failure> {
        let unfit = |why: String| Failure::permanent(reasons::BAD_MEMORY, why);
        // Not locked while the author's code runs.
        let pending = self.0.pending.lock().memory.clone();
        let mut memory = match pending {
            Some(pending) => pending.read().map_err(unfit)?,
            None => recorded(),
        };
        change(&mut memory);
        let sealed = readable::<M>(&memory, MEMORY_LIMIT, "the memory of the object");
        self.0.pending.lock().memory = Some(sealed.map_err(unfit)?);
        Ok(())
    }

    /// Notes the result of the request that the work serves.
    pub(crate) fn finish<R: Serialize>(&self, result: &R) {
        let sealed = Sealed::of(result).map_err(|error| error.to_string());
        let sealed = sealed.and_then(|sealed| match sealed.len() {
            bytes if bytes > RESULT_LIMIT => Err(format!(
                "the result takes {bytes} bytes, and {RESULT_LIMIT} at most are recorded"
            )),
            _ => Ok(sealed),
        });
        self.0.pending.lock().result = Some(sealed);
    }

    /// Checks the result of the request that the work serves.
    ///
    /// # Errors
    ///
    /// Why it cannot be recorded. A retry does not help.
    pub(crate) fn check_result(&self) -> Result<(), Failure> {
        match &self.0.pending.lock().result {
            Some(Err(why)) => Err(Failure::permanent(reasons::BAD_RESULT, why.clone())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Returns the result of a step that is done; none if it is not.
    ///
    /// # Errors
    ///
    /// If the result does not decode. A retry does not help.
    pub(crate) fn done<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let pending = self.0.pending.lock();
        let is_it = |it: &&RecordedStep| it.name == name && it.failure.is_none();
        let Some(step) = pending.steps.iter().find(is_it) else {
            return Ok(None);
        };
        let sealed = Sealed::new(step.result.clone());
        let read = sealed.read();
        let unfit = |why| bad_step(format!("the recorded result of the step `{name}`: {why}"));
        read.map(Some).map_err(unfit)
    }

    /// Adds the result of a step.
    ///
    /// # Errors
    ///
    /// If it cannot be recorded or read again. A retry does not help.
    pub(crate) fn add<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        result: &T,
    ) -> Result<(), Failure> {
        let what = format!("the result of the step `{name}`");
        let result = readable::<T>(result, STEP_LIMIT, &what)
            .map_err(bad_step)?
            .value;
        self.put(RecordedStep {
            name: name.to_owned(),
            result,
            attempts: 0,
            failure: None,
        })
    }

    /// Returns how many attempts on a step have failed.
    pub(crate) fn attempts(&self, name: &str) -> u32 {
        let pending = self.0.pending.lock();
        let step = pending.steps.iter().find(|it| it.name == name);
        step.map_or(0, |step| step.attempts)
    }

    /// Notes a failed attempt on a step; returns whether the one before did not fail for this reason.
    ///
    /// # Errors
    ///
    /// If there are too many steps.
    pub(crate) fn failed(
        &self,
        name: &str,
        attempts: u32,
        failure: &Failure,
    ) -> Result<bool, Failure> {
        let failed = RecordedFailure::new(failure.reason(), failure.message());
        let before = {
            let pending = self.0.pending.lock();
            let step = pending.steps.iter().find(|it| it.name == name);
            step.and_then(|step| step.failure.clone())
        };
        let is_news = before.is_none_or(|before| before.reason != failed.reason);
        self.put(RecordedStep {
            name: name.to_owned(),
            result: Value::Null,
            attempts,
            failure: Some(failed),
        })?;
        Ok(is_news)
    }

    /// Forgets the parts of a set of steps that are no longer in the set.
    pub(crate) fn keep(&self, name: &str, is_part: impl Fn(&str) -> bool) {
        self.0.pending.lock().steps.retain(|step| {
            let part = step.name.split_once('/').filter(|(set, _)| *set == name);
            part.is_none_or(|(_, part)| is_part(part))
        });
    }

    /// Adds a step, or replaces the one of its name.
    fn put(&self, step: RecordedStep) -> Result<(), Failure> {
        let name = &step.name;
        let mut pending = self.0.pending.lock();
        pending.steps.retain(|it| it.name != *name);
        let bytes: usize = pending.steps.iter().map(RecordedStep::len).sum();
        if pending.steps.len() >= STEPS_LIMIT || bytes + step.len() > STEPS_BYTES {
            return Err(bad_step(format!(
                "`{name}` is one step too many: {STEPS_LIMIT} are recorded of one action, and {STEPS_BYTES} bytes of their results"
            )));
        }
        pending.steps.push(step);
        Ok(())
    }

    /// Waits until everything so far is recorded.
    ///
    /// # Errors
    ///
    /// If the work is cancelled before.
    pub(crate) async fn recorded_now(
        &self,
        cancellation: &CancellationToken,
    ) -> Result<(), Failure> {
        let Some(wake) = &self.0.wake else {
            return Ok(());
        };
        let asked = {
            let mut pending = self.0.pending.lock();
            pending.asked += 1;
            pending.asked
        };
        let mut recorded = self.0.recorded.subscribe();
        wake();
        tokio::select! {
            // The sender lives as long as `self`.
            _ = recorded.wait_for(|recorded| *recorded >= asked) => Ok(()),
            () = cancellation.cancelled() => {
                Err(Failure::retry(reasons::CANCELLED, "the work was cancelled"))
            }
        }
    }
}

/// Checks the name of a step.
///
/// # Errors
///
/// If it cannot be a part of an id. A retry does not help.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    if is_label(name) {
        return Ok(());
    }
    Err(bad_step(format!(
        "`{name}` is no name of a step: it has up to 63 lower-case letters, digits and hyphens"
    )))
}

/// The failure of code that uses steps in a way that cannot work.
pub(crate) fn bad_step(why: String) -> Failure {
    Failure::permanent(reasons::BAD_STEP, why)
}

/// Returns a value as it is recorded, if the next process can read it.
fn readable<T: Serialize + DeserializeOwned>(
    value: &T,
    limit: usize,
    what: &str,
) -> Result<Sealed, String> {
    let sealed = Sealed::of(value).map_err(|error| format!("{what}: {error}"))?;
    sealed.read::<T>().map_err(|why| format!("{what}: {why}"))?;
    match sealed.len() {
        bytes if bytes > limit => Err(format!(
            "{what} takes {bytes} bytes, and {limit} at most are recorded"
        )),
        _ => Ok(sealed),
    }
}
