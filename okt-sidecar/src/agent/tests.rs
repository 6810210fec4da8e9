//! Agents without a socket, most of them under paused time: how actions go, and what a crash leaves.

mod belonging;
mod codes;
mod crash;
mod disk;
mod fuzz;
mod going;
mod openapi;
mod puppet;
mod seeing;
mod stop;
