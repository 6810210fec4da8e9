//! Agents on real sockets: who is let in, and what those who mean no good can do.

mod application;
mod crowd;
mod doors;
mod wire;
