//! What may come next on the command line: for kubectl, which asks the program `kubectl_complete-okt`.

use clap::{Arg, Args, Command};
use futures::future::join_all;
use kube::Client;
use kube::api::ListParams;
use okt_runtime::view::Kind;

use crate::output::print_lines;
use crate::select::called;

/// How many objects of a kind are offered.
const OFFERED: u32 = 200;

/// The commands that take an object, and those that take a kind.
const OF_OBJECTS: [&str; 10] = [
    "abandon", "get", "go", "pause", "plan", "resume", "retry", "trail", "wait", "why",
];
const OF_KINDS: [&str; 5] = ["conditions", "graph", "list", "map", "top"];

/// Do not offer files (cobra's `ShellCompDirectiveNoFileComp`, as kubectl reads it).
const NO_FILES: &str = ":4";

/// Print what may come next, for kubectl.
#[derive(Args)]
#[command(hide = true, disable_help_flag = true)]
pub(crate) struct Complete {
    /// The words so far; the last one is incomplete, or empty.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Complete {
    /// Prints the words that may come next; `client` is none if there is no cluster.
    pub(crate) async fn run(&self, command: &Command, client: Option<&Client>) {
        let (last, before) = match self.words.split_last() {
            Some((last, before)) => (last.as_str(), before),
            None => ("", &[][..]),
        };
        let mut offered = match before
            .first()
            .and_then(|name| command.find_subcommand(name))
        {
            None => commands(command),
            Some(own) => match value_of(own, before) {
                Some(values) => values,
                None if last.starts_with('-') => options(own),
                None => match client {
                    Some(client) => of_cluster(client, own.get_name(), &before[1..]).await,
                    None => Vec::new(),
                },
            },
        };
        offered.retain(|word| word.starts_with(last));
        offered.push(NO_FILES.to_owned());
        print_lines(offered);
    }
}

/// The commands, each with its first line of help.
fn commands(command: &Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let lines = shown.map(|it| {
        let about = it.get_about().map(ToString::to_string).unwrap_or_default();
        format!(
            "{}\t{}",
            it.get_name(),
            about.lines().next().unwrap_or_default()
        )
    });
    lines.collect()
}

fn options(command: &Command) -> Vec<String> {
    let longs = command.get_arguments().filter_map(Arg::get_long);
    longs.map(|long| format!("--{long}")).collect()
}

/// The values of the option before the last word, if it takes one.
fn value_of(command: &Command, before: &[String]) -> Option<Vec<String>> {
    let word = before.last().filter(|_| before.len() > 1)?;
    let option = command.get_arguments().find(|option| {
        let is_long = option
            .get_long()
            .is_some_and(|long| *word == format!("--{long}"));
        let is_short = option
            .get_short()
            .is_some_and(|short| *word == format!("-{short}"));
        is_long || is_short
    })?;
    if !option.get_action().takes_values() {
        return None;
    }
    let values = option.get_possible_values();
    Some(
        values
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect(),
    )
}

/// Kinds, objects or states; nothing if the cluster does not say.
async fn of_cluster(client: &Client, command: &str, before: &[String]) -> Vec<String> {
    let kinds = Kind::all(client).await.unwrap_or_default();
    let words: Vec<&String> = before
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let names = || kinds.iter().map(|kind| kind.resource.plural.clone());
    match &words[..] {
        [] if OF_KINDS.contains(&command) => names().collect(),
        [] if OF_OBJECTS.contains(&command) => {
            let all = join_all(kinds.iter().map(|kind| objects(client, kind)));
            all.await.concat()
        }
        [object] if command == "go" => {
            let kind = object.split('/').next().unwrap_or_default();
            let kinds = called(&kinds, kind).unwrap_or_default();
            let graphs = kinds.iter().filter_map(|kind| kind.graph());
            let states =
                graphs.flat_map(|graph| graph.desirable_states().map(|id| graph.name_of(id)));
            states.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

async fn objects(client: &Client, kind: &Kind) -> Vec<String> {
    let api = kind.objects(client, Some(client.default_namespace()));
    let list = api
        .list_metadata(&ListParams::default().limit(OFFERED))
        .await;
    let objects = list.map(|list| list.items).unwrap_or_default().into_iter();
    let names = objects.filter_map(|object| object.metadata.name);
    names
        .map(|name| format!("{}/{name}", kind.resource.plural))
        .collect()
}
