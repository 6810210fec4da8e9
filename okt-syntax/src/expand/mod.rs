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
    let work = model.generics.params.is_empty().then(|| {
        let answers = successors::answers(model);
        let requests = lifecycle::requests(model);
        let dispatch = handler::dispatch(model);
        quote!(#answers #requests #dispatch)
    });
    quote! {
        #anchors
        #successors
        #handler
        const _: () = {
            use #krate::__private as __okt;
            #lifecycle
            #work
        };
    }
}
