//! Options of `run` from a file: those that neither the command line nor the environment gives.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use serde_json::{Map, Value};

/// The subcommand whose options a file may give.
const RUN: &str = "run";

/// The option that names the file.
const CONFIG: &str = "config";

/// The option that may change while the program runs.
const LOG: &str = "log";

/// Returns the arguments with the options from the file that they name, if they name one; and the file, if it decides
/// what is logged.
///
/// # Errors
///
/// If the file cannot be read, or has something that is no option.
pub(super) fn with_file(
    command: &Command,
    mut arguments: Vec<OsString>,
) -> Result<(Vec<OsString>, Option<PathBuf>), String> {
    // An option that is required may be in the file.
    let lenient = command.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from(arguments.clone()) else {
        return Ok((arguments, None));
    };
    let Some((RUN, given)) = matches.subcommand() else {
        return Ok((arguments, None));
    };
    let Some(file) = given.get_one::<PathBuf>(CONFIG) else {
        return Ok((arguments, None));
    };
    let Some(run) = command.find_subcommand(RUN) else {
        return Ok((arguments, None));
    };
    let decides = option(run, LOG).is_some_and(|option| !is_given(given, option));
    let options = read(file)?;
    let place = file.display();
    for (name, value) in &options {
        let Some(option) = option(run, name) else {
            return Err(format!("{place}: `{name}` is no option of `run`"));
        };
        if !is_given(given, option) {
            let values = texts(value).ok_or_else(|| {
                format!("{place}: `{name}` is neither a text, a number, `true` or `false`, nor a list of these")
            })?;
            if option.get_action().takes_values() {
                arguments.extend(
                    values
                        .iter()
                        .map(|value| format!("--{name}={value}").into()),
                );
                continue;
            }
            match value {
                Value::Bool(true) => arguments.push(format!("--{name}").into()),
                Value::Bool(false) | Value::Null => {}
                _ => return Err(format!("{place}: `{name}` is `true` or `false`")),
            }
        }
    }
    Ok((arguments, decides.then(|| file.clone())))
}

/// Returns an option of the file as text; none if the file does not have it.
///
/// # Errors
///
/// If the file cannot be read, or the option is no text.
#[cfg(feature = "logs")]
pub(super) fn text_of(file: &Path, name: &str) -> Result<Option<String>, String> {
    match read(file)?.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{}: `{name}` is no text", file.display())),
    }
}

fn read(file: &Path) -> Result<Map<String, Value>, String> {
    let place = file.display();
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("cannot read {place}: {error}"))?;
    let parsed = serde_saphyr::from_str::<Option<Map<String, Value>>>(&text);
    let options = parsed.map_err(|error| format!("{place}: {error}"))?;
    Ok(options.unwrap_or_default())
}

fn option<'a>(run: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_it = |option: &&Arg| option.get_long() == Some(name) && name != CONFIG;
    run.get_arguments().find(is_it)
}

/// Returns whether the command line or the environment gives an option.
fn is_given(given: &ArgMatches, option: &Arg) -> bool {
    let source = given.value_source(option.get_id().as_str());
    matches!(
        source,
        Some(ValueSource::CommandLine | ValueSource::EnvVariable)
    )
}

/// Returns a value as texts; a list as several.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Bool(_) | Value::Number(_) => Some(vec![value.to_string()]),
        Value::Array(values) => {
            let values: Option<Vec<Vec<String>>> = values.iter().map(texts).collect();
            Some(values?.concat())
        }
        Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::program::command_line::{CommandLine, OperatorCommand as Sub, RunOptions};
    use okt_sharding::membership::Shards;

    fn run(file: &str, arguments: &[&str]) -> Result<RunOptions, String> {
        let mut config = tempfile::NamedTempFile::new().expect("a file");
        config.write_all(file.as_bytes()).expect("it is written");
        let mut all: Vec<OsString> = vec![
            "it".into(),
            "run".into(),
            "--config".into(),
            config.path().into(),
        ];
        all.extend(arguments.iter().map(OsString::from));
        let command = CommandLine::command();
        let (all, _) = with_file(&command, all)
            .map_err(|why| why.replace(&config.path().display().to_string(), "FILE"))?;
        let matches = command
            .try_get_matches_from(all)
            .map_err(|error| error.to_string())?;
        let line = CommandLine::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let Sub::Run(run) = line.command else {
            panic!("it is `run`");
        };
        Ok(*run)
    }

    #[test]
    fn a_file_gives_the_options_that_the_command_line_does_not_give() {
        let file = "shards: auto\nnamespace: [a, b]\nconcurrency: 4\nleader-election: false\n";
        let read = run(file, &["--concurrency", "8"]).expect("options");
        assert_eq!(read.shards, Shards::Auto);
        assert_eq!(read.namespace, ["a", "b"]);
        assert_eq!(
            (read.concurrency, read.leader_election),
            (Some(8), Some(false))
        );
        assert_eq!(run("", &[]).expect("options").shards, Shards::One);
    }

    #[test]
    fn an_option_without_a_value_is_true_or_false_in_a_file() {
        let command = Command::new("it").subcommand(
            Command::new(RUN)
                .arg(
                    Arg::new(CONFIG)
                        .long(CONFIG)
                        .value_parser(clap::value_parser!(PathBuf)),
                )
                .arg(Arg::new("dry").long("dry").action(clap::ArgAction::SetTrue)),
        );
        let read = |text: &str| {
            let mut config = tempfile::NamedTempFile::new().expect("a file");
            config.write_all(text.as_bytes()).expect("it is written");
            let words = ["it", "run", "--config"].map(OsString::from);
            let given = words.into_iter().chain([config.path().into()]).collect();
            let (all, _) = with_file(&command, given)?;
            Ok::<_, String>(all[4..].to_vec())
        };
        assert_eq!(read("dry: true"), Ok(vec![OsString::from("--dry")]));
        assert_eq!(read("dry: false"), Ok(Vec::new()));
        let why = read("dry: often").expect_err("a mistake");
        assert!(why.ends_with("`dry` is `true` or `false`"), "{why}");
    }

    #[test]
    fn a_file_with_mistakes_is_refused() {
        let why = |file| run(file, &[]).err().expect("a mistake");
        assert_eq!(why("shard: auto"), "FILE: `shard` is no option of `run`");
        assert_eq!(why("config: x"), "FILE: `config` is no option of `run`");
        assert!(why("shards: {a: 1}").starts_with("FILE: `shards` is neither"));
        assert!(why("shards: none").contains("write `auto`, or a number from 1"));
        assert!(why("[").starts_with("FILE: "));
    }
}
