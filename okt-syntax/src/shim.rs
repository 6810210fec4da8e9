//! Expands the attribute itself: the unchanged item with a hidden derive that does the work.
//!
//! A derive sees an enum after `#[cfg]` and `#[cfg_attr]` are resolved, and can only add code, so the enum stays
//! intact even if it has mistakes.

use okt_core::check::Rule;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Token, Visibility};

use crate::model::{OPTIONS, refuse_shape};
use crate::options::Options;
use crate::report::ErrorReport;
use crate::resource::derives;

/// Adds the derive, and the options that it reads, before the item.
pub(crate) fn expand(args: &TokenStream, item: &TokenStream) -> TokenStream {
    let mut report = ErrorReport::new();
    let missing = missing(&mut report, item);
    let errors = report.finish();
    let Some(missing) = missing else {
        return quote!(#item #errors);
    };
    let mut report = ErrorReport::new();
    // The derive reads the options once more, and reports what is wrong with them.
    let derive = Options::read(&mut report, args.clone()).derive();
    report.leave();
    let options = options(args);
    quote! {
        #errors
        #[derive(#derive, #(#missing),*)]
        #options
        #item
    }
}

/// Returns the attribute that passes the options on to the derive; none if there are no options.
pub(crate) fn options(args: &TokenStream) -> Option<TokenStream> {
    let hidden = Ident::new(OPTIONS, Span::call_site());
    (!args.is_empty()).then(|| quote!(#[#hidden(#args)]))
}

/// Returns the derives that an enum of states lacks, and reports them; none if the item cannot have derives, which it
/// reports as well.
pub(crate) fn missing(report: &mut ErrorReport, item: &TokenStream) -> Option<Vec<Ident>> {
    match keyword(item.clone()) {
        // The derive reports that only an enum is allowed; it also owns the attributes inside the item.
        Some(word) if ["enum", "struct", "union"].iter().any(|kind| word == kind) => {
            Some(head(item).map_or_else(Vec::new, |(attrs, name)| {
                missing_derives(report, &attrs, &name)
            }))
        }
        word => {
            refuse_shape(
                report,
                word.map_or_else(Span::call_site, |word| word.span()),
            );
            None
        }
    }
}

/// Returns the attributes and the name of an enum; none for any other item.
///
/// It parses no more than that: to parse all variants of a large graph twice takes time.
fn head(item: &TokenStream) -> Option<(Vec<Attribute>, Ident)> {
    let head = |input: ParseStream<'_>| {
        let attrs = input.call(Attribute::parse_outer)?;
        let _: Visibility = input.parse()?;
        let _: Token![enum] = input.parse()?;
        let name: Ident = input.call(Ident::parse_any)?;
        let _: TokenStream = input.parse()?;
        Ok((attrs, name))
    };
    head.parse2(item.clone()).ok()
}

/// Returns the derives that an enum of states lacks below the attribute, and reports them.
///
/// Derives above the attribute are not seen, so an enum whose derives below have none of them may have them all.
pub(crate) fn missing_derives(
    report: &mut ErrorReport,
    attrs: &[Attribute],
    name: &Ident,
) -> Vec<Ident> {
    const ALL: [&str; 5] = ["Clone", "Copy", "Debug", "PartialEq", "Eq"];
    let derived = derives(attrs).unwrap_or_default();
    let has = |name: &str| derived.iter().any(|it| it == name);
    let missing: Vec<&str> = ALL.into_iter().filter(|name| !has(name)).collect();
    if missing.is_empty() || missing.len() == ALL.len() {
        return Vec::new();
    }
    let spot = report.spot(name.span());
    report.error(
        Rule::Shape,
        spot,
        "a state is a plain value, which derives Clone, Copy, Debug, PartialEq and Eq",
        format!(
            "write `#[derive({})]` below `#[lifecycle_graph]`",
            missing.join(", ")
        ),
    );
    let missing = missing.iter();
    missing
        .map(|name| Ident::new(name, Span::call_site()))
        .collect()
}

/// Returns the keyword of an item: the first word after its attributes and its visibility.
fn keyword(item: TokenStream) -> Option<Ident> {
    item.into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word != "pub" && word != "crate" => Some(word),
        TokenTree::Ident(_) | TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
            None
        }
    })
}
