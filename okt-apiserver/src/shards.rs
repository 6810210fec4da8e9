//! Parses shard selectors, and decides by a hash which objects they select (KEP-5866).
//!
//! A selector is a CEL expression of which a server takes only `||` and the function of the following example. The start
//! of a range belongs to it, and its end does not.
//!
//! ```text
//! shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
//! ```

use std::fmt;
use std::ops::Range;

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use crate::refusal::Refusal;
use crate::schema::cel::{RuleMistake, parse_plain};

/// The ranges of a shard selector.
#[derive(Clone, Debug)]
pub(crate) struct Shards {
    field: Field,
    /// Bounds up to 2^64, which is one more than the largest hash.
    ranges: Vec<Range<u128>>,
}

/// The field that is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Uid,
    /// The namespace; empty for cluster-scoped objects.
    Namespace,
}

impl Shards {
    /// Parses a selector; `None` if the text is empty.
    ///
    /// # Errors
    /// The selector is invalid. A real server answers 500, although the request is wrong.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Refusal> {
        if text.is_empty() {
            return Ok(None);
        }
        match read(text.trim()) {
            Ok(shards) => Ok(Some(shards)),
            Err(RuleMistake::Wrong(why)) => Err(Refusal::unexplained(format!(
                "invalid shard selector: {why}"
            ))),
            Err(RuleMistake::Lacking(what)) => {
                Err(Refusal::not_served(format!("a shard selector with {what}")))
            }
        }
    }

    /// Whether an object is in one of the ranges.
    pub(crate) fn select(&self, uid: &str, namespace: &str) -> bool {
        let text = match self.field {
            Field::Uid => uid,
            Field::Namespace => namespace,
        };
        let hash = u128::from(hash(text));
        self.ranges.iter().any(|range| range.contains(&hash))
    }
}

/// Formats the selector as lists contain it, whatever quotes and spaces the request has.
impl fmt::Display for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Range { start, end }) in self.ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(" || ")?;
            }
            let field = self.field;
            write!(f, "shardRange({field}, '0x{start:016x}', '0x{end:016x}')")?;
        }
        Ok(())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        })
    }
}

/// Returns the 64-bit FNV-1a hash of a text.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn read(text: &str) -> Result<Shards, RuleMistake> {
    if text.is_empty() {
        let why = "empty shard selector is not allowed; omit the parameter for unfiltered lists";
        return Err(RuleMistake::Wrong(why.to_owned()));
    }
    let parsed = parse_plain(text).map_err(|mistake| match mistake {
        RuleMistake::Wrong(why) => RuleMistake::Wrong(format!("CEL parse error: {why}")),
        lacking @ RuleMistake::Lacking(_) => lacking,
    })?;
    let mut found = Vec::new();
    collect(&parsed, &mut found).map_err(RuleMistake::Wrong)?;
    let field = found.first().map_or(Field::Uid, |(field, _)| *field);
    if let Some((other, _)) = found.iter().find(|(other, _)| *other != field) {
        let why =
            format!("all shard ranges must use the same field, got \"{field}\" and \"{other}\"");
        return Err(RuleMistake::Wrong(why));
    }
    let ranges = found.into_iter().map(|(_, range)| range).collect();
    Ok(Shards { field, ranges })
}

/// Adds the ranges of an expression, in order.
fn collect(node: &IdedExpr, found: &mut Vec<(Field, Range<u128>)>) -> Result<(), String> {
    let Expr::Call(call) = &node.expr else {
        return Err(format!(
            "unexpected expression kind {}; expected shardRange() call or || operator",
            kind(node)
        ));
    };
    match call.func_name.as_str() {
        operators::LOGICAL_OR => call.args.iter().try_for_each(|side| collect(side, found)),
        "shardRange" => {
            found.push(range(call)?);
            Ok(())
        }
        other => Err(format!(
            "unsupported function \"{other}\"; only shardRange() and || are allowed"
        )),
    }
}

/// Reads a call of `shardRange`; as on a real server its target does not matter.
fn range(call: &CallExpr) -> Result<(Field, Range<u128>), String> {
    let [path, start, end] = call.args.as_slice() else {
        let count = call.args.len();
        return Err(format!(
            "shardRange() requires exactly 3 arguments, got {count}"
        ));
    };
    let path = path_of(path).map_err(|why| format!("shardRange() first argument: {why}"))?;
    let field = [Field::Uid, Field::Namespace]
        .into_iter()
        .find(|field| field.to_string() == path)
        .ok_or_else(|| {
            let fields = [Field::Uid, Field::Namespace].map(|field| field.to_string());
            let supported = fields.join(", ");
            format!("unsupported field path \"{path}\"; supported: {supported}")
        })?;
    let (start, start_text) = bound(start, "hexStart")?;
    let (end, end_text) = bound(end, "hexEnd")?;
    if start >= end {
        return Err(format!(
            "shard range start {start_text} must be less than end {end_text}"
        ));
    }
    Ok((field, start..end))
}

/// Returns the path of a field; the parser drops a dot in front of it, which a real server refuses.
fn path_of(node: &IdedExpr) -> Result<String, String> {
    match &node.expr {
        Expr::Ident(name) => Ok(name.clone()),
        Expr::Select(select) => Ok(format!("{}.{}", path_of(&select.operand)?, select.field)),
        _ => Err(format!(
            "expected field path (e.g. object.metadata.uid), got expression kind {}",
            kind(node)
        )),
    }
}

/// Reads a bound: 16 digits, or the 17 of 2^64.
fn bound<'n>(node: &'n IdedExpr, name: &str) -> Result<(u128, &'n str), String> {
    let Expr::Literal(literal) = &node.expr else {
        return Err(format!(
            "{name} must be a string literal (e.g. '0xff'), got expression kind {}",
            kind(node)
        ));
    };
    let go = match literal {
        LiteralValue::String(text) => return Ok((number(text.inner(), name)?, text.inner())),
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "[]uint8",
        LiteralValue::Double(_) => "float64",
        LiteralValue::Int(_) => "int64",
        LiteralValue::Null => "structpb.NullValue",
        LiteralValue::UInt(_) => "uint64",
    };
    Err(format!("{name} must be a string literal, got {go}"))
}

fn number(text: &str, name: &str) -> Result<u128, String> {
    const LAST: &str = "0x10000000000000000";
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    let length = digits.len();
    if length > 17 {
        return Err(format!(
            "{name}: hex value too long ({length} chars, max 17): {digits:?}"
        ));
    }
    if let Some(odd) = digits.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        let odd = odd.to_string();
        return Err(format!("{name}: invalid hex character {odd:?} in {text:?}"));
    }
    if length == 17 && text != LAST {
        return Err(format!(
            "{name}: 17-digit hex value must be '{LAST}' (2^64), got {text:?}"
        ));
    }
    if length < 16 {
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \"0x{digits:0>16}\"?)"
        ));
    }
    u128::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

/// Returns the number of an expression's kind in Go, which errors contain.
fn kind(node: &IdedExpr) -> u8 {
    match node.expr {
        Expr::Unspecified => 0,
        Expr::Call(_) => 1,
        Expr::Comprehension(_) => 2,
        Expr::Ident(_) => 3,
        Expr::List(_) => 4,
        Expr::Literal(_) => 5,
        Expr::Map(_) => 6,
        Expr::Select(_) => 7,
        Expr::Struct(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
    const HIGH: &str =
        "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

    /// Returns the selector as lists show it.
    fn shown(text: &str) -> String {
        let parsed = Shards::parse(text).expect("a selector");
        parsed.expect("the text is not empty").to_string()
    }

    #[test]
    fn the_largest_hash_is_below_the_last_end() {
        let shards = Shards::parse(HIGH).expect("a selector").expect("one");
        assert!(shards.ranges[0].contains(&u128::from(u64::MAX)));
        assert_eq!(shards.to_string(), HIGH);
    }

    #[test]
    fn spaces_brackets_quotes_and_comments_do_not_matter() {
        for text in [
            LOW.to_owned(),
            format!("  {LOW} \n"),
            LOW.replace(' ', ""),
            LOW.replace(' ', "\n"),
            format!("({LOW})"),
            LOW.replace('\'', "\""),
            LOW.replace('\'', "'''"),
            LOW.replace("'0x0", "r'0x0"),
            LOW.replace("'0x0", r"'\u0030x0"),
            LOW.replace("object.metadata.uid", "object . metadata . uid"),
            LOW.replace("object.metadata.uid", "(object.metadata).uid"),
            format!("{LOW} // half"),
            format!("object.{LOW}"),
        ] {
            assert_eq!(shown(&text), LOW, "{text}");
        }
        assert_eq!(
            shown(&format!("(({HIGH}) || {LOW})")),
            format!("{HIGH} || {LOW}")
        );
        let many = [LOW; 64].join(" || ");
        assert_eq!(shown(&many), many);
    }

    /// The conformance suite has them all.
    /// A real server names the same errors, and other words that it expected.
    #[test]
    fn a_selector_that_is_nested_too_deep_is_not_served() {
        let deep = format!("{}{LOW}{}", "(".repeat(60), ")".repeat(60));
        let refusal = Shards::parse(&deep).expect_err("too deep").body();
        assert_eq!(refusal["code"], 501);
    }
}
