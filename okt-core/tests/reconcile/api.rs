//! The API server: it stores the object, and shows it to caches.

use crate::event::{EffectOutcome, Fault, Write};
use crate::machine::WriteError;
use crate::object::Object;
use crate::plant::Bug;
use crate::world::{Presence, World};

/// The number of versions that can still be delivered.
const VERSIONS: usize = 3;

impl World {
    /// Stores another version of the object.
    pub(crate) fn store(&mut self, change: impl FnOnce(&mut Object)) {
        let before = self.stored;
        change(&mut self.stored);
        if self.stored == before {
            // A write that changes nothing makes no version.
            return;
        }
        self.stored.version.0 += 1;
        self.versions.push(self.stored);
        if self.versions.len() > VERSIONS {
            self.versions.remove(0);
        }
        self.relist();
    }

    /// Lists again if a watch is too far behind.
    pub(crate) fn relist(&mut self) {
        if self.process.cache.version < self.versions[0].version {
            self.process.cache = self.versions[0];
            self.process.queued = true;
        }
    }

    /// Sends the operator's write of the object that it has at hand.
    pub(crate) fn request(
        &mut self,
        write: Write,
        outcome: EffectOutcome,
        at_hand: &Object,
        change: impl FnOnce(&mut Object),
    ) -> Result<(), WriteError> {
        self.tally.requests += 1;
        let fault = if let EffectOutcome::WriteFails(fault) = outcome {
            self.budget.faults -= 1;
            Some(fault)
        } else {
            let failing = self.failing.filter(|(failing, _)| *failing == write);
            failing.map(|(_, fault)| fault)
        };
        self.tally.failures += u32::from(fault.is_some());
        match fault {
            Some(Fault::Refused) => return Err(WriteError::Refused),
            Some(Fault::Unavailable) => return Err(WriteError::Failed),
            Some(Fault::AnswerLost | Fault::Undone) | None => {}
        }
        if self.presence != Presence::Stored {
            return Err(WriteError::Failed);
        }
        if self.stored.version != at_hand.version && self.bug != Some(Bug::NoResourceVersion) {
            return Err(WriteError::Conflict);
        }
        if fault == Some(Fault::Undone) {
            return Ok(());
        }
        let before = self.stored.status.recorded;
        self.store(change);
        self.note_record(&before);
        self.note_request(&before);
        match fault {
            Some(_) => Err(WriteError::Failed),
            None => Ok(()),
        }
    }
}
