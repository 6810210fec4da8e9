//! `kubectl okt`: where the objects of all OKT operators are on their graphs, why, and what would move them.
//!
//! It knows no operator in advance: the graph is an annotation of each CRD, and the position is in the status.

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `error`, `output` | errors with their exit codes; tables, colours, JSON and YAML |
// | `cluster`, `select`, `draw` | the connection; which objects a command is about; a graph in the terminal |
// | `commands` | one file for each command; what they know of kinds and objects is `okt_view` |

mod cluster;
mod commands;
mod draw;
mod error;
mod output;
mod select;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::cluster::ClusterOptions;
use crate::commands::approve::Approve;
use crate::commands::complete::Complete;
use crate::commands::conditions::Conditions;
use crate::commands::diff::Diff;
use crate::commands::get::Get;
use crate::commands::go::{Go, Retry};
use crate::commands::graph::ShowGraph;
use crate::commands::limit::ShowLimit;
use crate::commands::list::List;
use crate::commands::map::ServeMap;
use crate::commands::plan::PlanCommand;
use crate::commands::request::MakeRequest;
use crate::commands::steer::{Abandon, Pause, Resume};
use crate::commands::top::Top;
use crate::commands::trail::Trail;
use crate::commands::wait::Wait;
use crate::commands::why::WhyCommand;
use crate::error::{EXIT_CODES, Error};
use crate::output::print;

/// See where the objects of OKT operators are on their lifecycle graphs, why, and move them.
#[derive(Parser)]
#[command(name = "kubectl-okt", bin_name = "kubectl okt", version, after_help = EXIT_CODES)]
struct KubectlLine {
    #[command(flatten)]
    connection: ClusterOptions,
    #[command(subcommand)]
    command: OktCommand,
}

#[derive(Subcommand)]
enum OktCommand {
    List(List),
    Get(Get),
    Why(WhyCommand),
    Plan(PlanCommand),
    Go(Go),
    Request(MakeRequest),
    Approve(Approve),
    Limit(ShowLimit),
    Retry(Retry),
    Pause(Pause),
    Resume(Resume),
    Abandon(Abandon),
    Wait(Wait),
    Trail(Trail),
    Top(Top),
    Map(ServeMap),
    Graph(ShowGraph),
    Diff(Diff),
    Conditions(Conditions),
    /// Print a script that completes the commands in a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
    /// Print the man page.
    Man,
    #[command(name = "__complete")]
    Complete(Complete),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Box::pin(run(KubectlLine::parse())).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", okt_view::plain(&error.to_string()));
            ExitCode::from(error.code())
        }
    }
}

async fn run(line: KubectlLine) -> Result<(), Error> {
    let connection = &line.connection;
    match line.command {
        OktCommand::List(list) => list.run(&connection.client().await?).await,
        OktCommand::Get(get) => get.run(&connection.client().await?).await,
        OktCommand::Why(why) => why.run(&connection.client().await?).await,
        OktCommand::Plan(plan) => plan.run(&connection.client().await?).await,
        OktCommand::Go(go) => go.run(&connection.client().await?).await,
        OktCommand::Request(request) => request.run(&connection.client().await?).await,
        OktCommand::Approve(approve) => approve.run(&connection.client().await?).await,
        OktCommand::Limit(limit) => limit.run(&connection.client().await?).await,
        OktCommand::Retry(retry) => retry.run(&connection.client().await?).await,
        OktCommand::Pause(pause) => pause.run(&connection.client().await?).await,
        OktCommand::Resume(resume) => resume.run(&connection.client().await?).await,
        OktCommand::Abandon(abandon) => abandon.run(&connection.client().await?).await,
        OktCommand::Wait(wait) => wait.run(&connection.client().await?).await,
        OktCommand::Trail(trail) => trail.run(&connection.client().await?).await,
        OktCommand::Top(top) => {
            let client = connection.client().await?;
            Box::pin(top.run(&client)).await
        }
        OktCommand::Map(map) => map.run(&connection.client().await?).await,
        OktCommand::Graph(graph) => graph.run(&connection.client().await?).await,
        OktCommand::Diff(diff) if diff.needs_cluster() => {
            diff.run(Some(&connection.client().await?)).await
        }
        OktCommand::Diff(diff) => diff.run(None).await,
        OktCommand::Conditions(conditions) if conditions.needs_cluster() => {
            conditions.run(&connection.client().await?).await
        }
        OktCommand::Conditions(conditions) => conditions.read(),
        OktCommand::Completion { shell } => {
            // kubectl calls a plugin's completion by its own name.
            let mut script = Vec::new();
            clap_complete::generate(
                shell,
                &mut KubectlLine::command(),
                "kubectl-okt",
                &mut script,
            );
            print(&String::from_utf8_lossy(&script));
            Ok(())
        }
        OktCommand::Complete(complete) => {
            let client = connection.client().await.ok();
            complete.run(KubectlLine::command(), client.as_ref()).await;
            Ok(())
        }
        OktCommand::Man => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(KubectlLine::command()).render(&mut page);
            rendered
                .map_err(|error| Error::Failed(format!("cannot print the man page: {error}")))?;
            print(&String::from_utf8_lossy(&page));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_command() {
        let readme = include_str!("../README.md");
        for command in KubectlLine::command().get_subcommands() {
            let name = command.get_name();
            assert!(
                command.is_hide_set() || readme.contains(&format!("`{name}`")),
                "{name}"
            );
        }
    }
}
