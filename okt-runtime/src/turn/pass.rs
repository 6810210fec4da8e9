//! The pass in a turn: one walk through it, and what goes with the object.

use std::sync::Arc;

use kube::Resource as _;
use okt_core::{Lifecycle, StateId};

use super::Turn;
use crate::application::{Application, Walker};
use crate::pass::{Hands, Walked, walk};
use crate::resources::Resources;
use crate::tend;

impl<A: Application> Turn<'_, A> {
    /// Walks through the pass.
    pub(super) async fn walked(&mut self, deleting: bool, prunes: bool) -> Option<Walked> {
        let position = self.position();
        let state = position.and_then(|position| position.state.known());
        let pace = tend::pace(
            self.shared,
            &self.cx,
            state.map_or(StateId::UNKNOWN, Lifecycle::id),
        );
        self.inner.walks.echo = false;
        let asker = self.asker();
        let shared = self.shared;
        let pass = shared.pass.as_ref()?;
        let hands = Hands {
            client: shared.client.clone(),
            cluster: Arc::clone(&shared.cluster),
            pace,
            creates: !deleting,
            finalizes: shared.finalizes(),
            may_act: {
                let shared = Arc::clone(shared);
                Box::new(move || shared.may_act())
            },
            tended: std::mem::take(&mut self.inner.tended),
        };
        let steps = Walker {
            pass,
            application: &*shared.application,
        };
        let (walked, tended) = walk(&steps, &asker, &self.cx, hands, deleting, prunes).await;
        self.inner.tended = tended;
        let generation = self.object.meta().generation.unwrap_or(0);
        self.inner.walks.take(&walked, generation, &pace, deleting);
        Some(walked)
    }

    /// Deletes what Kubernetes will not delete with the object; whether nothing of it is left.
    pub(super) async fn clear(&mut self, put: Resources) -> bool {
        let asker = self.asker();
        tend::clear(self.shared, &asker, &self.cx, &mut self.inner.tended, put).await
    }
}
