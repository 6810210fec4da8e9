//! The handler trait, one method per state that has work, and the way from a state to its method.

use okt_core::Mark;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse_quote;

use crate::expand::{docs, lifecycle, successors};
use crate::model::{Model, Node};

/// Writes `trait DatabaseStateHandler`.
pub(crate) fn r#trait(model: &Model) -> TokenStream {
    let (vis, handler, name) = (&model.vis, &model.handler, model.name());
    let states: Vec<&Node> = handled(model).collect();
    let methods = states.iter().map(|node| method(model, node));
    let doc = docs::doc(&format!(
        "Does the work of each state of [`{name}`]: one method per state that is not idle, written as an `async fn`."
    ));
    let message = format!("`{{Self}}` does not do the work of the states of `{name}`");
    let label = format!("`{handler}` is not implemented for `{{Self}}`");
    let note = format!("implement `{handler}`: {}", methods_in_words(&states));
    quote! {
        #doc
        #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
        #vis trait #handler: ::core::marker::Sync {
            /// What each method is given (e.g. the object, and the id of the action).
            type Context: ::core::marker::Sync;
            /// What a method fails with.
            type Error;
            #(#methods)*
        }
    }
}

/// Writes `impl Dispatch<H> for DatabaseState`.
pub(crate) fn dispatch(model: &Model) -> TokenStream {
    let (ident, handler) = (&model.ident, &model.handler);
    let h = Ident::new("__H", Span::call_site());
    let mut generics = model.generics.clone();
    generics.params.push(parse_quote!(#h: #handler));
    let (impl_generics, ..) = generics.split_for_impl();
    let (_, own_generics, _) = model.generics.split_for_impl();
    let where_clause = lifecycle::where_clause(model);
    let arms = model.nodes.iter().map(|node| arm(model, node));
    // Where nothing is done, nothing is needed for it.
    let unused = handled(model)
        .next()
        .is_none()
        .then(|| quote!(let _ = (handler, cx);));
    quote! {
        #[automatically_derived]
        impl #impl_generics __okt::Dispatch<#h> for #ident #own_generics #where_clause {
            type Context = #h::Context;
            type Error = #h::Error;

            async fn dispatch(
                self,
                handler: &#h,
                cx: &Self::Context,
            ) -> ::core::result::Result<__okt::Answer, Self::Error> {
                #unused
                match self {
                    #(#arms)*
                }
            }
        }
    }
}

/// The states with a method, each once.
fn handled(model: &Model) -> impl Iterator<Item = &Node> {
    model.nodes.iter().filter(|node| model.is_handled(node))
}

/// What an implementation needs (e.g. "one `async fn` per state that is not idle: start, running").
fn methods_in_words(states: &[&Node]) -> String {
    const SHOWN: usize = 8;
    let shown = states.iter().take(SHOWN).filter_map(|node| {
        let method = node.method.as_ref()?;
        Some(format!("`{method}`"))
    });
    let mut names: Vec<String> = shown.collect();
    if states.len() > SHOWN {
        names.push(format!("{} more", states.len() - SHOWN));
    }
    match names.as_slice() {
        [] => "it has no methods here".to_string(),
        names => format!(
            "one `async fn` per state that is not idle ({})",
            names.join(", ")
        ),
    }
}

/// One method (e.g. `fn running(&self, cx: &Self::Context) -> impl Future<..> + Send`).
fn method(model: &Model, node: &Node) -> TokenStream {
    let method = &node.method;
    let variant = node.variant();
    let work = docs::doc(&format!(
        "The work of [`{variant}`]({}::{variant}){}",
        model.name(),
        docs::after_colon(node)
    ));
    let (output, answer) = if node.is(Mark::Leaf) {
        let answer = docs::doc("The last work in a life: what is left to be cleared away.");
        (quote!(()), answer)
    } else {
        let (module, after) = (&model.module, successors::ident(node));
        let answer = docs::doc(&format!("Answers {}.", successors::in_words(model, node)));
        (quote!(#module::#after), answer)
    };
    // In a wrong graph a method may be there only for an implementation that has it.
    let body = if model.is_wrong {
        quote!({ ::core::future::pending() })
    } else {
        quote!(;)
    };
    quote! {
        #work
        ///
        #answer
        fn #method(
            &self,
            cx: &Self::Context,
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<#output, Self::Error>
        > + ::core::marker::Send #body
    }
}

fn arm(model: &Model, node: &Node) -> TokenStream {
    let (pattern, method) = (node.pattern(), &node.method);
    if !model.is_handled(node) {
        quote!(#pattern => ::core::result::Result::Ok(__okt::Answer::Stay),)
    } else if node.is(Mark::Leaf) {
        quote!(#pattern => handler.#method(cx).await.map(|()| __okt::Answer::Stay),)
    } else {
        quote!(#pattern => handler.#method(cx).await.map(__okt::Answer::from),)
    }
}
