//! Operators against the API in the process, under paused time.

mod crash;
mod deadlines;
mod life;
mod observation;
mod position;
mod requests;
mod retries;
mod waiting;
