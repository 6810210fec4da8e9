//! The commands, against the double of the Kubernetes API: what they print, what they write, and their exit codes.

mod examples;
mod following;
mod moving;
mod page;
mod real;
mod requests;
mod seeing;
mod stuck;
mod top;
mod webhook;
mod world;
