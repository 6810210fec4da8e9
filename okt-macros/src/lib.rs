//! `#[lifecycle_graph]`.

mod shim;

mod options;

mod items;

mod attr;

mod serde;

mod model;

mod graph;

mod check;

mod fallback;

mod expand;

mod spec;

mod report;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::model::Model;
use crate::report::Report;

/// Makes an enum a lifecycle graph; see the [crate's documentation](crate).
#[proc_macro_attribute]
pub fn lifecycle_graph(args: TokenStream, item: TokenStream) -> TokenStream {
    shim::expand(&args.into(), &item.into()).into()
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
    expand_with(input.into(), graph_of).into()
}

/// Tells the operator which field of a spec says where the object should be in its life.
#[proc_macro_derive(LifecycleSpec, attributes(lifecycle))]
pub fn derive_lifecycle_spec(input: TokenStream) -> TokenStream {
    expand_with(input.into(), spec::expand).into()
}

/// The stages from a declaration to its code.
fn graph_of(report: &mut Report, input: &DeriveInput) -> proc_macro2::TokenStream {
    let Some(mut model) = Model::read(report, input) else {
        return proc_macro2::TokenStream::new();
    };
    check::check(report, &model);
    if !report.is_clean() || model.has_unknown_targets() {
        model = fallback::mend(model);
    }
    expand::expand(&model)
}

/// Code first, then what is wrong: an editor that completes a name looks at the code.
fn expand_with(
    input: proc_macro2::TokenStream,
    expand: impl FnOnce(&mut Report, &DeriveInput) -> proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let input = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut report = Report::new();
    let code = expand(&mut report, &input);
    let errors = report.finish();
    quote!(#code #errors)
}
