//! What an object owns in the cluster: declared for a state by its application, and kept so in every turn.
//!
//! | part | what |
//! |---|---|
//! | `kind`, `watches`, `declared`, `template` | what an author says |
//! | `names` | where an object is that another one names |
//! | `plain`, `stamp` | what every applied object carries |
//! | `kept`, `index`, `cluster` | what is there: the caches |
//! | `drift`, `ready` | how it compares with what was said |
//! | `site` | requests about it, words for it |
//! | `settle`, `clear`, `waves` | apply, repair, delete |
//! | `efforts` | how often something was tried |

mod clear;
mod cluster;
mod declared;
mod drift;
mod efforts;
mod index;
mod kept;
mod kind;
mod names;
mod plain;
mod ready;
mod settle;
mod site;
mod stamp;
#[cfg(feature = "templates")]
mod template;
mod watches;
mod waves;

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Resource;
use okt_core::reasons;
use okt_core::{Lifecycle, StateId};
use tokio::time::Instant;

use self::clear::Left;
pub(crate) use self::cluster::{Cluster, PAGE, name_of};
pub use self::declared::{Declared, Resources};
use self::efforts::Efforts;
pub(crate) use self::efforts::Pace;
pub(crate) use self::index::{MARK_LENGTH, Name};
pub(crate) use self::kind::Kind;
pub(crate) use self::names::{is_name, placed};
pub(crate) use self::ready::{Lack, lack};
use self::settle::{Accepted, Settling};
pub(crate) use self::settle::{Leave, Settled, Settlement};
pub(crate) use self::site::{Site, listed};
pub use self::stamp::OWNER_LABEL;
#[cfg(feature = "templates")]
pub use self::template::{Template, TemplateError};
pub use self::watches::Watches;
use crate::application::{Application, StateOf};
use crate::asked::Asker;
use crate::clock::after;
use crate::context::Context;
use crate::failure::Failure;
use crate::object::LifecycleObject;
use crate::read;
use crate::shared::Shared;

/// How long what was told to go may take before somebody is told: most things are gone at once.
const LINGER: Duration = Duration::from_secs(1);

/// How long until what was told to go is looked at again, although nothing was heard of it.
const CLEARING: Duration = Duration::from_secs(30);

/// What is remembered of an object's resources from turn to turn; all of it may be lost at any time.
#[derive(Debug, Default)]
pub(crate) struct Tended {
    /// How they stood at last.
    pub(crate) settlement: Settlement,
    /// This process has looked how they stand.
    looked_at: bool,
    efforts: Efforts,
    accepted: Accepted,
    /// What the status is to record of them; none where nobody has looked.
    pub(crate) to_record: Option<Vec<String>>,
    /// Since when what is recorded is neither declared nor there.
    absent: BTreeMap<String, Instant>,
    /// When they are to be looked at again.
    due: Option<Instant>,
}

impl Tended {
    /// Whether there is nothing to remember.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            settlement,
            looked_at: _,
            efforts,
            accepted,
            to_record: _,
            absent,
            due,
        } = self;
        *settlement == Settlement::AsDeclared
            && efforts.is_empty()
            && accepted.is_empty()
            && absent.is_empty()
            && due.is_none()
    }

    /// Whether the settlement is what this process has found.
    pub(crate) fn is_looked_at(&self) -> bool {
        self.looked_at
    }

    /// Whether the application did not say what is declared when it was asked last.
    pub(crate) fn is_silent(&self) -> bool {
        self.efforts.has_failed(&None)
    }

    /// How long until they are to be looked at again, although nothing happens.
    pub(crate) fn due(&self) -> Option<Duration> {
        let due = self.due?;
        Some(due.saturating_duration_since(Instant::now()))
    }

    /// In this turn they are left as they are; what was due is due when that is over.
    pub(crate) fn pass_over(&mut self) {
        self.due = None;
        self.efforts.forget(&None);
    }

    /// They are not looked at in this turn, and what was due for them is due with the next look.
    pub(crate) fn put_off(&mut self) {
        self.due = None;
    }

    /// Whether all of them wait; unrelated events do not bring that forward.
    fn waits(&self, pace: &Pace) -> bool {
        self.efforts.wait(&None, pace).is_some()
    }

    /// The application could not say, or Kubernetes did not do it.
    fn failed(&mut self, failure: Failure, pace: &Pace) {
        let wait = (self.efforts).made(None, pace, Some(failure.clone()));
        self.due = Some(after(wait));
        self.tell(Settlement::Failed(failure));
    }

    /// Brings the cluster to what is declared.
    pub(crate) async fn settle<K: LifecycleObject>(
        &mut self,
        site: Site<'_, K>,
        pace: Pace,
        leave: Leave,
        declared: &Resources,
    ) -> Settled {
        let settling = Settling {
            site,
            efforts: &mut self.efforts,
            accepted: &mut self.accepted,
            absent: &mut self.absent,
            leave,
            pace,
            applied: 0,
        };
        let settled = settling.settle(declared).await;
        self.to_record = Some(settled.to_record.iter().cloned().collect());
        settled
    }

    fn tell(&mut self, settlement: Settlement) {
        if let Settlement::Failed(failure) = &settlement
            && self.settlement != settlement
        {
            tracing::warn!("{failure}");
        }
        self.looked_at = true;
        self.settlement = settlement;
    }
}

/// Brings the cluster to what the application declares for a state, and to what is declared beside it.
pub(crate) async fn tend<A: Application>(
    shared: &Shared<A>,
    asker: &Asker<'_, A::Resource>,
    cx: &Context<A::Resource>,
    tended: &mut Tended,
    state: StateOf<A>,
    leave: Leave,
    beside: Resources,
) {
    let pace = pace(shared, cx, state.id());
    if tended.waits(&pace) {
        return;
    }
    let declared = match declared(asker, &*shared.application, cx, state).await {
        Ok(declared) => declared,
        Err(failure) => return tended.failed(failure, &pace),
    };
    tended.efforts.forget(&None);
    let declared = beside.and(declared);
    let may_write = || shared.may_start();
    let site = site(shared, cx, &may_write);
    let settled = tended.settle(site, pace, leave, &declared).await;
    tended.due = settled.due.map(after);
    tended.tell(settled.settlement);
}

/// Deletes what Kubernetes will not delete with an object that may be forgotten, but for what is kept, by its state or
/// beside it; whether nothing of it is left.
pub(crate) async fn clear<A: Application>(
    shared: &Shared<A>,
    asker: &Asker<'_, A::Resource>,
    cx: &Context<A::Resource>,
    tended: &mut Tended,
    beside: Resources,
) -> bool {
    let may_write = || shared.may_act();
    let site = site(shared, cx, &may_write);
    let hidden = shared.cluster.hidden();
    if hidden.is_none() && !shared.cluster.owns_anything(site.object.meta()) {
        return true;
    }
    let state = cx.state();
    let pace = pace(shared, cx, state.map_or(StateId::UNKNOWN, Lifecycle::id));
    if tended.waits(&pace) {
        return false;
    }
    if let Some(why) = hidden {
        // Something of it might be left behind, and nobody would ever know.
        tended.failed(Failure::retry(reasons::resources::NOT_WATCHED, why), &pace);
        return false;
    }
    let kept = match state {
        Some(state) if clear::leaves_something(&site, &beside) => {
            match declared(asker, &*shared.application, cx, state).await {
                Ok(declared) => beside.and(declared),
                // It is not known what is to be kept.
                Err(failure) => {
                    tended.failed(failure, &pace);
                    return false;
                }
            }
        }
        Some(_) | None => beside,
    };
    match clear::clear(&site, &kept, &mut tended.efforts, &pace).await {
        Ok(Left::Nothing) => return true,
        Ok(Left::JustDeleted) => {
            tended.settlement = Settlement::AsDeclared;
            tended.due = Some(after(LINGER));
        }
        Ok(Left::These(left)) => {
            tended.settlement = Settlement::Awaited(left);
            tended.due = Some(after(CLEARING));
        }
        Err(failure) => tended.failed(failure, &pace),
    }
    false
}

fn site<'a, A: Application>(
    shared: &'a Shared<A>,
    cx: &'a Context<A::Resource>,
    may_write: &'a (dyn Fn() -> bool + Send + Sync),
) -> Site<'a, A::Resource> {
    Site {
        client: &shared.client,
        cluster: &shared.cluster,
        object: cx.object(),
        may_write,
    }
}

/// How efforts for an object in a state are paced.
pub(crate) fn pace<A: Application>(
    shared: &Shared<A>,
    cx: &Context<A::Resource>,
    state: StateId,
) -> Pace {
    let meta = cx.object().meta();
    Pace {
        occasion: (meta.generation, state),
        backoff: shared.backoff,
        seed: read::seed(meta.uid.as_deref().unwrap_or_default()),
    }
}

/// Asks the application what should exist; what hangs or panics has failed.
async fn declared<A: Application>(
    asker: &Asker<'_, A::Resource>,
    application: &A,
    cx: &Context<A::Resource>,
    state: StateOf<A>,
) -> Result<Resources, Failure> {
    let question = application.resources(cx, state);
    match asker.ask(application.answer_limit(), question).await {
        Ok(declared) => declared,
        Err(unanswered) => {
            let name = state.name();
            Err(unanswered.failure(&format!("what should exist in {name} was not said")))
        }
    }
}
