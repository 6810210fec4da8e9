//! Agents without a socket, mostly under paused time: the course of actions, and what a crash leaves.

mod actions;
mod codes;
mod crash;
mod disk;
mod fuzz;
mod observations;
mod openapi;
mod ownership;
mod puppet;
mod stop;
