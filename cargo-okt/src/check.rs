//! `cargo okt check`: every mistake of every graph, without building.

use std::io::{IsTerminal, stdout};

use clap::{Args, ValueEnum};
use okt_syntax::source::{Mistake, Source};
use serde_json::{Value, json};

use crate::crates::{Crates, File};
use crate::output::print;

/// Report every mistake of the lifecycle graphs of a crate, without building it.
///
/// The messages are those of the compiler. Graphs that a `macro_rules!` writes are not found.
#[derive(Args)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    crates: Crates,
    /// How the mistakes are printed.
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum CheckFormat {
    /// With the source lines, as rustc prints them.
    Text,
    /// An array of objects: `code`, `message`, `help`, `file`, and the first `line` and `column` and the end, from 1.
    Json,
}

impl CheckCommand {
    /// Prints the mistakes, and returns an error if there are any.
    pub(crate) fn run(&self) -> Result<(), String> {
        let files = self.crates.read()?;
        let mut graphs = 0;
        let mut found: Vec<(&File, &Mistake)> = Vec::new();
        for file in &files {
            graphs += file.source.as_ref().map_or(0, Source::count);
            found.extend(file.mistakes.iter().map(|it| (file, it)));
        }
        let text = match self.format {
            CheckFormat::Text => text(&found),
            CheckFormat::Json => {
                let all: Vec<Value> = found.iter().map(|(file, it)| as_json(file, it)).collect();
                format!("{}\n", Value::from(all))
            }
        };
        print(&text)?;
        let summary = format!("{} in {}", many(graphs, "graph"), many(files.len(), "file"));
        match found.len() {
            0 => {
                eprintln!("{summary}: no mistakes");
                Ok(())
            }
            count => Err(format!("{summary}: {}", many(count, "mistake"))),
        }
    }
}

fn text(found: &[(&File, &Mistake)]) -> String {
    let colours = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mistakes = found.iter();
    let blocks = mistakes.map(|(file, mistake)| mistake.render(&file.text, &file.path, colours));
    blocks.flat_map(|block| [block, "\n\n".into()]).collect()
}

fn as_json(file: &File, mistake: &Mistake) -> Value {
    let (line, column) = position(&file.text, mistake.at.start);
    let (end_line, end_column) = position(&file.text, mistake.at.end);
    json!({
        "code": mistake.rule.map(|rule| rule.to_string()),
        "message": mistake.message,
        "help": mistake.help,
        "file": file.path,
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
    })
}

/// Returns the line and the column of a position, in characters, both from 1.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

fn many(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
