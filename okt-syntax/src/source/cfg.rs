//! Conditional compilation, resolved from the source.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fmt;

use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token, parse_quote};

/// The configuration of a compilation: what `#[cfg(..)]` is decided by.
///
/// A value is spelt as `rustc --print cfg` prints it (e.g. `unix`, `feature="backup"`).
pub struct Cfg {
    values: OnceCell<BTreeSet<String>>,
    load: Box<dyn Fn() -> BTreeSet<String>>,
}

impl Cfg {
    /// Returns a configuration of these values.
    ///
    /// ```
    /// use okt_syntax::source::{Cfg, Source};
    ///
    /// let text = "#[cfg(unix)] mod sockets;";
    /// assert_eq!(Source::parse(text, &Cfg::new(["unix"]))?.modules().len(), 1);
    /// assert_eq!(Source::parse(text, &Cfg::new([]))?.modules().len(), 0);
    /// # Ok::<(), Box<okt_syntax::source::Mistake>>(())
    /// ```
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let values: BTreeSet<String> = values.into_iter().map(normalized).collect();
        Self::lazy(move || values.clone().into_iter().collect())
    }

    /// Returns a configuration whose values are asked for when a `#[cfg]` is met.
    pub fn lazy(values: impl Fn() -> Vec<String> + 'static) -> Self {
        let load = move || values().iter().map(|value| normalized(value)).collect();
        Self {
            values: OnceCell::new(),
            load: Box::new(load),
        }
    }

    /// Returns whether an item with these attributes is compiled, by tests or without.
    pub(super) fn may_have(&self, attrs: &[Attribute]) -> bool {
        [false, true].into_iter().any(|in_tests| {
            let mut predicates = predicates(attrs);
            predicates.all(|it| self.holds(&it, in_tests))
        })
    }

    /// Returns whether a part of an item with these attributes is compiled.
    pub(super) fn has(&self, attrs: &[Attribute]) -> bool {
        predicates(attrs).all(|it| self.holds(&it, false))
    }

    /// Returns the attributes with each `#[cfg_attr(..)]` replaced by those that it brings, without any `#[cfg]`.
    pub(super) fn resolved(&self, attrs: &[Attribute]) -> Vec<Attribute> {
        let mut resolved = Vec::new();
        for attr in attrs {
            if !attr.path().is_ident("cfg_attr") {
                resolved.extend((!attr.path().is_ident("cfg")).then(|| attr.clone()));
                continue;
            }
            let list = attr.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
            let mut metas = list.unwrap_or_default().into_iter();
            if metas.next().is_some_and(|it| self.holds(&it, false)) {
                let brought: Vec<Attribute> = metas.map(|meta| parse_quote!(#[#meta])).collect();
                resolved.extend(self.resolved(&brought));
            }
        }
        resolved
    }

    fn holds(&self, predicate: &Meta, in_tests: bool) -> bool {
        match predicate {
            Meta::List(list) => {
                let read = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
                let metas = read.unwrap_or_default();
                let mut held = metas.iter().map(|it| self.holds(it, in_tests));
                let word = list.path.get_ident().map(ToString::to_string);
                match word.as_deref() {
                    Some("not") => !held.any(|it| it),
                    Some("any") => held.any(|it| it),
                    Some("all") => held.all(|it| it),
                    Some(_) | None => false,
                }
            }
            Meta::Path(path) if path.is_ident("test") => in_tests,
            Meta::Path(path) if path.is_ident("true") => true,
            Meta::Path(_) | Meta::NameValue(_) => {
                let value = normalized(&predicate.to_token_stream().to_string());
                self.values.get_or_init(|| (self.load)()).contains(&value)
            }
        }
    }
}

impl fmt::Debug for Cfg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cfg").field(&self.values.get()).finish()
    }
}

/// Returns the predicates of the attributes `#[cfg(..)]`; rustc reports one that cannot be read.
fn predicates(attrs: &[Attribute]) -> impl Iterator<Item = Meta> {
    let attrs = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    attrs.filter_map(|attr| attr.parse_args().ok())
}

/// Returns a value in one spelling, whatever the spaces around `=`.
fn normalized(value: &str) -> String {
    match value.split_once('=') {
        Some((name, value)) => format!("{}={}", name.trim(), value.trim()),
        None => value.trim().to_owned(),
    }
}
