//! The syntax of `#[lifecycle_graph]`: reads, checks and expands declarations.
//!
//! The functions of this crate are the macros of `okt-macros`, over tokens of `proc_macro2`. They need no compiler, so
//! tools and tests can call them.

// A module imports only from its own row and from those above it.
//
// | module | content |
// |---|---|
// | `report`, `items`, `serde`, `options` | collects all errors; converts attributes to typed values with their spans |
// | `attr`, `previous`, `spec`, `request`, `resource`, `crates`, `model` | parses one attribute; the version before a spec; `#[derive(LifecycleSpec)]`; `#[derive(Request)]`; what the spec of a resource lacks; `#[crates]`; the enum as declared |
// | `shim`, `graph`, `check` | the attribute itself, which survives every error; the enum as `okt_core::Graph`; errors of the graph on their tokens |
// | `expand`, `fallback` | the generated code; the code that is generated instead if there is an error |
// | `rules`, `source`, `lock` | the page about each rule; the graphs in source files: found, checked, and reported in the words of rustc; the lock file of an operator's graphs |

mod shim;

mod options;

mod items;

mod attr;

mod crates;

mod serde;

mod model;

mod graph;

mod check;

mod fallback;

mod expand;

mod previous;
mod request;
mod spec;

mod report;

mod resource;

pub mod rules;

#[cfg(feature = "source")]
pub mod source;

#[cfg(feature = "source")]
pub mod lock;

#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::model::Model;
use crate::report::ErrorReport;

/// Expands `#[lifecycle_graph(args)]` on an item: the unchanged item with a hidden derive that does the work.
pub fn lifecycle_graph(args: &TokenStream, item: &TokenStream) -> TokenStream {
    shim::expand(args, item)
}

/// Expands the hidden derive of `#[lifecycle_graph]` on an enum: its generated code, followed by its errors.
pub fn derive_lifecycle_graph(input: TokenStream) -> TokenStream {
    expand_with(input, graph_of)
}

/// Expands `#[derive(LifecycleSpec)]` on a struct.
pub fn derive_lifecycle_spec(input: TokenStream) -> TokenStream {
    expand_with(input, spec::expand)
}

/// Expands `#[derive(Request)]` on a struct.
pub fn derive_request(input: TokenStream) -> TokenStream {
    expand_with(input, |_, input| request::expand(input))
}

/// Expands `#[crates(args)]` on an item.
pub fn crates(args: TokenStream, item: &TokenStream) -> TokenStream {
    crates::expand(args, item)
}

/// Generates the code of a graph: reads the declaration, checks it, expands it.
fn graph_of(report: &mut ErrorReport, input: &DeriveInput) -> TokenStream {
    let Some(mut model) = Model::read(report, input) else {
        return TokenStream::new();
    };
    check::check(report, &model);
    if !report.is_clean() || model.has_unknown_targets() {
        model = fallback::mend(model);
    }
    expand::expand(&model)
}

/// Parses the input and returns the generated code followed by the errors: editors complete names from the code.
fn expand_with(
    input: TokenStream,
    expand: impl FnOnce(&mut ErrorReport, &DeriveInput) -> TokenStream,
) -> TokenStream {
    let input = match syn::parse2(input) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut report = ErrorReport::new();
    let code = expand(&mut report, &input);
    let errors = report.finish();
    quote!(#code #errors)
}
