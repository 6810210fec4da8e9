//! The options of `#[lifecycle_graph(..)]`.

use okt_core::Kind;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::{Path, parse_quote};

use crate::items::{self, Item, ItemContent};
use crate::report::ErrorReport;

/// The options of the attribute on the enum.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) kind: Kind,
    /// The crate that generated code names (e.g. `::okt`).
    pub(crate) krate: Path,
    /// The spec whose parts triggers name.
    pub(crate) spec: Option<Path>,
    /// The name of the generated module, if it does not come from the enum.
    pub(crate) module: Option<Ident>,
    /// The name of the generated trait, if it does not come from the enum.
    pub(crate) handler: Option<Ident>,
}

impl Options {
    pub(crate) fn read(report: &mut ErrorReport, args: TokenStream) -> Self {
        let mut read = Self {
            kind: Kind::Lifecycle,
            krate: parse_quote!(::okt),
            spec: None,
            module: None,
            handler: None,
        };
        let mut seen: Vec<String> = Vec::new();
        for item in items::parse(report, args) {
            let word = item.word().unwrap_or_default();
            item.once(report, &mut seen);
            match word.as_str() {
                "pass" => {
                    item.is_flag(report, "pass");
                    read.kind = Kind::Pass;
                }
                "crate" => read.krate = path(report, &item).unwrap_or(read.krate),
                "spec" => read.spec = path_of(report, &item, "spec", "DatabaseSpec"),
                "module" => read.module = ident(report, &item, "module", "database_state"),
                "handler" => read.handler = ident(report, &item, "handler", "DatabaseStateHandler"),
                _ => item.unknown(report, &["pass", "crate", "spec", "module", "handler"]),
            }
        }
        read
    }

    /// Returns the path of the hidden derive.
    ///
    /// A crate that generated code names exports it; `okt_core` cannot, because the macros depend on it.
    pub(crate) fn derive(&self) -> TokenStream {
        let krate = &self.krate;
        let last = krate.segments.last();
        if last.is_some_and(|last| last.ident == "okt_core") {
            quote!(::okt_macros::LifecycleGraph)
        } else {
            quote!(#krate::__private::LifecycleGraph)
        }
    }
}

/// Returns the path in `crate(okt_core)`.
pub(crate) fn path(report: &mut ErrorReport, item: &Item) -> Option<Path> {
    path_of(report, item, "crate", "okt_core")
}

/// Returns the path in `word(path)`; reports anything else.
pub(crate) fn path_of(
    report: &mut ErrorReport,
    item: &Item,
    word: &str,
    example: &str,
) -> Option<Path> {
    if let ItemContent::List { items, .. } = &item.content
        && let Ok(path) = Path::parse_mod_style.parse2(items.clone())
    {
        return Some(path);
    }
    report.bad_option(
        item.spot,
        format!("`{word}` takes a path"),
        format!("write `{word}({example})`"),
    );
    None
}

/// Returns the name in `module = ".."` or `handler = ".."`.
fn ident(report: &mut ErrorReport, item: &Item, word: &str, example: &str) -> Option<Ident> {
    let (name, spot) = item.text(report, word)?;
    let ident = identifier(&name);
    if ident.is_none() {
        report.bad_option(
            spot,
            format!("`{name}` cannot be a name in Rust"),
            format!("write e.g. `{word} = \"{example}\"`"),
        );
    }
    ident
}

/// Converts a word into an identifier of generated code, raw for a keyword; none if Rust allows no such name.
///
/// The span is the macro's, so that an editor does not mistake a derived name for the original one.
pub(crate) fn identifier(word: &str) -> Option<Ident> {
    // `gen` is a keyword since the edition of 2024, and syn does not know it as one.
    let plain: Option<Ident> = syn::parse_str(word).ok().filter(|_| word != "gen");
    let mut ident = plain.or_else(|| syn::parse_str(&format!("r#{word}")).ok())?;
    ident.set_span(Span::call_site());
    Some(ident)
}

#[cfg(test)]
mod tests {
    use super::identifier;

    #[test]
    fn keywords_become_raw_and_invalid_names_are_refused() {
        let spelled = |word| identifier(word).map(|ident| ident.to_string());
        assert_eq!(spelled("start").as_deref(), Some("start"));
        assert_eq!(spelled("loop").as_deref(), Some("r#loop"));
        assert_eq!(spelled("gen").as_deref(), Some("r#gen"));
        for word in [
            "self", "crate", "super", "", "_", "a b", "1a", "a-b", "Self",
        ] {
            assert_eq!(spelled(word), None, "{word}");
        }
    }
}
