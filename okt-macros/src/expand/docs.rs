//! The words of generated docs.

use proc_macro2::TokenStream;
use quote::quote;

use crate::model::Node;

/// A doc comment, with the space that authors write before theirs.
pub(crate) fn doc(text: &str) -> TokenStream {
    let text = format!(" {text}");
    quote!(#[doc = #text])
}

/// A list of alternatives (e.g. `` `Stay`, `Next` or `End` ``).
pub(crate) fn one_of(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_string(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A state's first line after a colon, where it has one (e.g. `: Clients may connect.`).
///
/// Its links are taken for plain text: they are written for the place where the state is declared.
pub(crate) fn after_colon(node: &Node) -> String {
    match node.summary() {
        "" => String::new(),
        summary => format!(": {}", summary.replace('[', "\\[").replace(']', "\\]")),
    }
}
