//! The model as Rust: everything the attribute writes; nothing here can fail.

mod anchors;
mod docs;
mod handler;
mod lifecycle;
mod successors;

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Model;

/// Writes what a graph gives its author.
///
/// Code of ours stands in a constant without a name, so that its alias `__okt` is in nobody's way.
/// The anchors come first: an editor that completes a name must meet them before any error.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let krate = &model.krate;
    let anchors = anchors::expand(model);
    let successors = successors::module(model);
    let lifecycle = lifecycle::expand(model);
    let handler = handler::r#trait(model);
    // Nobody can run a generic graph, which is refused.
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
