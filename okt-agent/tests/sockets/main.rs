//! Agents on real sockets: who may connect, and what attackers can do.

mod application;
mod crowd;
mod doors;
mod wire;
