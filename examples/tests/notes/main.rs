//! This file tests `notes` with real processes: they are killed, restarted, given work by their agents, archived.

mod agent;
mod backups;
mod endings;
mod processes;
mod scene;
