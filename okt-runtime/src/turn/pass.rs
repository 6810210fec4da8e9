//! The pass in a turn: one walk through it, and what goes with the object.

use kube::Resource as _;
use okt_core::{Lifecycle, StateId};

use super::Turn;
use crate::application::Application;
use crate::pass::{Walked, walk};
use crate::resources::{self, Resources};

impl<A: Application> Turn<'_, A> {
    /// Walks through the pass.
    pub(super) async fn walked(&mut self, deleting: bool, prunes: bool) -> Option<Walked> {
        let position = self.position();
        let state = position.and_then(|position| position.state.known());
        let pace = resources::pace(
            self.shared,
            &self.cx,
            state.map_or(StateId::UNKNOWN, Lifecycle::id),
        );
        self.inner.walks.echo = false;
        let asker = self.asker();
        let tended = &mut self.inner.tended;
        let walked = walk(
            self.shared,
            &asker,
            &self.cx,
            tended,
            pace,
            deleting,
            prunes,
        )
        .await?;
        let generation = self.object.meta().generation.unwrap_or(0);
        self.inner.walks.take(&walked, generation, &pace, deleting);
        Some(walked)
    }

    /// Deletes what Kubernetes will not delete with the object; whether nothing of it is left.
    pub(super) async fn clear(&mut self, put: Resources) -> bool {
        let asker = self.asker();
        resources::clear(self.shared, &asker, &self.cx, &mut self.inner.tended, put).await
    }
}
