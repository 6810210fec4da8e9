//! Lists the functions that rules of Kubernetes 1.36 can call, with their signatures.

mod extensions;
mod signature;
mod standard;

use std::{collections::BTreeMap, rc::Rc};

use self::extensions::EXTENSIONS;
pub(super) use self::signature::Overload;
use self::standard::{OPERATORS, STANDARD};

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
                let overloads = signatures.iter().map(|text| Overload::parse(text)).collect();
                (*name, overloads)
            })
            .collect()
    };
}

/// Returns the signatures of a function, or `None` if it does not exist.
pub(super) fn overloads(name: &str) -> Option<Rc<[Overload]>> {
    LIBRARY.with(|library| library.get(name).cloned())
}
