//! `cargo okt`: commands for operator projects and their graphs.

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `output`, `source`, `template` | prints a text; where a new project gets OKT from; the files of a new project |
// | `name`, `project` | the rules for names; writes a project completely or not at all |
// | `crates`, `check`, `draw`, `diff`, `api` | the source files of a crate; the subcommands on graphs; an API without a cluster |

mod api;
mod check;
mod crates;
mod diff;
mod draw;
mod name;
mod output;
mod project;
mod source;
mod template;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{Args, Parser, Subcommand};
use okt_core::check::Rule;
use okt_syntax::source::STACK;
use parking_lot::Mutex;

use crate::name::{ApiGroup, KindName, Name};
use crate::output::print;
use crate::project::Project;
use crate::source::OktSource;

/// Cargo calls `cargo-okt okt ..` for `cargo okt ..`.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum CargoLine {
    Okt(Okt),
}

/// Commands for the authors of Kubernetes operators.
#[derive(Args)]
#[command(version)]
struct Okt {
    #[command(subcommand)]
    command: CargoCommand,
}

#[derive(Subcommand)]
enum CargoCommand {
    New(New),
    Api(api::Serve),
    Check(check::CheckCommand),
    #[command(name = "graph")]
    Draw(draw::Draw),
    Diff(diff::Diff),
    Explain(Explain),
}

/// Explain a rule of lifecycle graphs: an example, the reason and the ways to mend it.
#[derive(Args)]
struct Explain {
    /// The code of the rule (e.g. OKT005).
    code: String,
}

/// Create a new operator that builds, runs, and passes its tests without a cluster.
#[derive(Args)]
struct New {
    /// The directory to create; its last part is the name of the package.
    path: PathBuf,
    /// The kind of the objects that the operator manages [default: from the name, without `-operator`]
    #[arg(long)]
    kind: Option<KindName>,
    /// The API group of that kind, below a domain that you own.
    #[arg(long, default_value = "example.com")]
    group: ApiGroup,
    /// The source of OKT: a version, a checkout, or the URL of a git repository [default: the checkout that this
    /// program was built from]
    #[arg(long, value_name = "VERSION|PATH|URL")]
    okt: Option<OktSource>,
}

fn main() -> ExitCode {
    let CargoLine::Okt(Okt { command }) = CargoLine::parse();
    // The parser recurses, and the source of others may be nested deeply.
    let large = thread::Builder::new().stack_size(STACK);
    let command = Mutex::new(Some(command));
    let go = || {
        let mut command = command.lock();
        command.take().map_or(ExitCode::FAILURE, run)
    };
    thread::scope(|scope| match large.spawn_scoped(scope, go) {
        Ok(thread) => thread.join().unwrap_or(ExitCode::FAILURE),
        // There is not as much memory: most source needs less.
        Err(_) => go(),
    })
}

fn run(command: CargoCommand) -> ExitCode {
    let done = match command {
        CargoCommand::New(new) => make(new).map(|report| print(&report)),
        CargoCommand::Api(serve) => serve_api(serve),
        CargoCommand::Check(check) => check.run(),
        CargoCommand::Draw(draw) => draw.run(),
        CargoCommand::Diff(diff) => diff.run(),
        CargoCommand::Explain(Explain { code }) => explain(&code),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve_api(serve: api::Serve) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(serve.run())
}

fn explain(code: &str) -> Result<(), String> {
    let digits = code.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: Option<u8> = digits.parse().ok();
    let mut rules = Rule::ALL.into_iter();
    let Some(rule) = rules.find(|rule| Some(*rule as u8) == number) else {
        let [first, .., last] = Rule::ALL;
        return Err(format!(
            "there is no rule {code}; there are {}, {first} to {last}",
            Rule::ALL.len()
        ));
    };
    print(okt_syntax::rules::page(rule));
    Ok(())
}

/// Creates the project and returns a report with the next steps.
fn make(new: New) -> Result<String, String> {
    let path = new.path;
    let name = Name::of(&path)?;
    let kind = new.kind.map_or_else(|| KindName::named_after(&name), Ok)?;
    let okt = new.okt.map_or_else(OktSource::own, Ok)?;
    let project = Project {
        name,
        kind,
        group: new.group,
        okt,
    };
    project.write(&path)?;
    let (name, kind, group) = (&project.name, &project.kind, &project.group);
    let (okt, path) = (&project.okt, path.display());
    Ok(format!(
        "Made {name}, an operator of {kind} objects in the group {group}, in {path}.
OKT comes from {okt}; `--okt` names another place.

To go on:
  cd {path}
  cargo test                                             needs no cluster
  cargo run -- crd | kubectl apply --server-side -f -    in the cluster of your kubeconfig
  cargo run -- run
"
    ))
}
