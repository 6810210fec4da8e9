//! The limits of a status, so that the API server accepts every write.

use okt_core::names::STATE_LIMIT;

/// The longest action id, in bytes: a uid, a 20-digit and a 10-digit number, a time of 16 digits, and separators.
pub const ID_LIMIT: usize = 96;
/// The longest progress message, in bytes.
pub const PROGRESS_LIMIT: usize = 256;
/// The longest reason of a failure, in bytes: one word, which conditions repeat.
pub const REASON_LIMIT: usize = STATE_LIMIT;
/// The longest message of a failure, in bytes: two conditions repeat it, so a status must have room for three copies.
pub const FAILURE_LIMIT: usize = 512;
/// The longest list of the parts of a spec that have changed, in bytes.
pub const CHANGED_LIMIT: usize = 256;
/// The highest number of transitions in the history.
pub const HISTORY_LIMIT: usize = 10;
/// The highest number of entries of `recordedResources`: they take 400 KB if their names are of usual length, and as much
/// again in the managed fields, where etcd takes 1.5 MB.
pub const RECORDED_LIMIT: usize = 4096;
/// The places of `recordedResources` beyond that number, for the kinds of owned objects.
pub const RECORDED_RESERVE: usize = 256;
/// The highest number of bytes in all entries of `recordedResources` together.
pub const RECORDED_BYTES: usize = 480 * 1024;
/// The longest entry of `recordedResources`, in bytes: a uid, a group, a namespace, a kind and a name, each as long as
/// Kubernetes allows, and the marks.
pub const ENTRY_LIMIT: usize = 1024;
/// The highest number of conditions. The operator writes 29 at most; with a limit near that, conditions of other
/// writers would make every write of the operator fail.
pub const CONDITIONS_LIMIT: usize = 256;
/// The most that handlers may remember of an object, in bytes of JSON.
pub const MEMORY_LIMIT: usize = 16 * 1024;
/// The longest arguments of a request, in bytes of JSON.
pub const ARGS_LIMIT: usize = 2 * 1024;
/// The longest result of a request, in bytes of JSON.
pub const RESULT_LIMIT: usize = 1024;
/// The longest result of a step, in bytes of JSON.
pub const STEP_LIMIT: usize = 4 * 1024;
/// The highest number of recorded steps of one action.
pub const STEPS_LIMIT: usize = 256;
/// The most that all recorded steps of one action take together, in bytes of JSON.
pub const STEPS_BYTES: usize = 128 * 1024;

/// The most openings of a window that are recorded.
pub const OPENINGS_LIMIT: usize = 3;
