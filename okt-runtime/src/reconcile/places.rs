//! Effects on the places of limits.

use okt_core::Lifecycle;
use okt_core::machine::{PlaceResult, TakePlace};

use super::reconciliation::Reconciliation;
use crate::author::application::{Application, StateOf};

impl<A: Application> Reconciliation<'_, A> {
    /// Takes a place in a limit, or registers a move into it that is made in any case.
    pub(super) async fn take_place(&mut self, effect: TakePlace) {
        let gate = StateOf::<A>::GRAPH.gates.get(effect.gate.index());
        let limits = self.shared.limits.as_ref();
        let result = match gate.zip(limits) {
            None => PlaceResult::None,
            Some((gate, limits)) => {
                let taken = if effect.forced {
                    limits.register(gate, &self.object).await
                } else {
                    let waiting = self.position().and_then(|it| it.waiting.as_ref());
                    let since = waiting.filter(|it| it.gate == gate.name);
                    let since = since.and_then(|it| it.since);
                    let since = since.unwrap_or_else(|| self.shared.clock.now());
                    limits.take(gate, &self.object, since).await
                };
                match taken {
                    Ok(()) => PlaceResult::Taken,
                    Err(why) => {
                        if effect.forced {
                            let limit = gate.name;
                            tracing::warn!(limit, "moves before it is registered: {}", why.0);
                        }
                        self.gates.no_place = Some(why.0);
                        PlaceResult::None
                    }
                }
            }
        };
        self.memory.machine.place_taken(effect, result);
    }

    /// Tells the limits that an object waits for a place, or may have left its states.
    pub(super) fn note_places(&self) {
        if let Some(limits) = &self.shared.limits {
            limits.note(self.uid());
        }
    }
}
