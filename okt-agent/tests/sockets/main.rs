//! Agents on real sockets: who may connect, whom a client trusts, and what attackers can do.

mod access;
mod application;
mod crowd;
mod trust;
mod wire;
