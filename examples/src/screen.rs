//! Prints the progress of a demo: headings, transitions, checks, waits and a table, with and without a terminal.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The width of a line, in characters.
const WIDTH: usize = 80;

/// How many characters of a trail are printed next to a transition: its last ones.
const TRAIL: usize = 32;

static FAILURES: AtomicUsize = AtomicUsize::new(0);
/// Lets one line be printed at a time.
static PEN: Mutex<Pen> = Mutex::new(Pen { waiting: false });

struct Pen {
    /// Whether a line about a wait is on the terminal, to be overwritten.
    waiting: bool,
}

fn line(text: &str) {
    let mut pen = PEN.lock();
    let mut out = std::io::stdout().lock();
    let clear = if pen.waiting { "\r\x1b[K" } else { "" };
    pen.waiting = false;
    // Without a reader the demo continues and reports its result by the exit code.
    let _ = writeln!(out, "{clear}{text}");
}

/// Returns a text in lines that fit the width, each but the first indented by `indent` characters.
///
/// The first line has room for a prefix of that length. A word that is longer than a line keeps a line of its own.
fn wrapped(text: &str, indent: usize) -> String {
    let mut all = String::new();
    for part in text.lines() {
        if !all.is_empty() {
            all.push('\n');
            all.extend(std::iter::repeat_n(' ', indent));
        }
        let mut column = indent;
        for (number, word) in part.split(' ').enumerate() {
            let length = word.chars().count();
            if number > 0 && column + 1 + length > WIDTH {
                all.push('\n');
                all.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else if number > 0 {
                all.push(' ');
                column += 1;
            }
            all.push_str(word);
            column += length;
        }
    }
    all
}

/// Returns the last characters of a text, at most so many, and a mark if something is missing.
fn ending(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count + 1 - most).collect();
    format!("…{kept}")
}

fn paint(code: &str, text: &str) -> String {
    if std::io::stdout().is_terminal() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Prints the heading of a part.
pub fn heading(number: usize, text: &str) {
    line("");
    let text = wrapped(text, 3);
    line(&paint("1", &format!("{number}. {text}")));
}

/// Prints a note.
pub fn note(text: &str) {
    line(&format!("   {}", wrapped(text, 3)));
}

/// Prints a transition of an object.
pub fn transition(name: &str, from: &str, to: &str, cause: &str, trail: &str) {
    let from = if from.is_empty() { "·" } else { from };
    let way = format!("{from} → {to}");
    line(&format!(
        "   {}  {way:<22} {} {}",
        paint("36", &format!("{name:<6}")),
        paint("2", &format!("{cause:<12}")),
        paint("2", &ending(trail, TRAIL)),
    ));
}

/// Prints a check, and counts it if it failed.
pub fn check(so: bool, what: &str) {
    let what = &wrapped(what, 5);
    if so {
        line(&format!("   {} {what}", paint("32", "✓")));
    } else {
        FAILURES.fetch_add(1, Ordering::Relaxed);
        line(&format!("   {} {}", paint("31", "✗"), paint("31", what)));
    }
}

/// Prints a success.
pub fn good(text: &str) {
    line("");
    line(&paint("32", text));
}

/// Prints an error.
pub fn trouble(text: &str) {
    line("");
    line(&paint("31", text));
}

/// Prints the result of a demo that came to its end; returns the exit code.
pub fn verdict(came_to_its_end: bool) -> ExitCode {
    match failures() {
        _ if !came_to_its_end => return ExitCode::FAILURE,
        0 => good("everything was as it should be"),
        failures => {
            trouble(&format!("{failures} checks failed"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Returns how many checks failed so far.
pub fn failures() -> usize {
    FAILURES.load(Ordering::Relaxed)
}

/// Prints a wait that takes long.
#[derive(Debug)]
pub struct Wait<'a> {
    what: &'a str,
    since: Instant,
    said: Instant,
}

impl<'a> Wait<'a> {
    /// Starts a wait for a condition.
    pub fn new(what: &'a str) -> Self {
        let now = Instant::now();
        Self {
            what,
            since: now,
            said: now,
        }
    }

    /// Returns how long the wait has lasted.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Prints the wait every few seconds; call it while waiting.
    pub fn tick(&mut self) {
        let terminal = std::io::stdout().is_terminal();
        let often = Duration::from_secs(if terminal { 1 } else { 5 });
        if self.said.elapsed() < often {
            return;
        }
        self.said = Instant::now();
        let text = format!(
            "   … waiting until {} ({} s)",
            self.what,
            self.since.elapsed().as_secs()
        );
        if terminal {
            let mut pen = PEN.lock();
            let mut out = std::io::stdout().lock();
            let _ = write!(out, "\r\x1b[K{}", paint("2", &text));
            let _ = out.flush();
            pen.waiting = true;
        } else {
            line(&text);
        }
    }
}

/// Prints rows under a head, in columns; of a last cell that does not fit, its end.
///
/// # Panics
///
/// If a row has fewer cells than the head.
pub fn table(head: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells
            .chain([head[column].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let print = |cells: &[String], code: &str| {
        let mut row = String::from(" ");
        for (number, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            row.push_str("  ");
            if number + 1 == cells.len() {
                row.push_str(&ending(cell, WIDTH.saturating_sub(row.chars().count())));
            } else {
                row.push_str(&format!("{cell:<width$}"));
            }
        }
        line(&paint(code, row.trim_end()));
    };
    line("");
    print(
        &head
            .iter()
            .map(|cell| (*cell).to_owned())
            .collect::<Vec<_>>(),
        "1",
    );
    for row in rows {
        print(row, "0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_wrapped_and_a_long_trail_keeps_its_end() {
        let text = "word ".repeat(40);
        for (number, line) in wrapped(text.trim(), 5).lines().enumerate() {
            assert!(
                line.chars().count() <= WIDTH - if number == 0 { 5 } else { 0 },
                "{line}"
            );
            assert!(number == 0 || line.starts_with("     w"), "{line}");
        }
        assert_eq!(ending(">Start>Running>", 20), ">Start>Running>");
        assert_eq!(ending(">Start>Running>", 9), "…Running>");
    }
}
