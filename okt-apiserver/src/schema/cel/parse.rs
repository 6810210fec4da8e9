//! Parses expressions with the `cel` crate, which may panic and needs a large stack.

use std::thread;

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::parser::{ParseErrors, Parser};

use super::check::RuleMistake;
use super::depth;

/// The maximum length of an expression, in characters.
const SOURCE_LIMIT: usize = 100_000;

/// The stack on which an expression is parsed, in bytes.
const STACK: usize = 64 * 1024 * 1024;

/// The reason why an expression cannot be parsed.
pub(super) enum Unparsed {
    Errors(ParseErrors),
    /// It is longer than a server allows, in the words of the server.
    Long(String),
    /// The parser panicked.
    Panicked,
}

pub(super) fn parse(parser: Parser, source: &str) -> Result<IdedExpr, Unparsed> {
    let size = source.chars().count();
    if size > SOURCE_LIMIT {
        return Err(Unparsed::Long(format!(
            "expression code point size exceeds limit: size: {size}, limit {SOURCE_LIMIT}"
        )));
    }
    // The parser uses some ten kilobytes of the stack for each bracket.
    let outcome = thread::scope(|scope| {
        let parse = || parser.parse(source);
        let parsing = thread::Builder::new().stack_size(STACK);
        Some(parsing.spawn_scoped(scope, parse).ok()?.join())
    });
    match outcome {
        Some(Ok(parsed)) => parsed.map_err(Unparsed::Errors),
        Some(Err(_)) | None => Err(Unparsed::Panicked),
    }
}

/// Parses an expression that is not evaluated, without the syntax of optionals.
pub(crate) fn parse_plain(source: &str) -> Result<IdedExpr, RuleMistake> {
    depth::check(source).map_err(RuleMistake::Lacking)?;
    parse(Parser::new(), source).map_err(|unparsed| match unparsed {
        Unparsed::Errors(errors) => {
            let first = errors.errors.into_iter().next();
            RuleMistake::Wrong(first.map(|error| error.msg).unwrap_or_default())
        }
        Unparsed::Long(why) => RuleMistake::Wrong(why),
        Unparsed::Panicked => {
            RuleMistake::Lacking("an expression on which the parser panics".into())
        }
    })
}
