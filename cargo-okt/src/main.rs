//! `cargo okt`: commands for operator projects and their graphs.

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `output`, `files`, `source`, `template` | prints a text; writes several files; where a new project gets OKT from; its files |
// | `name`, `edit`, `kind`, `project` | the rules for names; edits of source; a kind; a new project |
// | `crates`, `check`, `draw`, `diff`, `add`, `api` | the source files of a crate; the subcommands; an API without a cluster |

mod add;
mod api;
mod check;
mod crates;
mod diff;
mod draw;
mod edit;
mod files;
mod kind;
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

use crate::add::Add;
use crate::kind::ProjectKind;
use crate::name::{ApiGroup, KindName, Name};
use crate::output::print;
use crate::project::Project;
use crate::source::OktSource;
use crate::template::FormOptions;

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
    #[command(subcommand)]
    Add(Add),
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
    /// program was built from, or its version]
    #[arg(long, value_name = "VERSION|PATH|URL")]
    okt: Option<OktSource>,
    #[command(flatten)]
    form: FormOptions,
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
        CargoCommand::New(new) => make(new).and_then(|report| print(&report)),
        CargoCommand::Add(add) => add.run(),
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
    print(okt_syntax::rules::page(rule))
}

/// Creates the project and returns a report with the next steps.
fn make(new: New) -> Result<String, String> {
    let path = new.path;
    let name = Name::of(&path)?;
    let kind = new.kind.map_or_else(|| KindName::named_after(&name), Ok)?;
    let okt = new.okt.map_or_else(OktSource::own, Ok)?;
    let project = Project {
        name,
        kind: ProjectKind {
            name: kind,
            group: new.group,
            form: new.form.form(),
        },
        okt,
    };
    project.write(&path)?;
    let (name, kind, group) = (&project.name, &project.kind.name, &project.kind.group);
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_readme_names_every_command_and_every_option() {
        let readme = include_str!("../README.md");
        let cargo = CargoLine::command();
        let okt = cargo.find_subcommand("okt").expect("it is there");
        let mut left: Vec<_> = okt.get_subcommands().collect();
        while let Some(command) = left.pop() {
            left.extend(command.get_subcommands());
            let name = command.get_name();
            assert!(readme.contains(name), "{name}");
            for option in command.get_arguments().filter_map(|it| it.get_long()) {
                assert!(readme.contains(&format!("--{option}")), "{name} --{option}");
            }
        }
    }
}
