//! This file estimates the maximum cost of a call, in the units of cel-go.
//!
//! The server refuses a CRD by this estimate, so it equals the server's, even where a better one is possible: a text is
//! as long as its schema allows, and each branch is taken.

use kube::core::cel::cel::common::ast::operators;

use super::{
    known::{Known, Place},
    library::Overload,
    size::Size,
    types::Type,
};

/// The cost of naming a variable or a field.
pub(super) const SELECT: u64 = 1;
/// The cost of making a list, without its items.
pub(super) const LIST: u64 = 10;
/// The cost of making a map, without its entries.
pub(super) const MAP: u64 = 30;

/// The cost of reading one character.
const TRAVERSAL: f64 = 0.1;
/// The cost of one character of a regular expression.
const REGEX: f64 = 0.25;
/// The length of the longest regular expression of a named format, in characters.
const FORMAT_REGEX: f64 = 128.0;

impl Size {
    /// Returns the cost of reading all characters.
    fn traversed(self) -> u64 {
        scale(self.most, TRAVERSAL)
    }
}

/// Returns the cost of a call without its arguments, and the size of its result.
pub(super) fn of_call(
    name: &str,
    overload: &Overload,
    target: Option<&Known>,
    arguments: &[Known],
) -> (u64, Option<Size>) {
    let size = |index: usize| arguments.get(index).map_or(Size::ANY, Known::size_or_any);
    let own = target.map_or_else(|| size(0), Known::size_or_any);
    let parameter = |index: usize, kind: &str| {
        let found = overload.parameters.get(index);
        found.is_some_and(|parameter| parameter.is(kind))
    };
    match (name, target) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list)) => {
            (over_items(list), None)
        }
        ("url", None) => (own.traversed(), Some(own)),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(_)) => {
            (own.traversed(), Some(own))
        }
        ("replace", Some(_)) => (
            scale(own.most, 2.0 * TRAVERSAL),
            Some(replaced(own, size(0), size(1))),
        ),
        ("split", Some(_)) => {
            let limit = arguments.get(1).and_then(|limit| limit.literal);
            #[expect(
                clippy::cast_sign_loss,
                reason = "a negative limit is no limit there too"
            )]
            let most = limit.map_or(own.most, |limit| limit as u64);
            (scale(own.most, 2.0 * TRAVERSAL), Some(Size::up_to(most)))
        }
        ("join", Some(list)) => {
            let joined = joined(list, arguments.first());
            (joined.traversed(), Some(joined))
        }
        ("find" | "findAll", Some(_)) => (matched(own, size(0)), Some(Size::up_to(own.most))),
        ("cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver", _) => {
            (size(0).traversed(), None)
        }
        ("ip.isCanonical", _) => (scale(size(0).most, 2.0 * TRAVERSAL), None),
        ("containsIP" | "containsCIDR", _) => {
            // Addresses have 4 or 16 bytes. They are compared once; `containsCIDR` also compares the masks.
            let compared = if name == "containsIP" { 4 } else { 4 + 2 + 1 };
            let parsed = if parameter(1, "string") {
                size(0).traversed()
            } else {
                0
            };
            (parsed.saturating_add(compared), None)
        }
        ("validate", _) => (scale(size(0).traversed(), FORMAT_REGEX * REGEX), None),
        ("bytes", _) if parameter(0, "string") => {
            let most = size(0).most.saturating_mul(4);
            let least = size(0).least;
            (size(0).traversed(), Some(Size { least, most }))
        }
        ("string", _) if parameter(0, "bytes") => {
            let (least, most) = (size(0).least / 4, size(0).most);
            (size(0).traversed(), Some(Size { least, most }))
        }
        ("strings.quote", _) => {
            let quoted = size(0).times(Size { least: 1, most: 2 });
            (size(0).traversed(), Some(quoted.plus(Size::fixed(2))))
        }
        ("format", Some(_)) => (own.traversed(), None),
        ("startsWith" | "endsWith", Some(_)) | ("ip", None) => (size(0).traversed(), None),
        ("matches", Some(_)) => (matched(own, size(0)), None),
        ("contains", Some(_)) => (own.traversed().saturating_mul(size(0).traversed()), None),
        ("sets.contains" | "sets.intersects", _) => (pairs(size(0), size(1), 1.0), None),
        ("sets.equivalent", _) => (pairs(size(0), size(1), 2.0), None),
        _ => of_operator(name, overload, arguments)
            .or_else(|| of_list_function(name, own, target, arguments))
            .unwrap_or((1, None)),
    }
}

fn of_operator(
    name: &str,
    overload: &Overload,
    arguments: &[Known],
) -> Option<(u64, Option<Size>)> {
    let size = |index: usize| arguments.get(index).map_or(Size::ANY, Known::size_or_any);
    let is_text = overload
        .parameters
        .first()
        .is_some_and(|one| one.is("string") || one.is("bytes"));
    let compared = scale(size(0).most.min(size(1).most), TRAVERSAL);
    Some(match name {
        operators::LOGICAL_AND | operators::LOGICAL_OR => (0, None),
        operators::CONDITIONAL => (0, Some(size(1).union(size(2)))),
        operators::IN if matches!(overload.parameters.get(1), Some(Type::List(_))) => {
            (size(1).most, None)
        }
        operators::EQUALS if arguments.iter().all(|one| is_cheap_to_compare(&one.kind)) => {
            (1, None)
        }
        operators::EQUALS | operators::NOT_EQUALS => (compared, None),
        operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => {
            // Values of an open type may be texts.
            let are_texts = arguments
                .iter()
                .all(|one| one.kind.is("string") || one.kind.is("bytes") || one.kind.is_open());
            if are_texts {
                (compared.max(u64::from(!is_text_only(arguments))), None)
            } else {
                (1, None)
            }
        }
        operators::ADD if is_text => {
            let sum = size(0).plus(size(1));
            (sum.traversed(), Some(sum))
        }
        operators::ADD if matches!(overload.parameters.first(), Some(Type::List(_))) => {
            (1, Some(size(0).plus(size(1))))
        }
        _ => return None,
    })
}

/// Whether the operands are certainly texts.
fn is_text_only(arguments: &[Known]) -> bool {
    arguments
        .iter()
        .any(|one| one.kind.is("string") || one.kind.is("bytes"))
}

fn of_list_function(
    name: &str,
    own: Size,
    target: Option<&Known>,
    arguments: &[Known],
) -> Option<(u64, Option<Size>)> {
    let literal = |index: usize, other: u64| -> u64 {
        let found = arguments.get(index).and_then(|one| one.literal);
        found.map_or(other, |number| u64::try_from(number).unwrap_or(0))
    };
    let making = |factor: f64, size: Size| {
        let cost = scale(size.most, factor).saturating_add(1 + LIST);
        Some((cost, Some(size)))
    };
    let is_text =
        |kind: &Type| matches!(kind, Type::List(items) if items.is("string") || items.is("bytes"));
    match name {
        "slice" => {
            let length = literal(1, own.most).wrapping_sub(literal(0, 0));
            making(1.0, Size::fixed(length))
        }
        "lists.range" => making(1.0, Size::fixed(literal(0, u64::MAX))),
        "reverse" => making(1.0, own),
        "flatten" if arguments.is_empty() => making(1.0, own),
        #[expect(
            clippy::cast_precision_loss,
            reason = "the server computes in floats too"
        )]
        "flatten" => making(literal(0, u64::MAX) as f64, own),
        "distinct" => making(2.0, own.times(own)),
        "sort" => {
            let texts = target.is_some_and(|target| is_text(&target.kind));
            making(if texts { 2.0 + TRAVERSAL } else { 2.0 }, own.times(own))
        }
        _ => None,
    }
}

/// Returns the cost of reading each item once, and each text in it.
fn over_items(list: &Known) -> u64 {
    let size = list.size_or_any();
    match &list.kind {
        Type::List(items) if items.is("string") || items.is("bytes") => {
            let each = item_size(list).traversed().saturating_add(1);
            size.most.saturating_mul(each)
        }
        Type::List(_) => size.most,
        _ => size.traversed(),
    }
}

/// Returns the size of the items of a list, if the schema declares it.
fn item_size(list: &Known) -> Size {
    let Place::At(Some(decl)) = &list.place else {
        return Size::ANY;
    };
    decl.element()
        .map_or(Size::ANY, |items| Size::up_to(items.most))
}

fn joined(list: &Known, separator: Option<&Known>) -> Size {
    let size = list.size_or_any();
    let texts = size.times(item_size(list));
    let Some(separator) = separator else {
        return texts;
    };
    let gaps = Size {
        least: size.least.saturating_sub(1),
        most: size.most.saturating_sub(1),
    };
    texts.plus(separator.size_or_any().times(gaps))
}

/// Returns the cost of a match. It counts one character more, so that an empty text with a long pattern is not free.
fn matched(text: Size, pattern: Size) -> u64 {
    let text = scale(text.most.saturating_add(1), TRAVERSAL);
    text.saturating_mul(scale(pattern.most, REGEX))
}

/// Returns the size of a text after the longest and the shortest replacements.
fn replaced(text: Size, from: Size, to: Size) -> Size {
    let mut count = Size::ZERO;
    let mut kept = Size::ZERO;
    if from.least == 0 {
        count.most = text.most.saturating_add(1);
        kept.most = text.most;
    } else if to.most <= from.least {
        kept.most = text.most;
    } else {
        count.most = text.most.div_ceil(from.least);
    }
    if from.most == 0 {
        count.least = text.least.saturating_add(1);
        kept.least = text.least;
    } else if from.most <= to.least {
        kept.least = text.least;
    } else {
        count.least = text.least.div_ceil(from.most);
    }
    count.times(to).plus(kept)
}

fn pairs(a: Size, b: Size, factor: f64) -> u64 {
    scale(a.times(b).most, factor).saturating_add(1)
}

/// Whether comparing such values costs one unit.
fn is_cheap_to_compare(kind: &Type) -> bool {
    [
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
    ]
    .iter()
    .any(|name| kind.is(name))
}

/// Multiplies and rounds up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the server computes in floats too, and casts saturate"
)]
fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}
