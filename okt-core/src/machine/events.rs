//! What happens to an object between the effects of its machine.

use super::Machine;
use super::object::{TaskId, Version};
use super::requeue::Requeue;
use super::time::Time;
use super::work::WorkStage;
use super::writes::Writes;
use crate::facts::ActionResult;

impl Machine {
    /// Notes a reconcile request that named the object: work that waits may be called again, and the pass runs.
    pub fn name(&mut self) {
        self.is_named = true;
    }

    /// Notes that the CRD or the leadership has changed: every write may be retried, and another operator may have begun
    /// work that this process has recorded and not begun. A reconciliation that is under way ends.
    pub fn reopen(&mut self) {
        self.writes.end_trouble();
        self.writes.last.reported = false;
        // Another operator may have begun work that has not begun here.
        self.work.run.take_if(|run| run.stage == WorkStage::New);
        self.findings.is_reopened = self.findings.is_begun;
    }

    /// Forgets the writes, because the history of the API server went back; work continues if it is still on record.
    pub fn rewind(&mut self) {
        self.writes = Writes::default();
    }

    /// Notes the version that the cache has. Returns how long to wait, if it is older than the operator's last write, and
    /// whether that lasts so long that the history of the API server may have gone back.
    pub fn check_version(
        &mut self,
        version: Option<Version>,
        now: Time,
    ) -> Option<(Requeue, bool)> {
        let writes = &mut self.writes;
        if !writes.last.is_newer_than(version) {
            writes.behind_since = None;
            return None;
        }
        let since = *writes.behind_since.get_or_insert(now);
        let lasts = since.elapsed(now) >= Requeue::SAFETY;
        Some((Requeue::while_behind(self.is_under_way()), lasts))
    }

    /// Notes that the handler of a task waits until something is recorded. A task that is not the one on record waits in
    /// vain.
    pub fn ask_to_record(&mut self, task: TaskId) {
        self.work.ask_to_record(task);
    }

    /// Takes the end of a task: its result, or none if it was dropped without one. Returns whether the result counts: that
    /// of a task that is not the one on record does not.
    pub fn end_work(&mut self, task: TaskId, result: Option<ActionResult>) -> bool {
        let counts = self.work.end(task, result);
        if counts {
            self.findings.forget_observation();
        }
        counts
    }

    /// Takes the end of a task that was cancelled, or of one of a former object of the same name.
    pub fn end_task(&mut self) {
        self.work.is_ending = false;
    }
}
