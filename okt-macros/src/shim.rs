//! Expands the attribute itself: the unchanged item with a hidden derive that does the work.
//!
//! A derive sees an enum after `#[cfg]` and `#[cfg_attr]` are resolved, and can only add code, so the enum stays
//! intact even if it has mistakes.

use okt_core::check::Rule;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

use crate::model::OPTIONS;
use crate::options::Options;
use crate::report::Report;

/// Adds the derive, and the options that it reads, before the item.
pub(crate) fn expand(args: &TokenStream, item: &TokenStream) -> TokenStream {
    let mut report = Report::new();
    match keyword(item.clone()) {
        // The derive reports that only an enum is allowed; it also owns the attributes inside the item.
        Some(word) if ["enum", "struct", "union"].iter().any(|kind| word == kind) => {
            let derive = Options::read(&mut report, args.clone()).derive();
            report.leave();
            let hidden = Ident::new(OPTIONS, Span::call_site());
            let options = (!args.is_empty()).then(|| quote!(#[#hidden(#args)]));
            quote! {
                #[derive(#derive)]
                #options
                #item
            }
        }
        word => {
            let span = word.map_or_else(Span::call_site, |word| word.span());
            let spot = report.spot(span);
            report.error(
                Rule::Shape,
                spot,
                "only an enum can be a lifecycle graph; declare one variant per state",
            );
            let errors = report.finish();
            quote!(#item #errors)
        }
    }
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
