//! Failed writes: each is retried with backoff, and those that only a person can fix are reported.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::Resource;
use okt_core::conditions::bounded;
use okt_core::machine::{
    Retry, Setup, ShowFailure, ShowResult, StatusDiff, Stored, Write, WriteError,
};
use okt_core::{Lifecycle, reasons};
use okt_telemetry::Written;
use okt_wire::annotations;
use okt_wire::api_timeout::retry_after;
use okt_wire::clock::moment;
use okt_wire::object::LifecycleObject;
use okt_wire::refusal::Refusal;
use okt_wire::texts::api_message;

use super::occurrences::troubles;
use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};
use crate::reconcile::change::{PassOf, change};
use crate::reconcile::memory::Remembered;
use crate::reconcile::report::{self, NotRecorded};

impl Remembered {
    /// Takes the failure of a write: when it is retried, and what is reported.
    ///
    /// Every code is retried, also 404: as long as the cache has the object, it may exist.
    pub(super) fn write_failed(
        &mut self,
        setup: &Setup<'_>,
        write: impl Into<Write>,
        error: &kube::Error,
    ) {
        let kind = match error {
            kube::Error::Api(status) if status.is_conflict() => WriteError::Conflict,
            error if remedy(error).is_some() => WriteError::Refused,
            error => retry_after(error).map_or(WriteError::Failed, WriteError::Busy),
        };
        let retry = self.machine.write_failed(write, kind, setup, moment());
        self.note_failure(retry, error);
    }

    /// Logs a failed write of which the machine knows, and notes what is to be reported of it.
    pub(super) fn note_failure(&mut self, retry: Retry, error: &kube::Error) {
        let (remedy, wait) = (remedy(error), retry.wait);
        let text = api_message(error);
        if remedy.is_some() {
            tracing::error!(?wait, "cannot write: {text}");
        } else if matches!(error, kube::Error::Api(status) if status.is_conflict()) {
            tracing::debug!(?wait, "cannot write: {text}");
        } else {
            tracing::warn!(?wait, "cannot write: {text}");
        }
        self.failure = retry
            .is_reported
            .then(|| Box::new(reason_and_message(error, remedy, &text)));
    }
}

fn reason_and_message(
    error: &kube::Error,
    remedy: Option<(&'static str, &'static str)>,
    text: &str,
) -> (&'static str, String) {
    match (remedy, error) {
        (Some((reason, advice)), _) => (
            reason,
            format!("the API server refuses what the operator would write: {text}; {advice}"),
        ),
        (None, kube::Error::Service(error)) if error.is::<NotRecorded>() => (
            reasons::WRITE_FAILED,
            format!(
                "the API server does not keep what the operator writes: {error}; an admission webhook or a proxy changes the status on its way; the write is retried"
            ),
        ),
        (None, _) => (
            reasons::WRITE_FAILED,
            format!(
                "the API server does not carry out what the operator writes: {text}; the write is retried; see the log of the API server"
            ),
        ),
    }
}

/// Returns the reason and the remedy of an error that a retry does not fix; none for other errors.
///
/// Such an error needs a change of a schema, a CEL rule, a role, or of whatever else refuses the write.
fn remedy(error: &kube::Error) -> Option<(&'static str, &'static str)> {
    let kube::Error::Api(status) = error else {
        return None;
    };
    let advice = Refusal::of(status).advice();
    match status.code {
        403 => Some((
            reasons::FORBIDDEN,
            advice.unwrap_or("the message names what refuses it"),
        )),
        400 | 405 | 406 | 413 | 415 | 422 => Some((
            reasons::REFUSED,
            advice.unwrap_or("apply the CRD of this operator"),
        )),
        _ => None,
    }
}

impl<A: Application> Reconciliation<'_, A> {
    /// Reports in the conditions that a write fails; the position stays as it is.
    pub(super) async fn show_failure(&mut self, effect: ShowFailure) {
        let shown = self.show().await;
        let result = match &shown {
            Ok(Some(stored)) => ShowResult::Written(stored),
            Ok(None) => ShowResult::Unchanged,
            Err(error) => {
                tracing::warn!(
                    "cannot report why the object is stalled: {}",
                    api_message(error)
                );
                ShowResult::Failed
            }
        };
        self.memory.machine.failure_shown(effect, result, moment());
    }

    /// Returns the answer to the write; none if the conditions report the failure already.
    async fn show(&mut self) -> Result<Option<Stored>, kube::Error> {
        let Some((reason, message)) = self.memory.failure.as_deref().cloned() else {
            return Ok(None);
        };
        let why = (reason, &*bounded(message));
        let object = &*self.object;
        let mut status = object.status_of().cloned().unwrap_or_default();
        status.observed_generation = object.meta().generation;
        let before = std::mem::take(&mut status.conditions);
        let now = self.shared.clock.now();
        let pass = self.shared.pass_graph();
        status.conditions = stalled::<StateOf<A>>(object.meta(), why, &before, now, pass);
        if change(object, &status, pass) == StatusDiff::None {
            return Ok(None);
        }
        let written = report::write(&self.shared.connection.direct, object, &status).await?;
        self.shared.telemetry.wrote(Written::Status);
        for trouble in troubles(object.status_of(), &status) {
            self.happened(trouble);
        }
        Ok(Some(self.became(written)))
    }
}

/// Returns the conditions of an object that is stalled for a reason outside its graph: `Ready` False and `Stalled`
/// True, the declared ones as they were.
pub(crate) fn stalled<S: Lifecycle>(
    meta: &ObjectMeta,
    (reason, message): (&str, &str),
    before: &[Condition],
    now: Timestamp,
    pass: PassOf,
) -> Vec<Condition> {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let condition = |name: &str, status: &str, reason: &str, message: &str| Condition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: meta.generation,
        last_transition_time: before
            .iter()
            .find(|c| c.type_ == name && c.status == status)
            .map_or(Time(now), |c| c.last_transition_time.clone()),
    };
    let (deleting, paused) = (
        match meta.deletion_timestamp {
            Some(_) => ("True", reasons::DELETING),
            None => ("False", reasons::NOT_DELETING),
        },
        if annotations::is_paused(meta) {
            ("True", reasons::PAUSED)
        } else {
            ("False", reasons::NOT_PAUSED)
        },
    );
    let mut conditions = vec![
        condition("Ready", "False", reason, message),
        condition("Stalled", "True", reason, message),
        condition("Deleting", deleting.0, deleting.1, ""),
        condition("Paused", paused.0, paused.1, ""),
    ];
    let lifecycle_states = S::GRAPH.states.iter();
    let states = lifecycle_states.chain(pass.iter().flat_map(|pass| pass.states));
    for declared in states.flat_map(|state| state.conditions) {
        if conditions.iter().any(|c| c.type_ == declared.name) {
            continue;
        }
        conditions.push(match before.iter().find(|c| c.type_ == declared.name) {
            Some(before) => Condition {
                observed_generation: meta.generation,
                ..before.clone()
            },
            None => condition(declared.name, "Unknown", reason, ""),
        });
    }
    conditions
}
