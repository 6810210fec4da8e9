//! The subcommand `preview`: what the operators of a program would do to the objects of a cluster.

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

use clap::ArgMatches;
use kube::Client;

use super::command_line::PreviewOptions;
use super::part::{LimitedPart, PartTask, Previewed, webhooks};
use super::run::{cannot_connect, cluster};
use crate::install::account::ServiceAccount;
use crate::install::rbac::{lease_roles, webhook_roles};
use crate::preview::{Preview, dry_run, text};

/// The exit code if the release would change something.
const CHANGES: u8 = 3;

/// The exit code if a person has to do something before.
const PROBLEMS: u8 = 4;

/// Previews operators one after the other, each in its namespaces; `program` is the name of the program.
pub(super) async fn preview(
    parts: Vec<LimitedPart>,
    account: ServiceAccount,
    options: &ArgMatches,
    program: &str,
) -> Result<Vec<Preview>, String> {
    let (mut config, address) = cluster().await?;
    // What names the namespace of the operator names the one in which it runs.
    config.default_namespace.clone_from(&account.namespace);
    let client = Client::try_from(config).map_err(|error| cannot_connect(&address, &error))?;
    let found = Rc::new(RefCell::new(Vec::new()));
    // The replicas of all operators share their leases.
    let mut beside = lease_roles(program, &account);
    let asked = webhooks(parts.iter().map(|(part, _)| &**part));
    if !asked.is_empty() {
        beside.add(webhook_roles(program, &asked, &account));
    }
    for (part, namespaces) in parts {
        let (client, record) = dry_run(&client);
        let previewed = Previewed {
            client,
            record,
            namespaces,
            account: account.clone(),
            beside: std::mem::take(&mut beside),
            options: options.clone(),
            found: Rc::clone(&found),
        };
        part.begin(PartTask::Preview(Box::new(previewed))).await?;
    }
    Ok(found.take())
}

/// Returns what is found as text.
pub(super) fn printed(found: &[Preview], asked: &PreviewOptions) -> Result<String, String> {
    if !asked.json {
        return Ok(text(found, asked.all));
    }
    let json = serde_json::to_string_pretty(found).map_err(|error| error.to_string())?;
    Ok(format!("{json}\n"))
}

/// Returns the exit code for what is found.
pub(super) fn code(found: &[Preview]) -> ExitCode {
    if found.iter().any(Preview::has_problems) {
        PROBLEMS.into()
    } else if found.iter().any(Preview::has_changes) {
        CHANGES.into()
    } else {
        ExitCode::SUCCESS
    }
}
