//! This file is the command line of `notes`, a small document server.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use okt_examples::notes::{Instance, Program, ServeArgs, serve};

/// A small document server.
#[derive(Parser)]
#[command(version)]
enum Notes {
    /// Creates the directory and its database; safe to repeat.
    Prepare {
        /// The directory of the data.
        #[arg(long)]
        data: PathBuf,
    },
    /// Serves a prepared directory on a free port, which it writes to notes.json there.
    Serve(ServeArgs),
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    match Notes::parse() {
        Notes::Prepare { data } => prepare(data).await,
        Notes::Serve(args) => serve(args).await,
    }
}

async fn prepare(data: PathBuf) -> ExitCode {
    let program = Program {
        exe: "notes".into(),
        args: vec!["serve".into()],
    };
    let prepared = match Instance::new("notes", &data, program) {
        Ok(instance) => instance.prepare().await,
        Err(error) => Err(error),
    };
    match prepared {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("notes: {error}");
            ExitCode::FAILURE
        }
    }
}
