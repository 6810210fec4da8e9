//! Work at an agent, from the action of the operator to the outcome.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use okt_agent::client::{Carried, ClientError, News, Order};
use okt_agent::wire::{ActionId, ActionReport, ActionRequest, Code, Fence};
use okt_core::Lifecycle;
use okt_reach::Failure;
use okt_telemetry::traces;
use okt_wire::object::{LifecycleObject, position_of};
use okt_wire::read;
use tokio::time::{Instant, sleep};

use super::outcome::{self, Performed};
use super::{Agents, owner_of};
use crate::author::context::Action;

/// How long an operator that an agent refuses as outdated waits to lose the leadership, before it reports the refusal.
const FENCED: Duration = Duration::from_mins(1);
const FENCED_PAUSE: Duration = Duration::from_secs(5);

/// How long an agent may not answer before the progress reports it: most problems are over sooner.
const TROUBLE: Duration = Duration::from_secs(10);

impl<K: LifecycleObject> Agents<K> {
    /// Has the agent do the work of the action's state.
    ///
    /// # Flow
    ///
    /// The operator asks the agent until the work is done, and passes on its progress. The agent knows the action as
    /// `<uid>.<transition>`, with `.<k>` for the k-th run and `-<token>` if the id of the action ends in `@<token>`.
    /// If the action is cancelled, this returns when the agent has ended the work. If this future is dropped, as when
    /// the operator stops, the work continues, and the next operator finds it by its name.
    ///
    /// # Guarantees
    ///
    /// However often operator and agent restart, work that succeeded is not repeated, and work with an unknown outcome
    /// is not repeated without a decision to do so.
    ///
    /// # Errors
    ///
    /// | error | reason | retried |
    /// |---|---|---|
    /// | the agent reports that the work failed | the agent's | as the agent says |
    /// | the outcome is unknown | `OutcomeUnknown` | no, unless [`repeat_unknown`](Self::repeat_unknown): the object takes the state's `on_error` at once, or is stalled |
    /// | the work was cancelled at the agent | `Cancelled` | yes |
    /// | the agent names a state that no edge leads to | `NoEdge` | no |
    /// | the agent refuses | the code of the refusal | no for `NoSuchWork` (yes for an agent in a Pod: one with another configuration may start), `ForeignOwner` and mistakes of a client; yes for others |
    ///
    /// An agent that does not answer is asked until the attempt times out, because the work may be under way.
    pub async fn perform(&self, action: &Action<K>) -> Result<Performed<K::State>, Failure> {
        let state = action.state().known().ok_or_else(|| {
            Failure::retry("NoState", "the object is in no state that the graph knows")
        })?;
        let client = (self.find)(action)?;
        let name = id_at_agent(action.id());
        let again = self.begin(action, &name);
        let mut order = self.order(action, state, &name, again)?;
        let began = Instant::now();
        // The agent works on without this operator.
        action.is_elsewhere.store(true, Ordering::Release);
        let _here_again = Returned(&action.is_elsewhere);
        let mut trouble = None;
        let mut report = |news: News<'_>| report(action, &mut trouble, news);
        let carried = loop {
            // It grows while the operator runs.
            order.request.fence.epoch = self.epoch_of(action);
            // Its Secret may be another one meanwhile.
            let renewed = || (self.find)(action).ok();
            let carried = client.carry_renewed(&order, action.cancelled(), &mut report, renewed);
            let carried = carried.await;
            // The loss of the leadership may be noticed late: an operator that is no longer the leader must change
            // nothing, not even a status.
            match &carried {
                Err(error) if is_fenced(error) && began.elapsed() < FENCED => {
                    tracing::warn!(action = %order.id, "{error}");
                }
                Ok(_) | Err(_) => break carried,
            }
            tokio::select! {
                () = action.cancelled() => return Err(outcome::withdrawn()),
                () = sleep(FENCED_PAUSE) => {}
            }
        };
        match carried {
            Ok(Carried::Ended(report)) => {
                self.end(&order);
                outcome::of_report(state, report, self.repeats_unknown)
            }
            Ok(Carried::Withdrawn(_)) => {
                self.end(&order);
                Err(outcome::withdrawn())
            }
            Err(error) => Err(outcome::of_error(
                state,
                &error,
                self.repeats_unknown,
                self.awaits_work,
            )),
        }
    }

    /// Notes that an action is under way. Returns whether an end that the agent still keeps was taken before.
    ///
    /// That is so if this operator decided to start or repeat the work, and did not itself leave an earlier end
    /// untaken.
    fn begin(&self, action: &Action<K>, name: &str) -> bool {
        let uid = owner_of(action.object()).uid;
        let lost_sight = self
            .open
            .lock()
            .begin(uid, name, action.cancellation.clone());
        !action.resumed() && !lost_sight
    }

    /// Notes that the outcome of an action is taken.
    fn end(&self, order: &Order) {
        self.open.lock().end(&order.request.owner.uid);
    }

    fn order(
        &self,
        action: &Action<K>,
        state: K::State,
        name: &str,
        again: bool,
    ) -> Result<Order, Failure> {
        let id = name.parse::<ActionId>();
        let (Ok(id), Some((transition, run))) = (id, numbers(action.id())) else {
            let message = format!("`{}` cannot name an action of an agent", action.id());
            return Err(Failure::permanent("BadActionId", message));
        };
        let object = action.object();
        let from = (self.from)(state).into_iter();
        let request = ActionRequest {
            state: state.name().to_owned(),
            owner: owner_of(object),
            fence: Fence {
                epoch: self.epoch_of(action),
                transition,
                run,
                recorded_at: recorded_at(object),
            },
            graph: Some(self.graph.as_ref().to_owned()),
            from: from.map(|state| state.name().to_owned()).collect(),
            input: (self.input)(object),
        };
        let piece = format!("{}/{}", action.id(), action.attempt());
        let uid = object.meta().uid.as_deref().unwrap_or_default();
        let generation = traces::generation(object);
        Ok(Order {
            id,
            request,
            traceparent: Some(traces::traceparent(uid, generation, &piece)),
            again,
        })
    }
}

/// Notes at its end that the work is done here again.
struct Returned<'a>(&'a AtomicBool);

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Returns the id of an action as its agent knows it. It is valid in file names, unlike [`Action::id`].
///
/// ```
/// use okt::sidecar::id_at_agent;
///
/// assert_eq!(id_at_agent("7c5d/12/2@18f3c"), "7c5d.12.2-18f3c");
/// ```
pub fn id_at_agent(id: &str) -> String {
    id.replace('/', ".").replace(read::TOKEN, "-")
}

/// Returns when the work was recorded in the object's status: the same for every request of the same attempt.
fn recorded_at<K: LifecycleObject>(object: &K) -> Timestamp {
    let position = position_of(object);
    let begun = position.and_then(|position| position.action.as_ref()?.started_at);
    begun
        .or_else(|| position?.since)
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the transition and run of an action (e.g. 12 and 2 of `7c5d/12/2` and of `7c5d/12/2@k3x9`).
fn numbers(id: &str) -> Option<(u64, u64)> {
    let mut parts = read::plain(id).split('/').skip(1);
    let transition = parts.next()?.parse().ok()?;
    let run = match parts.next() {
        Some(run) => run.parse().ok()?,
        None => 1,
    };
    Some((transition, run))
}

fn is_fenced(error: &ClientError) -> bool {
    error.code() == Some(Code::Fenced)
}

/// Reports progress and lasting problems of the work.
fn report<K: LifecycleObject>(action: &Action<K>, since: &mut Option<Instant>, news: News<'_>) {
    match news {
        News::Going(report) => {
            *since = None;
            action.progress(words_of(report));
        }
        News::Trouble(error) => {
            let since = since.get_or_insert_with(Instant::now);
            if since.elapsed() >= TROUBLE {
                action.progress(error.to_string());
            }
        }
    }
}

/// Returns the progress of an action as text.
fn words_of(report: &ActionReport) -> String {
    let Some(progress) = &report.progress else {
        return String::new();
    };
    match (progress.percent, progress.message.as_str()) {
        (Some(percent), "") => format!("{percent} %"),
        (Some(percent), message) => format!("{percent} %: {message}"),
        (None, message) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_named_and_numbered_with_and_without_a_token_at_its_end() {
        for (id, name, at) in [
            ("7c5d/12", "7c5d.12", (12, 1)),
            ("7c5d/12/2", "7c5d.12.2", (12, 2)),
            ("7c5d/12@k3x9", "7c5d.12-k3x9", (12, 1)),
            ("7c5d/12/2@k3x9", "7c5d.12.2-k3x9", (12, 2)),
        ] {
            assert_eq!(id_at_agent(id), name);
            assert!(name.parse::<ActionId>().is_ok(), "{name}");
            assert_eq!(numbers(id), Some(at), "{id}");
        }
        for id in ["7c5d", "7c5d/", "7c5d/x@1", "7c5d/1/@2", "@7c5d/1"] {
            assert_eq!(numbers(id), None, "{id}");
        }
    }
}
