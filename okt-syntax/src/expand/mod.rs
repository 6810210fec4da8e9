//! Generates the Rust code of a model; nothing here can fail.

mod anchors;
mod docs;
mod handler;
mod lifecycle;
mod successors;

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Model;

/// Generates all code of a graph.
///
/// Code that is not part of the interface is in an unnamed constant, so that its alias `__okt` conflicts with no name.
/// The anchors come first, because an editor that completes a name must find them before any error.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let anchors = anchors::expand(model);
    let successors = successors::module(model);
    let lifecycle = lifecycle::expand(model);
    let handler = handler::r#trait(model);
    // A generic graph is refused, so it needs no dispatch.
    let (answers, dispatch) = if model.generics.params.is_empty() {
        (successors::answers(model), handler::dispatch(model))
    } else {
        (TokenStream::new(), TokenStream::new())
    };
    quote! {
        #anchors
        #successors
        #handler
        const _: () = {
            use #krate::__private as __okt;
            #lifecycle
            #answers
            #dispatch
        };
    }
}
