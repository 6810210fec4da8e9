//! A real PostgreSQL and its life: an operator without code for its states, beside an agent with a file of commands.

pub mod life;
pub mod server;
pub mod writer;
