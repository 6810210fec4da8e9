//! Agents without a socket, mostly under paused time: the course of actions, and what a crash leaves.

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
