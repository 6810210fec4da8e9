//! The program `okt-sidecar`: an agent that is told what to do by a file.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use okt_sidecar::program::{Config, Machine};

/// The agent beside an application: says where it is and does its work.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Checks a configuration file, and that this machine has what it names
    ///
    /// Prints every mistake with its line and key, and ends with 2 if there is one.
    Check {
        /// The configuration, YAML
        file: PathBuf,
        /// The file is for another machine: its programs, users and files need not be here
        #[arg(long)]
        elsewhere: bool,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Check { file, elsewhere } => {
            let machine = if elsewhere {
                Machine::Elsewhere
            } else {
                Machine::Here
            };
            match Config::read(&file, machine) {
                Ok(_) => {
                    println!("{}: nothing is wrong", file.display());
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("{error}");
                    ExitCode::from(2)
                }
            }
        }
    }
}
