//! What an object owns in the cluster: declared for a state by its application, and kept so in every turn.
//!
//! | part | what |
//! |---|---|
//! | `kind`, `watches`, `declared` | what an author says |
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
mod watches;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use kube::Resource;
use okt_core::Lifecycle;
use tokio::time::Instant;

pub(crate) use self::cluster::{Cluster, name_of, named_from};
pub use self::declared::{Declared, Resources};
pub(crate) use self::kind::Kind;
pub(crate) use self::settle::{Leave, Settlement};
use self::settle::{Left, Repairs, Settling};
pub use self::stamp::OWNER_LABEL;
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

/// What is remembered of an object's resources from turn to turn; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct Tended {
    /// How they stood at last.
    pub(crate) settlement: Settlement,
    repairs: Repairs,
    /// Turns in a row in which something could not be done.
    failures: u32,
    /// When they are to be looked at again, and the generation that this is about.
    due: Option<(Instant, Option<i64>)>,
}

impl Tended {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        self.settlement == Settlement::AsDeclared
            && self.repairs.is_empty()
            && self.failures == 0
            && self.due.is_none()
    }

    /// How long until they are to be looked at again, although nothing happens.
    pub(crate) fn due(&self) -> Option<Duration> {
        let (due, _) = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// Another state was entered: other things are declared there.
    pub(crate) fn begin_anew(&mut self) {
        self.failures = 0;
        self.due = None;
    }

    /// Whether a failure still waits; unrelated events do not bring it forward.
    fn waits(&self, generation: Option<i64>) -> bool {
        self.failures > 0
            && self
                .due
                .is_some_and(|(due, of)| of == generation && Instant::now() < due)
    }

    fn failed(&mut self, failure: Failure, wait: Duration, generation: Option<i64>) {
        tracing::warn!("{failure}");
        self.failures = self.failures.saturating_add(1);
        self.settlement = Settlement::Failed(failure);
        self.due = Some((Instant::now() + wait, generation));
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
    let generation = cx.object().meta().generation;
    if tended.waits(generation) {
        return;
    }
    let seed = read::seed(cx.object().meta().uid.as_deref().unwrap_or_default());
    let declared = match declared(&*shared.application, cx, state).await {
        Ok(declared) => declared,
        Err(failure) => {
            let wait = wait_after(shared, tended, &failure, seed);
            return tended.failed(failure, wait, generation);
        }
    };
    if declared == Resources::new() && shared.cluster.watches.owned.is_empty() {
        return;
    }
    let mut settling = Settling {
        client: &shared.client,
        cluster: &shared.cluster,
        object: cx.object(),
        repairs: &mut tended.repairs,
        leave,
        backoff: shared.backoff,
        seed,
    };
    let settled = settling.settle(&declared).await;
    if let Settlement::Failed(failure) = settled.settlement {
        let wait = wait_after(shared, tended, &failure, seed);
        return tended.failed(failure, wait, generation);
    }
    tended.failures = 0;
    tended.settlement = settled.settlement;
    tended.due = settled.due.map(|due| (Instant::now() + due, generation));
}

/// What can only be mended by somebody is tried again seldom.
fn wait_after<A: Application>(
    shared: &Shared<A>,
    tended: &Tended,
    failure: &Failure,
    seed: u64,
) -> Duration {
    if failure.is_permanent() {
        shared.backoff.longest()
    } else {
        shared.backoff.wait(tended.failures.saturating_add(1), seed)
    }
}

/// Deletes what Kubernetes will not delete with an object that may be forgotten; whether nothing of it is left.
pub(crate) async fn clear<A: Application>(
    shared: &Shared<A>,
    cx: &Context<A::Resource>,
    tended: &mut Tended,
) -> bool {
    let generation = cx.object().meta().generation;
    if tended.waits(generation) {
        return false;
    }
    let seed = read::seed(cx.object().meta().uid.as_deref().unwrap_or_default());
    let settling = Settling {
        client: &shared.client,
        cluster: &shared.cluster,
        object: cx.object(),
        repairs: &mut tended.repairs,
        leave: Leave {
            creates: false,
            prunes: true,
        },
        backoff: shared.backoff,
        seed,
    };
    match settling.clear().await {
        Ok(Left::Nothing) => true,
        Ok(Left::JustDeleted) => {
            tended.due = Some((Instant::now() + LINGER, generation));
            false
        }
        Ok(Left::These(left)) => {
            tended.settlement = Settlement::Awaited(left);
            tended.due = None;
            false
        }
        Err(failure) => {
            let wait = wait_after(shared, tended, &failure, seed);
            tended.failed(failure, wait, generation);
            false
        }
    }
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
