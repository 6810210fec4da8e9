//! The texts of generated docs.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Node;

/// Generates a doc comment, with the usual leading space.
pub(crate) fn doc(text: &str) -> TokenStream {
    let text = format!(" {text}");
    quote!(#[doc = #text])
}

/// Joins alternatives (e.g. `` `Stay`, `Next` or `End` ``).
pub(crate) fn one_of(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_string(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Returns the first line of a state's docs after a colon (e.g. `: Clients may connect.`); empty if it has none.
///
/// It escapes links, because they are relative to the declaration of the state.
pub(crate) fn after_colon(node: &Node) -> String {
    match node.summary() {
        "" => String::new(),
        summary => format!(": {}", summary.replace('[', "\\[").replace(']', "\\]")),
    }
}
