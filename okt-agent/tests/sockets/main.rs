//! Agents on real sockets: who may connect, and what attackers can do.

mod access;
mod application;
mod crowd;
mod wire;
