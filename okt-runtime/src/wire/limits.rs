//! How much a status holds, so that it is accepted whatever happens.

use okt_core::names::STATE_LIMIT;

/// The longest action id: a uid, a 20-digit and a 10-digit number, a time of 16 digits and what is between.
pub(crate) const ID_LIMIT: usize = 96;
/// The longest progress message, in bytes.
pub(crate) const PROGRESS_LIMIT: usize = 256;
/// The longest reason of a failure, in bytes: one word, which conditions repeat.
pub(crate) const REASON_LIMIT: usize = STATE_LIMIT;
/// The longest message of a failure, in bytes: two conditions repeat it, so it is what a status must be able to hold thrice.
pub(crate) const FAILURE_LIMIT: usize = 512;
/// How many transitions the history holds.
pub(crate) const HISTORY_LIMIT: usize = 10;
/// How many objects an object may own where no owner reference shows it.
pub(crate) const RECORDED_LIMIT: usize = 64;
/// How many digits an entry of `recordedResources` has.
pub(crate) const MARK_LENGTH: usize = 24;
/// How many conditions a status holds. The operator writes 29 at most; a limit near that would let the conditions of
/// others make every write of the operator fail.
pub(crate) const CONDITIONS_LIMIT: usize = 256;
