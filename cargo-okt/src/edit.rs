//! Edits of Rust source that keep every comment: text is inserted, and nothing else is touched.

mod state;

use std::io::Write;
use std::process::{Command, Stdio};

use okt_syntax::source::parse;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, File, Item};

pub(crate) use self::state::{ItemPlace, NewState, StateShape};

/// Texts to insert, each at its place in bytes.
#[derive(Default)]
pub(crate) struct Insertions(Vec<(usize, String)>);

impl Insertions {
    fn at(&mut self, place: usize, text: impl Into<String>) {
        self.0.push((place, text.into()));
    }

    /// Adds those of another edit of the same text.
    pub(crate) fn and(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the text with all insertions; it is formatted if it was before.
    pub(crate) fn into(mut self, text: &str) -> String {
        self.0.sort_by_key(|(place, _)| *place);
        let was_formatted = formatted(text).is_some_and(|it| it == text);
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let (mut edited, mut from) = (String::new(), 0);
        for (place, inserted) in self.0 {
            edited.push_str(&text[from..place]);
            edited.push_str(&inserted.replace('\n', line_end));
            from = place;
        }
        edited.push_str(&text[from..]);
        if was_formatted {
            formatted(&edited).unwrap_or(edited)
        } else {
            edited
        }
    }
}

fn start(of: Span) -> usize {
    of.byte_range().start
}

fn end(of: Span) -> usize {
    of.byte_range().end
}

/// Adds the kind of a module to a program: `mod order;`, and `.with(order::connect)` before the `.main()` of its
/// `Program`.
pub(crate) fn with_kind(main: &str, module: &str) -> Result<String, String> {
    let file = parse(main).map_err(|mistake| mistake.text())?;
    let is_there = |item: &Item| matches!(item, Item::Mod(it) if it.ident == module);
    if file.items.iter().any(is_there) {
        return Err(format!("it has a module `{module}` already"));
    }
    let mut calls = ProgramCalls::default();
    calls.visit_file(&file);
    let [call] = calls.0[..] else {
        return Err(format!(
            "there is no single `Program::new()..main()`: write `mod {module};` and `.with({module}::connect)` where your program names its kinds"
        ));
    };
    let mut insertions = Insertions::default();
    insertions.at(call, format!(".with({module}::connect)"));
    let (place, text) = module_place(main, &file, module);
    insertions.at(place, text);
    Ok(insertions.into(main))
}

/// Returns where a module is declared, with the text: after the other modules, or before the first item and its comments.
fn module_place(main: &str, file: &File, module: &str) -> (usize, String) {
    let is_module = |item: &&Item| matches!(item, Item::Mod(it) if it.content.is_none());
    let modules: Vec<&Item> = file.items.iter().filter(is_module).collect();
    // The tests of a program are its last module.
    let after = modules.iter().rev().find(|it| !is_of_tests(it));
    if let Some(last) = after {
        let place = behind_comment(main, end(last.span()));
        return (place, format!("\nmod {module};"));
    }
    let first = file.items.first();
    let mut place = first.map_or(0, |first| start(first.span()));
    let is_comment = |line: &str| line.starts_with("//") && !line.starts_with("//!");
    while let Some(line) = main[..place]
        .lines()
        .next_back()
        .filter(|line| is_comment(line))
    {
        let before = main[..place].trim_end_matches(['\n', '\r']).len();
        place = before - line.trim_end_matches('\r').len();
    }
    (place, format!("mod {module};\n\n"))
}

/// Returns the place behind a comment that stands on the same line as what ends here; else the same place.
fn behind_comment(text: &str, place: usize) -> usize {
    let rest = text[place..].lines().next().unwrap_or_default();
    let comment = rest.trim();
    let is_block = comment.starts_with("/*") && comment.ends_with("*/");
    if comment.starts_with("//") || is_block {
        place + rest.len()
    } else {
        place
    }
}

fn is_of_tests(item: &Item) -> bool {
    matches!(item, Item::Mod(it) if it.attrs.iter().any(|attr| attr.path().is_ident("cfg")))
}

/// The places of `.main()` after `Program::new()` or `Program::with_options()`.
#[derive(Default)]
struct ProgramCalls(Vec<usize>);

impl<'ast> Visit<'ast> for ProgramCalls {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method == "main" && call.args.is_empty() && begins_a_program(&call.receiver) {
            self.0.push(start(call.dot_token.span()));
        }
        visit::visit_expr_method_call(self, call);
    }
}

fn begins_a_program(receiver: &Expr) -> bool {
    match receiver {
        Expr::MethodCall(call) => begins_a_program(&call.receiver),
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => {
                let mut segments = path.path.segments.iter();
                segments.any(|segment| segment.ident == "Program")
            }
            _ => false,
        },
        _ => false,
    }
}

/// Formats the code with rustfmt; returns none if rustfmt is missing or fails.
pub(crate) fn formatted(code: &str) -> Option<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--emit", "stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // rustfmt prints only after it has read everything.
    let read = rustfmt.stdin.take()?.write_all(code.as_bytes());
    let output = rustfmt.wait_with_output().ok()?;
    (read.is_ok() && output.status.success())
        .then(|| String::from_utf8(output.stdout).ok())
        .flatten()
        .filter(|code| !code.is_empty())
}
