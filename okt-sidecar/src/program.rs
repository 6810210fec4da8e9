//! The agent as a program: an application whose answers are commands and requests, read from a file.
//!
//! Linux only: what runs is known from `/proc` and waited for by pidfds.
//!
//! | what | file |
//! |---|---|
//! | what the file says, and what is wrong with it | `config` |
//! | the agent's life, from its file to its end | `run` |
//! | the application that does what the file says | `work` |
//! | the work of a state, step by step; requests among them | `job`, `call` |
//! | where the application is | `probe` |
//! | the application as a process | `application` |
//! | the application that another program has started | `recognise` |
//! | the files that a command shares with the agent | `scratch` |
//! | a command and all that it starts, what it prints | `command`, `group` |
//! | a process that begins nothing before it is on record | `launch` |
//! | requests | `http` |
//! | who is waited for, who is cleared away | `children` |
//! | who runs, noted down for a later agent | `notes` |
//! | what the kernel says of processes | `proc` |
//! | users and groups of the machine | `users` |
//! | other agents, held against the protocol | `conform` |

mod application;
mod call;
mod children;
mod command;
mod config;
mod conform;
mod exit;
#[cfg(test)]
mod fuzz;
mod group;
mod http;
mod job;
mod launch;
mod notes;
mod probe;
mod proc;
mod recognise;
mod run;
mod scratch;
mod users;
mod work;

use self::config::is_state;
pub use self::config::{Config, ConfigError, Machine};
pub use self::conform::{Conform, conform};
pub use self::launch::launch;
pub use self::run::{RunError, free, run};
