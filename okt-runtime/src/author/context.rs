//! What an application is given: the object it acts upon, and the work it is asked to do.

use std::ops::Deref;
use std::sync::Arc;

use kube::Client;
pub use okt_core::decide::Why as Cause;
use tokio_util::sync::CancellationToken;

use crate::author::progress::Progress;
use crate::resources::Cluster;
use crate::wire::object::LifecycleObject;
use crate::wire::read;

/// The object that is observed or acted upon.
#[derive(Clone)]
pub struct Context<K: LifecycleObject> {
    object: Arc<K>,
    client: Client,
    pub(crate) cluster: Arc<Cluster<K>>,
}

impl<K: LifecycleObject> Context<K> {
    pub(crate) fn new(object: Arc<K>, client: Client, cluster: Arc<Cluster<K>>) -> Self {
        Self {
            object,
            client,
            cluster,
        }
    }

    /// The object as it was when this turn began, or when the action was recorded.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// A client for whatever else the application needs of the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The state on record; none for a new object, and for a name that the graph does not know.
    pub fn state(&self) -> Option<K::State> {
        self.object.status_of()?.lifecycle.as_ref()?.state.known()
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.object.meta().deletion_timestamp.is_some()
    }
}

/// The work of a state: what a handler is given.
///
/// It may be done twice under one id (after a crash, or when its outcome was lost), so it must be
/// idempotent by [`id`](Self::id).
pub struct Action<K: LifecycleObject> {
    context: Context<K>,
    id: String,
    attempt: u32,
    resumed: bool,
    pub(crate) cancellation: CancellationToken,
    pub(crate) progress: Progress,
}

impl<K: LifecycleObject> Action<K> {
    pub(crate) fn new(
        context: Context<K>,
        id: String,
        attempt: u32,
        resumed: bool,
        cancellation: CancellationToken,
        progress: Progress,
    ) -> Self {
        Self {
            context,
            id,
            attempt,
            resumed,
            cancellation,
            progress,
        }
    }

    /// Names this piece of work for ever, whatever restarts: `<uid>/<transition>@<time>`, with `/<k>` after the transition
    /// for the k-th revision.
    ///
    /// The time is the one at which the work was recorded, in milliseconds as hexadecimal digits: a backup of the cluster
    /// that is restored makes transitions again, and their work is other work. Do not read it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of this attempt, from 1; a hint, not part of the id.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What led into this state, also at a retry and after a restart; none where somebody else wrote the history.
    pub fn cause(&self) -> Option<Cause> {
        let status = self.context.object.status_of()?;
        read::cause(status.lifecycle.as_ref()?)
    }

    /// Whether the work may have been begun before by an operator that is gone.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Ends when the work is no longer wanted: a trigger has come, or the object is gone.
    ///
    /// Clean up and return; what is returned is not looked at any more.
    /// A handler that does not return is dropped at its next `.await` half a minute later.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Says how far the work is, for people: shown as `status.lifecycle.action.message`.
    ///
    /// At most 256 bytes, longer texts are cut; written at most every ten seconds, the newest wins.
    pub fn progress(&self, text: impl Into<String>) {
        self.progress.say(text.into());
    }
}

impl<K: LifecycleObject> Deref for Action<K> {
    type Target = Context<K>;

    fn deref(&self) -> &Context<K> {
        &self.context
    }
}
