//! Generates code that mentions each state named in an attribute.
//!
//! It lets editors navigate to a state, rename and complete it, and rustc report a misspelled name.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::model::{Model, Node};

/// Generates one function per enum, never called, that matches on every state named in an attribute.
///
/// Only the names have the span of the source; otherwise editors would find several definitions.
/// The names are in patterns, where an editor offers only states.
///
/// To complete a name that is not typed yet, rust-analyzer compares this code with the code that a made-up name would
/// give, and the next name must be in the place of the made-up one. The last name has the arm of the first state as next.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let mentions: Vec<&Ident> = model
        .mentions()
        .into_iter()
        .filter_map(|target| target.ident.as_ref())
        .collect();
    let Some(first) = model.nodes.first().map(Node::plain_ident) else {
        return TokenStream::new();
    };
    let name = model.plain_ident();
    let (impl_generics, generics, where_clause) = model.generics.split_for_impl();
    quote! {
        const _: () = {
            #[allow(unreachable_patterns)]
            fn _states #impl_generics (state: &#name #generics) #where_clause {
                match state {
                    #(#name::#mentions { .. } => {})*
                    #name::#first { .. } => {}
                    _ => {}
                }
            }
        };
    }
}
