//! Parses the signatures of functions.
//!
//! A signature with a dot is a method of the type before it. Type parameters are single letters: `C` has an order, `S`
//! can be summed up, `N` and `M` are numbers, the others are any type.

use super::super::types::Type;

/// Functions by name, with the signatures of each.
pub(super) type Signatures = &'static [(&'static str, &'static [&'static str])];

/// One signature of a function.
pub(crate) struct Overload {
    pub(crate) is_method: bool,
    /// The parameter types; the type of a method's receiver comes first.
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
}

impl Overload {
    pub(super) fn parse(signature: &str) -> Self {
        let (before, rest) = signature
            .split_once('(')
            .expect("a signature has parentheses");
        let (inner, result) = rest.rsplit_once(')').expect("a signature has parentheses");
        let owner = before.strip_suffix('.');
        let mut parameters: Vec<Type> = owner.map(Type::parse).into_iter().collect();
        let mut depth = 0;
        let pieces = inner.split(|c| {
            match c {
                '<' => depth += 1,
                '>' => depth -= 1,
                _ => {}
            }
            c == ',' && depth == 0
        });
        parameters.extend(pieces.filter(|piece| !piece.is_empty()).map(Type::parse));
        Self {
            is_method: owner.is_some(),
            parameters,
            result: Type::parse(result),
        }
    }
}
