//! Operators against the API in the process, under paused time.

mod bounds;
mod crash;
mod crowd;
mod deadlines;
mod definition;
mod deletion;
mod gate;
mod input;
mod life;
mod observation;
mod pausing;
mod position;
mod program;
mod progress;
mod refusals;
mod requests;
mod retries;
mod rounds;
mod sites;
mod stopping;
mod storm;
mod strangers;
mod transitions;
mod union;
mod waiting;
mod wishes;
