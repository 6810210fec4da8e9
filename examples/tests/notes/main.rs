//! `notes` with real processes, which are killed, restarted, given work by their agents, archived.

mod agent;
mod backups;
mod endings;
mod processes;
mod scene;
