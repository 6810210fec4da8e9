//! This file lists the functions that rules of Kubernetes 1.36 can call, with their signatures.
//!
//! A signature with a dot is a method of the type before it. Type parameters are single letters: `C` has an order, `S`
//! can be summed up, `N` and `M` are numbers, the others are any type.

mod extensions;
mod standard;

use std::{collections::BTreeMap, rc::Rc};

use self::{
    extensions::EXTENSIONS,
    standard::{OPERATORS, STANDARD},
};
use super::types::Type;

/// Functions by name, with the signatures of each.
type Signatures = &'static [(&'static str, &'static [&'static str])];

/// One signature of a function.
pub(super) struct Overload {
    pub(super) is_method: bool,
    /// The parameter types; the type of a method's receiver comes first.
    pub(super) parameters: Vec<Type>,
    pub(super) result: Type,
}

/// Macros that the `cel` crate does not expand.
pub(super) const MACROS: [&str; 4] = [
    "transformList",
    "transformMap",
    "transformMapEntry",
    "sortBy",
];

thread_local! {
    static LIBRARY: BTreeMap<&'static str, Rc<[Overload]>> = {
        [OPERATORS, STANDARD, EXTENSIONS]
            .into_iter()
            .flatten()
            .map(|(name, signatures)| {
                let overloads = signatures.iter().map(|text| parse(text)).collect();
                (*name, overloads)
            })
            .collect()
    };
}

/// Returns the signatures of a function, or `None` if it does not exist.
pub(super) fn overloads(name: &str) -> Option<Rc<[Overload]>> {
    LIBRARY.with(|library| library.get(name).cloned())
}

fn parse(signature: &str) -> Overload {
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
    Overload {
        is_method: owner.is_some(),
        parameters,
        result: Type::parse(result),
    }
}
