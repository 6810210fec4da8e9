//! `#[lifecycle_graph]`.

mod attr;
mod check;
mod expand;
mod graph;
mod items;
mod model;
mod options;
mod report;
mod serde;
mod shim;

use proc_macro::TokenStream;

/// Makes an enum a lifecycle graph.
#[proc_macro_attribute]
pub fn lifecycle_graph(args: TokenStream, item: TokenStream) -> TokenStream {
    shim::expand(args.into(), item.into()).into()
}

/// What `#[lifecycle_graph]` puts before the enum; not to be written by hand.
#[doc(hidden)]
#[proc_macro_derive(
    LifecycleGraph,
    attributes(
        __lifecycle_graph,
        child,
        condition,
        entry,
        leaf,
        no_route,
        no_transit,
        rest,
        trigger,
        visit,
        was
    )
)]
pub fn derive_lifecycle_graph(input: TokenStream) -> TokenStream {
    derive(input.into()).into()
}

fn derive(input: proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    let mut report = report::Report::new();
    let model = syn::parse2(input)
        .ok()
        .and_then(|input| model::Model::read(&mut report, input));
    if let Some(model) = &model {
        check::check(&mut report, model);
    }
    let code = model.as_ref().map(expand::expand);
    let errors = report.finish();
    quote::quote!(#code #errors)
}
