//! Requests for visits with arguments: their kinds, those that are open, and their outcomes.
//!
//! | module | subject |
//! |---|---|
//! | `crd` | the CRDs of requests |
//! | `served` | the kinds of requests that an application serves |
//! | `open` | a request that has not finished, as a cache has it |
//! | `queue` | the open requests, by the object that is to serve them |
//! | `outcome` | the outcome of a request so far, and when it is to be written |
//! | `known` | the requests for an object, as its machine reads them |
//! | `api` | requests to the API server about requests |
//! | `watch` | the watches of the kinds |
//! | `calendar`, `schedules` | the times of a schedule, and what is due; makes the requests |
//! | `alone` | requests whose object does not exist, and finished ones whose time is over |

mod alone;
mod api;
mod calendar;
mod crd;
mod known;
mod open;
mod outcome;
mod queue;
mod schedules;
mod served;
mod watch;

pub(crate) use self::alone::{Targets, look_after};
pub(crate) use self::api::{RequestPlace, deliver, is_over, read};
pub(crate) use self::known::{facts_of, known};
pub(crate) use self::open::OpenRequest;
pub(crate) use self::outcome::OutcomeReport;
pub(crate) use self::queue::RequestQueue;
pub(crate) use self::schedules::follow;
pub(crate) use self::served::DecodedArgs;
pub use self::served::{RequestKind, Requests, ServedKind};
pub(crate) use self::watch::watch;
