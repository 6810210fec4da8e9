//! What an object owns in the cluster: declared for a state by its application, and kept so in every turn.
//!
//! | part | what |
//! |---|---|
//! | `kind`, `watches`, `declared`, `template` | what an author says |
//! | `stamp` | what every applied object carries |
//! | `kept`, `cluster` | what is there: the caches |
//! | `drift`, `ready` | how it compares with what was said |
//! | `settle` | requests: apply, repair, delete |

mod cluster;
mod declared;
mod drift;
mod kept;
mod kind;
mod ready;
mod settle;
mod stamp;
#[cfg(feature = "templates")]
mod template;
mod watches;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use kube::Resource;
use okt_core::backoff::Backoff;
use okt_core::{Lifecycle, StateId};
use tokio::time::Instant;

pub(crate) use self::cluster::{Cluster, name_of, named_from};
pub use self::declared::{Declared, Resources};
pub(crate) use self::kind::Kind;
use self::settle::{Efforts, Left, Occasion, Settling};
pub(crate) use self::settle::{Leave, Settlement};
pub use self::stamp::OWNER_LABEL;
#[cfg(feature = "templates")]
pub use self::template::{Template, TemplateError};
pub use self::watches::Watches;
use crate::application::{Application, StateOf};
use crate::context::Context;
use crate::failure::Failure;
use crate::read;
use crate::shared::Shared;
use crate::work::panic_text;

/// How long an application may take to say what should exist.
const LIMIT: Duration = Duration::from_secs(10);

/// How long what was told to go may take before somebody is told: most things are gone at once.
const LINGER: Duration = Duration::from_secs(1);

/// How long until what was told to go is looked at again, although nothing was heard of it.
const CLEARING: Duration = Duration::from_secs(30);

/// What is remembered of an object's resources from turn to turn; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct Tended {
    /// How they stood at last.
    pub(crate) settlement: Settlement,
    efforts: Efforts,
    /// Turns in a row in which the application could not say what should exist.
    failures: u32,
    /// When they are to be looked at again.
    due: Option<Instant>,
    /// What the wait for that is about.
    occasion: Option<Occasion>,
}

impl Tended {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.settlement == Settlement::AsDeclared
            && self.efforts.is_empty()
            && self.failures == 0
            && self.due.is_none()
    }

    /// How long until they are to be looked at again, although nothing happens.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// In this turn they are left as they are; what was due is due when that is over.
    pub(crate) fn pass_over(&mut self) {
        self.due = None;
        self.failures = 0;
    }

    /// Whether a failure still waits; unrelated events do not bring it forward.
    fn waits(&self, occasion: Occasion) -> bool {
        self.failures > 0
            && self.occasion == Some(occasion)
            && self.due.is_some_and(|due| Instant::now() < due)
    }

    /// The application could not say, or Kubernetes did not do it.
    fn failed(&mut self, failure: Failure, occasion: Occasion, backoff: &Backoff, seed: u64) {
        if self.occasion != Some(occasion) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        // What can only be mended by somebody is tried again seldom.
        let wait = if failure.is_permanent() {
            backoff.longest()
        } else {
            backoff.wait(self.failures, seed)
        };
        self.due = Some(Instant::now() + wait);
        self.occasion = Some(occasion);
        self.tell(Settlement::Failed(failure));
    }

    fn tell(&mut self, settlement: Settlement) {
        if let Settlement::Failed(failure) = &settlement
            && self.settlement != settlement
        {
            tracing::warn!("{failure}");
        }
        self.settlement = settlement;
    }
}

/// Brings the cluster to what the application declares for a state.
pub(crate) async fn tend<A: Application>(
    shared: &Shared<A>,
    cx: &Context<A::Resource>,
    tended: &mut Tended,
    state: StateOf<A>,
    leave: Leave,
) {
    let occasion = (cx.object().meta().generation, state.id());
    if tended.waits(occasion) {
        return;
    }
    let seed = read::seed(cx.object().meta().uid.as_deref().unwrap_or_default());
    let declared = match declared(&*shared.application, cx, state).await {
        Ok(declared) => declared,
        Err(failure) => return tended.failed(failure, occasion, &shared.backoff, seed),
    };
    tended.failures = 0;
    let settling = Settling {
        client: &shared.client,
        cluster: &shared.cluster,
        object: cx.object(),
        efforts: &mut tended.efforts,
        leave,
        occasion,
        backoff: shared.backoff,
        seed,
    };
    let settled = settling.settle(&declared).await;
    tended.due = settled.due.map(|due| Instant::now() + due);
    tended.tell(settled.settlement);
}

/// Deletes what Kubernetes will not delete with an object that may be forgotten; whether nothing of it is left.
pub(crate) async fn clear<A: Application>(
    shared: &Shared<A>,
    cx: &Context<A::Resource>,
    tended: &mut Tended,
) -> bool {
    let uid = cx.object().meta().uid.as_deref().unwrap_or_default();
    if shared.cluster.owned(uid).is_empty() {
        return true;
    }
    let state = cx.state();
    let last = state.map_or(StateId::UNKNOWN, Lifecycle::id);
    let occasion = (cx.object().meta().generation, last);
    if tended.waits(occasion) {
        return false;
    }
    let seed = read::seed(uid);
    let kept = match state {
        Some(state) => declared(&*shared.application, cx, state).await.ok(),
        None => None,
    };
    let settling = Settling {
        client: &shared.client,
        cluster: &shared.cluster,
        object: cx.object(),
        efforts: &mut tended.efforts,
        leave: Leave {
            creates: false,
            prunes: true,
        },
        occasion,
        backoff: shared.backoff,
        seed,
    };
    match settling.clear(kept.as_ref()).await {
        Ok(Left::Nothing) => return true,
        Ok(Left::JustDeleted) => {
            tended.settlement = Settlement::AsDeclared;
            tended.due = Some(Instant::now() + LINGER);
        }
        Ok(Left::These(left)) => {
            tended.settlement = Settlement::Awaited(left);
            tended.due = Some(Instant::now() + CLEARING);
        }
        Err(failure) => tended.failed(failure, occasion, &shared.backoff, seed),
    }
    false
}

/// Asks the application what should exist; what hangs or panics has failed.
async fn declared<A: Application>(
    application: &A,
    cx: &Context<A::Resource>,
    state: StateOf<A>,
) -> Result<Resources, Failure> {
    let asked = AssertUnwindSafe(application.resources(cx, state)).catch_unwind();
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(declared)) => declared,
        Ok(Err(panic)) => Err(Failure::retry("Panicked", panic_text(&*panic))),
        Err(_) => {
            let message = format!(
                "what should exist in {} was not said within 10 s",
                state.name()
            );
            Err(Failure::retry("TimedOut", message))
        }
    }
}
