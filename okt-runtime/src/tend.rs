//! What an object owns, from one turn to the next: the application says what should exist, and the cluster is brought to it.

use std::time::Duration;

use kube::Resource;
use okt_core::{Lifecycle, StateId, reasons};

use crate::application::{Application, StateOf};
use crate::asked::Asker;
use crate::clock::after;
use crate::context::Context;
use crate::failure::Failure;
use crate::read;
use crate::resources::{
    self, Leave, Left, Pace, Resources, Settlement, Site, Tended, leaves_something,
};
use crate::shared::Shared;

/// How long what was told to go may take before somebody is told: most things are gone at once.
const LINGER: Duration = Duration::from_secs(1);

/// How long until what was told to go is looked at again, although nothing was heard of it.
const CLEARING: Duration = Duration::from_secs(30);

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
        Some(state) if leaves_something(&site, &beside) => {
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
    match resources::clear(&site, &kept, &mut tended.efforts, &pace).await {
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
