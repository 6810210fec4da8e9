//! The agent as a program: an application whose answers are commands and requests, read from a file.
//!
//! Linux only: what runs is known from `/proc` and waited for by pidfds.
//!
//! | what | file |
//! |---|---|
//! | what the file says, and what is wrong with it | `config` |
//! | users and groups of the machine | `users` |

mod config;
mod users;

pub use self::config::{Config, ConfigError, Machine};
