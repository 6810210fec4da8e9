//! The page about the command line, `docs/command-line.md`, is made from it.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use expect_test::expect_file;

use super::super::CommandLine;

#[test]
fn the_page_about_the_command_line_has_each_option_with_its_variable_and_default() {
    let mut command = CommandLine::command();
    command.build();
    let mut page = "<!-- Made by `UPDATE_EXPECT=1 cargo test -p okt-program --all-features the_page_about_the_command_line`. -->

# The command line of an operator

A program made with `okt::main` or `Program` has these subcommands, and those of its own.
An option of `run` is also read from its variable, and from the YAML file of `--config`, where it has the same name without the dashes in front.
The command line comes first, then the environment, then the file.
Options that need a [feature](features.md) are there with that feature.
"
    .to_owned();
    for subcommand in command
        .get_subcommands()
        .filter(|it| it.get_name() != "help")
    {
        describe(&mut page, subcommand);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/command-line.md");
    expect_file![file].assert_eq(&page);
}

fn describe(page: &mut String, command: &Command) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    writeln!(page, "\n## {}\n\n{}", command.get_name(), about.trim()).expect("text");
    let options = command.get_arguments().filter(|it| it.get_id() != "help");
    let options: Vec<&Arg> = options.collect();
    if options.is_empty() {
        return;
    }
    let has_variables = options.iter().any(|it| it.get_env().is_some());
    let variable = if has_variables { " variable |" } else { "" };
    let line = "|---".repeat(3 + usize::from(has_variables)) + "|";
    let head = format!("| option |{variable} meaning | default |");
    writeln!(page, "\n{head}\n{line}").expect("text");
    for option in options {
        let values = option.get_possible_values();
        let values: Vec<_> = values.iter().filter(|it| !it.is_hide_set()).collect();
        let takes_value = option.get_action().takes_values();
        let name = match option.get_long() {
            Some(long) => format!("--{long}"),
            None => option.get_id().to_string().to_uppercase(),
        };
        let value = match (option.get_value_names(), option.is_positional()) {
            (Some(names), false) if takes_value && values.is_empty() => {
                format!(" {}", names.join(" "))
            }
            _ => String::new(),
        };
        let help = option.get_long_help().or(option.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        // A default that is no value is a part of the help.
        let (help, default) = match help.split_once("[default: ") {
            Some((help, default)) => (help.trim(), default.trim_end_matches(']').to_owned()),
            None => (help.trim(), default_of(option, takes_value)),
        };
        let choices = values
            .iter()
            .filter_map(|it| Some((it.get_name(), it.get_help()?)));
        let choices: Vec<String> = choices
            .filter(|_| takes_value)
            .map(|(name, help)| format!("`{name}`: {help}"))
            .collect();
        let meaning = match &choices[..] {
            [] => help.to_owned(),
            choices => format!("{help}. {}", choices.join(". ")),
        };
        let meaning = meaning.replace('\n', " ").replace('|', "\\|");
        let variable = match option.get_env() {
            Some(name) => format!(" `{}` |", name.to_string_lossy()),
            None if has_variables => "  |".to_owned(),
            None => String::new(),
        };
        let option = format!("{name}{value}").replace('|', "\\|");
        writeln!(page, "| `{option}` |{variable} {meaning} | {default} |").expect("text");
    }
}

fn default_of(option: &Arg, takes_value: bool) -> String {
    let defaults = option.get_default_values().iter();
    let defaults = defaults.filter(|it| !it.is_empty());
    let defaults: Vec<_> = defaults
        .map(|it| format!("`{}`", it.to_string_lossy()))
        .collect();
    if takes_value {
        defaults.join(", ")
    } else {
        String::new()
    }
}
