//! Kubernetes Events: a sink that publishes what a person should read with `kubectl describe`.
//!
//! An event is published after the write that it is about, once for each reason, and never retried: the conditions say
//! the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::runtime::events::{Event as KubeEvent, Recorder, Reporter};
use okt_wire::api_timeout::answer;
use okt_wire::limit::Rate;
use okt_wire::status::Transition;
use okt_wire::texts::{api_message, cut, seconds};
use parking_lot::Mutex;

use super::event::{Cause, Edge, Event, LifecycleEvent, Occurrence};
use super::sinks::{AnySink, Sink};

/// Which transitions are Kubernetes Events. Troubles and the events of your own code are published in any case, except
/// with [`None`](Self::None).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum EventPolicy {
    /// Jumps, which are warnings, and transitions along trigger edges.
    #[default]
    WarningsAndTriggers,
    /// Every transition.
    All,
    /// No event at all.
    None,
}

/// The longest reason and action, in bytes: the API server takes 128.
const WORD_LIMIT: usize = 128;

/// The longest note, in bytes: the API server takes 1024.
const NOTE_LIMIT: usize = 1024;

/// How many events of one object are published at once, and how long until there may be one more, as in client-go.
const BURST: u32 = 25;
const PAUSE: Duration = Duration::from_mins(5);

/// Of how many objects the rates are remembered.
const REMEMBERED: usize = 4096;

/// Publishes Kubernetes Events.
pub struct KubeEvents {
    policy: EventPolicy,
    recorder: Recorder,
    rates: Mutex<HashMap<String, Rate>>,
}

impl KubeEvents {
    /// Returns the sink; `controller` is the name of this controller in the events.
    ///
    /// Boxed, so that it is compiled here, and not once more for each application.
    pub fn sink(client: Client, controller: String, policy: EventPolicy) -> Box<dyn AnySink> {
        let instance = std::env::var("HOSTNAME").ok().filter(|it| !it.is_empty());
        let reporter = Reporter {
            controller,
            instance,
        };
        Box::new(Self {
            policy,
            recorder: Recorder::new(client, reporter),
            rates: Mutex::default(),
        })
    }

    /// Returns whether this object may have one more event now.
    fn may_publish(&self, uid: &str) -> bool {
        let mut rates = self.rates.lock();
        if rates.len() >= REMEMBERED {
            rates.retain(|_, rate| !rate.is_rested());
            if rates.len() >= REMEMBERED {
                forget_one(&mut rates);
            }
        }
        let rate = rates.entry(uid.to_owned());
        rate.or_insert_with(|| Rate::new(PAUSE, BURST)).is_now()
    }
}

/// Forgets the object whose rate will be as that of a new one first.
fn forget_one(rates: &mut HashMap<String, Rate>) {
    let first = rates.iter().min_by_key(|(_, rate)| rate.rests_at());
    if let Some(first) = first.map(|(uid, _)| uid.clone()) {
        rates.remove(&first);
    }
}

impl Sink for KubeEvents {
    fn wants(&self, occurrence: &Occurrence) -> bool {
        is_published(self.policy, occurrence)
    }

    async fn record(&self, event: Arc<LifecycleEvent>) {
        let Some(published) = published(&event) else {
            return;
        };
        let uid = event.object.uid.as_deref().unwrap_or_default();
        let reason = published.reason.clone();
        if !self.may_publish(uid) {
            tracing::debug!(
                object = event.object.name,
                reason,
                "did not publish an event: the object has too many"
            );
            return;
        }
        if let Err(error) = answer(self.recorder.publish(&published, &event.object)).await {
            let why = api_message(&error);
            tracing::warn!(
                object = event.object.name,
                reason,
                "cannot publish an event: {why}"
            );
        }
    }
}

/// Returns whether there is a Kubernetes Event about what happened.
fn is_published(policy: EventPolicy, occurrence: &Occurrence) -> bool {
    match (policy, occurrence) {
        (EventPolicy::None, _)
        | (
            _,
            Occurrence::AttemptStarted { .. }
            | Occurrence::AttemptEnded { .. }
            | Occurrence::AttemptScheduled { .. },
        ) => false,
        (EventPolicy::WarningsAndTriggers, Occurrence::Transition { edge, trouble, .. }) => {
            // The event of the trouble gives the reason why the object moved.
            *edge == Edge::Jump || (*edge == Edge::Trigger && trouble.is_none())
        }
        (EventPolicy::All, Occurrence::Transition { .. })
        | (
            _,
            Occurrence::Trouble { .. } | Occurrence::Published(_) | Occurrence::Abandoned { .. },
        ) => true,
    }
}

/// Returns the Kubernetes Event about what happened; an attempt has none.
fn published(event: &LifecycleEvent) -> Option<KubeEvent> {
    let event = match &event.occurrence {
        Occurrence::Transition {
            transition,
            edge,
            cause,
            time_in_state,
            ..
        } => moved(transition, *edge, *cause, *time_in_state),
        Occurrence::Trouble { reason, message } => {
            Event::warning(reason.clone(), "Reconcile", message.clone())
        }
        Occurrence::Published(event) => event.clone(),
        Occurrence::Abandoned { state } => {
            let place = state.map_or(String::new(), |state| format!(" in {state}"));
            let note =
                format!("abandoned{place}; nothing cleans up what is left of the application");
            Event::warning("Abandoned", "Release", note)
        }
        Occurrence::AttemptStarted { .. }
        | Occurrence::AttemptEnded { .. }
        | Occurrence::AttemptScheduled { .. } => return None,
    };
    Some(KubeEvent {
        type_: event.type_,
        reason: cut(&event.reason, WORD_LIMIT),
        note: Some(cut(&event.note, NOTE_LIMIT)),
        action: cut(&event.action, WORD_LIMIT),
        secondary: event.related,
    })
}

/// Returns the event of a transition.
fn moved(
    transition: &Transition,
    edge: Edge,
    cause: Cause,
    time_in_state: Option<Duration>,
) -> Event {
    let (from, to) = (&transition.from, &transition.to);
    // Events are merged whatever their notes are, so the reason contains the state.
    if edge == Edge::Jump {
        let note = if from.is_empty() {
            format!("found in {to}, with nothing recorded")
        } else {
            format!("was in {from} by the record, is in {to}; no edge leads there")
        };
        return Event::warning(format!("JumpedTo{to}"), "Transition", note);
    }
    let why = cause.as_str();
    let note = match time_in_state {
        Some(time) => format!("entered {to} from {from} after {}: {why}", seconds(time)),
        None => format!("entered {to}: {why}"),
    };
    let reason = format!("Entered{to}");
    if cause == Cause::OnError {
        Event::warning(reason, "Transition", note)
    } else {
        Event::normal(reason, "Transition", note)
    }
}
