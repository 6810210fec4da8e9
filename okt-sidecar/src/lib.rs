//! The agent as a program: a configuration file defines the commands and requests that answer for the application.
//!
//! It needs Linux: it finds processes in `/proc` and waits for them with pidfds.
//!
//! | content | file |
//! |---|---|
//! | the configuration file and its errors | `config` |
//! | the life of the agent, from its file to its end | `run` |
//! | the application as the file describes it | `work` |
//! | the steps of a state's work; requests as steps | `job`, `call` |
//! | the observation of the application | `probe` |
//! | the application as a process | `application` |
//! | an application that another program has started | `recognise` |
//! | the files that a command shares with the agent | `scratch` |
//! | a command, its process group and its output | `command`, `group` |
//! | a process that begins nothing before it is recorded | `launch` |
//! | HTTP requests | `http` |
//! | child processes: awaited ones, and zombies | `children` |
//! | notes about running processes, for a later agent | `notes` |
//! | processes as the kernel shows them | `proc` |
//! | users and groups of the machine | `users` |
//! | the conformance test of other agents | `conform` |

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
