//! Where each name in an attribute is a name in Rust: by it editors go to a state, rename and complete it,
//! and rustc reports one that is misspelt.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::model::{Model, Node};

/// Matches on every state that an attribute names, one function per enum, never called.
///
/// Only the names carry the author's span; with more, editors find several definitions.
/// They stand in patterns, where an editor offers states and nothing else.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let mentions: Vec<&Ident> = model
        .nodes
        .iter()
        .flat_map(Node::mentions)
        .filter_map(|target| target.ident.as_ref())
        .collect();
    if mentions.is_empty() {
        return TokenStream::new();
    }
    let name = model.plain_ident();
    let (impl_generics, generics, where_clause) = model.generics.split_for_impl();
    quote! {
        const _: () = {
            #[allow(unreachable_patterns)]
            fn _states #impl_generics (state: &#name #generics) #where_clause {
                match state {
                    #(#name::#mentions { .. } => {})*
                    _ => {}
                }
            }
        };
    }
}
