//! What commands print: tables and texts for people, JSON and YAML for programs.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::error::Error;

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum OutputFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// A table with more columns.
    Wide,
    /// Names alone, as arguments for kubectl.
    Name,
}

/// Prints a text; colours are left out where the output is no terminal, or where `NO_COLOR` is set.
///
/// Where it cannot be printed, the program ends: quietly if the reader has seen enough (`| head`), else with an error.
pub(crate) fn print(text: &str) {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: cannot print: {error}");
            std::process::exit(1);
        }
    }
}

/// Prints a line for each item.
pub(crate) fn print_lines<T: Display>(items: impl IntoIterator<Item = T>) {
    let lines: Vec<String> = items.into_iter().map(|item| format!("{item}\n")).collect();
    print(&lines.concat());
}

/// Prints a value for programs, its names, or a text for people.
pub(crate) fn print_as<N: Display>(
    format: Option<OutputFormat>,
    value: &impl Serialize,
    names: impl IntoIterator<Item = N>,
    text: impl FnOnce() -> String,
) -> Result<(), Error> {
    let cannot = |error: &dyn Display| Error::Failed(format!("cannot print it: {error}"));
    match format {
        Some(OutputFormat::Json) => {
            let json = serde_json::to_string_pretty(value).map_err(|error| cannot(&error))?;
            print_lines([json]);
        }
        Some(OutputFormat::Yaml) => {
            print(&serde_saphyr::to_string(value).map_err(|error| cannot(&error))?);
        }
        Some(OutputFormat::Name) => print_lines(names),
        Some(OutputFormat::Wide) | None => print(&text()),
    }
    Ok(())
}

/// A table as kubectl prints it: the columns are as wide as their longest cell.
pub(crate) struct TextTable {
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

/// The space between two columns.
const GAP: usize = 3;

impl TextTable {
    /// Creates a table with a line of titles.
    pub(crate) fn new(titles: &[&str]) -> Self {
        let mut table = Self::untitled();
        table.row(titles);
        table
    }

    pub(crate) fn untitled() -> Self {
        Self {
            rows: Vec::new(),
            widths: Vec::new(),
        }
    }

    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let cells: Vec<String> = cells.iter().map(|cell| cell.as_ref().to_owned()).collect();
        self.widths.resize(self.widths.len().max(cells.len()), 0);
        for (width, cell) in self.widths.iter_mut().zip(&cells) {
            *width = (*width).max(columns(cell));
        }
        self.rows.push(cells);
    }

    /// Returns the rows since the last call, with the columns aligned with all rows so far.
    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        for row in self.rows.drain(..) {
            let mut line = String::new();
            let mut missing = 0;
            for (cell, width) in row.iter().zip(&self.widths) {
                if cell.is_empty() {
                    missing += width + GAP;
                    continue;
                }
                line.extend(std::iter::repeat_n(' ', missing));
                line.push_str(cell);
                missing = width + GAP - columns(cell);
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }
}

/// Returns how many columns of a terminal a text takes; colours take none.
fn columns(text: &str) -> usize {
    anstream::adapter::strip_str(text)
        .map(UnicodeWidthStr::width)
        .sum()
}

/// The colours; each goes with a word or a sign with the same meaning.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();
pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Returns a text in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_whatever_their_colours() {
        let mut table = TextTable::new(&["NAME", "READY", "STATE"]);
        table.row(&["a", &styled(GOOD, "True"), "Running"]);
        table.row(&["longer", "Unknown", ""]);
        let text = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(table.text(), "", "each row is printed once");
        assert_eq!(
            text,
            "NAME     READY     STATE\na        True      Running\nlonger   Unknown\n"
        );
    }
}
