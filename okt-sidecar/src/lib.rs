//! The agent as a program: a configuration file defines the commands and requests that answer for the application.
//!
//! It needs Linux: it finds processes in `/proc` and waits for them with pidfds.
//!
//! | module | content |
//! |---|---|
//! | `exit`, `users`, `proc` | how a process ended; users and groups of the machine; processes as the kernel shows them |
//! | `children`, `notes`, `recognise` | child processes; notes about them for a later agent; an application that another program has started |
//! | `config`, `scratch` | the configuration file and its errors; the files that a command shares with the agent |
//! | `launch`, `group`, `command` | a process that begins nothing before it is recorded; a command, its process group and its output |
//! | `http`, `probe`, `application` | HTTP requests; the observation of the application; the application as a process |
//! | `work`, `job`, `call` | the application as the file describes it; the steps of a state's work; requests as steps |
//! | `run`, `conform` | the life of the agent, from its file to its end; the conformance test of other agents |
//! | `program` | the command line |
#![cfg_attr(docsrs, feature(doc_cfg))]

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
mod program;
mod recognise;
mod run;
mod scratch;
mod users;
mod work;

use self::config::is_state;
pub use self::config::{Config, ConfigError, Machine};
pub use self::conform::{Conform, conform};
pub use self::launch::launch;
pub use self::program::main;
pub use self::run::{RunError, free, run};
