//! What may come next on the command line: for kubectl, which asks the program `kubectl_complete-okt`.

use clap::{Arg, Args, Command};
use futures::future::join_all;
use kube::Client;
use kube::api::ListParams;
use okt_view::Kind;

use crate::output::print_lines;
use crate::select::{called, request_kind, request_kinds, states_of};

/// How many objects of a kind are offered.
const OFFERED: u32 = 200;

/// Do not offer files (cobra's `ShellCompDirectiveNoFileComp`, as kubectl reads it).
const NO_FILES: &str = ":4";
/// Offer files, as the shell does.
const FILES: &str = ":0";

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
    pub(crate) async fn run(&self, mut command: Command, client: Option<&Client>) {
        // Options of all commands are those of each command then.
        command.build();
        let (last, before) = match self.words.split_last() {
            Some((last, before)) => (last.as_str(), before),
            None => ("", &[][..]),
        };
        let (mut offered, files) = match before.split_first() {
            None => (commands(&command), NO_FILES),
            Some((name, words)) => match command.find_subcommand(name) {
                None => (Vec::new(), NO_FILES),
                Some(own) => after(own, words, last, client).await,
            },
        };
        offered.retain(|word| word.starts_with(last));
        offered.push(files.to_owned());
        print_lines(offered);
    }
}

/// What may come after these words of a command, and whether files may.
async fn after(
    command: &Command,
    words: &[String],
    last: &str,
    client: Option<&Client>,
) -> (Vec<String>, &'static str) {
    let (mut given, mut waiting) = (Vec::new(), None);
    for word in words {
        if waiting.take().is_none() {
            waiting = option(command, word);
            if waiting.is_none() && !word.starts_with('-') {
                given.push(word.as_str());
            }
        }
    }
    if waiting.is_none() && last.starts_with('-') {
        return (options(command), NO_FILES);
    }
    let Some(argument) = waiting.or_else(|| command.get_positionals().nth(given.len())) else {
        return (Vec::new(), NO_FILES);
    };
    let values = argument.get_possible_values();
    if !values.is_empty() {
        let names = values.iter().map(|value| value.get_name().to_owned());
        return (names.collect(), NO_FILES);
    }
    let wanted = argument.get_value_names().and_then(|names| names.first());
    match (wanted.map(clap::builder::Str::as_str), client) {
        (Some("FILE"), _) => (Vec::new(), FILES),
        (Some(wanted), Some(client)) => (of_cluster(client, wanted, &given).await, NO_FILES),
        _ => (Vec::new(), NO_FILES),
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

/// The option that this word is, if it takes a value.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--");
    let short = word.strip_prefix('-').and_then(|name| name.parse().ok());
    command.get_opts().find(|option| {
        (long.is_some() && option.get_long() == long)
            || (short.is_some() && option.get_short() == short)
    })
}

/// Kinds, objects or states; nothing if the cluster does not answer.
async fn of_cluster(client: &Client, wanted: &str, given: &[&str]) -> Vec<String> {
    if !["TYPE", "TYPE/NAME", "STATE", "KIND", "TARGET"].contains(&wanted) {
        return Vec::new();
    }
    let kinds = Kind::all(client).await.unwrap_or_default();
    match (wanted, given.first()) {
        ("TYPE", _) => {
            let names = kinds.iter().map(|kind| kind.resource.plural.clone());
            names.collect()
        }
        ("KIND", _) => {
            let names = request_kinds(&kinds).map(|(_, it)| it.kind.resource.kind.to_lowercase());
            names.collect()
        }
        ("TARGET", Some(request)) => match request_kind(&kinds, request) {
            Ok((kind, _)) => objects(client, kind).await,
            Err(_) => Vec::new(),
        },
        ("TYPE/NAME", _) => {
            let all = join_all(kinds.iter().map(|kind| objects(client, kind)));
            all.await.concat()
        }
        (_, None) => states(&kinds.iter().collect::<Vec<_>>(), false),
        (_, Some(first)) => {
            let (kind, is_object) = match first.split_once('/') {
                Some((kind, _)) => (kind, true),
                None => (*first, false),
            };
            let kinds = called(&kinds, kind).unwrap_or_default();
            states(&kinds, is_object)
        }
    }
}

/// The states of these kinds, or only those that an object may be asked into.
fn states(kinds: &[&Kind], only_desirable: bool) -> Vec<String> {
    let names = if only_desirable {
        let graphs = kinds.iter().filter_map(|kind| kind.graph());
        let names = graphs.flat_map(|graph| graph.desirable_states().map(|id| graph.name_of(id)));
        names.collect()
    } else {
        states_of(kinds)
    };
    names.into_iter().map(str::to_owned).collect()
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
