//! Generates the handler trait, with one method per state that has work, and the dispatch from a state to its method.

use okt_core::{Kind, Mark};
use proc_macro2::TokenStream;
use quote::quote;

use crate::expand::{docs, successors};
use crate::model::{Model, Node};

/// Generates `trait DatabaseStateHandler`.
pub(crate) fn r#trait(model: &Model) -> TokenStream {
    let (vis, handler, name) = (&model.vis, &model.handler, model.name());
    let states: Vec<&Node> = handled(model).collect();
    let methods = states.iter().map(|node| method(model, node));
    let (does, fails) = match model.kind {
        Kind::Lifecycle => (
            "Does the work of each state of",
            "do the work of the states of",
        ),
        Kind::Pass => ("Takes the step of each state of", "take the steps of"),
    };
    let doc = docs::doc(&format!(
        "{does} [`{name}`]: one method per state that is not idle, written as an `async fn`."
    ));
    let message = format!("`{{Self}}` does not {fails} `{name}`");
    let label = format!("`{handler}` is not implemented for `{{Self}}`");
    let note = format!("implement `{handler}`: {}", methods_in_words(&states));
    // In a wrong graph the context may lack what another declaration would ask of it.
    let requests = model.requests().filter(|_| !model.is_wrong);
    let visited = requests.map(|(_, node, args)| {
        let (krate, result) = (&model.krate, node.result());
        quote!(+ #krate::__private::Visited<#args, #result>)
    });
    quote! {
        #doc
        #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
        #vis trait #handler: ::core::marker::Sync {
            /// What each method is given (e.g. the object, and the id of the action).
            type Context: ::core::marker::Sync #(#visited)*;
            /// What a method fails with.
            type Error;
            #(#methods)*
        }
    }
}

/// Generates `impl Dispatch<H> for DatabaseState`, also for delegated work; for a pass `impl PassDispatch<H>`.
///
/// The associated types are those of the handler: in an impl for an enum with a state `Error`, `Self::Error` is ambiguous.
pub(crate) fn dispatch(model: &Model) -> TokenStream {
    let (ident, handler) = (&model.ident, &model.handler);
    let (called, others): (Vec<&Node>, Vec<&Node>) = model
        .nodes
        .iter()
        .partition(|node| model.is_dispatched(node));
    let arms = called.iter().map(|node| arm(model, node));
    let idle: Vec<TokenStream> = others.into_iter().map(Node::pattern).collect();
    let nothing = nothing(model);
    let idle = (!idle.is_empty()).then(|| quote!(#(#idle)|* => return #nothing,));
    let has_work = !called.is_empty();
    let (answer, work) = (answer(model), quote!(__okt::Work<'_, _, __H::Error>));
    let body = if has_work {
        quote! {
            let work: #work = match self {
                #(#arms)*
                #idle
            };
            work.await
        }
    } else {
        // Without handlers the arguments are unused.
        quote!(let _ = (handler, cx); #nothing)
    };
    let (r#trait, method) = match model.kind {
        Kind::Lifecycle => (quote!(Dispatch), quote!(dispatch)),
        Kind::Pass => (quote!(PassDispatch), quote!(step)),
    };
    let handed_on = (model.kind == Kind::Lifecycle).then(|| handed_on(model));
    quote! {
        #[automatically_derived]
        impl<__H: #handler> __okt::#r#trait<__H> for #ident {
            type Context = __H::Context;
            type Error = __H::Error;

            async fn #method(
                self,
                handler: &__H,
                cx: &__H::Context,
            ) -> ::core::result::Result<#answer, __H::Error> {
                #body
            }
        }

        #handed_on
    }
}

/// Generates the type of the answer of any state.
fn answer(model: &Model) -> TokenStream {
    match model.kind {
        Kind::Lifecycle => quote!(__okt::Answer),
        Kind::Pass => quote!(__okt::Step<__okt::Answer>),
    }
}

/// Generates the answer of an idle state.
fn nothing(model: &Model) -> TokenStream {
    let stay = quote!(__okt::Answer::Stay);
    match model.kind {
        Kind::Lifecycle => quote!(::core::result::Result::Ok(#stay)),
        Kind::Pass => quote!(::core::result::Result::Ok(__okt::Step::done(#stay))),
    }
}

/// Generates the dispatch of a lifecycle whose work is delegated in every state.
fn handed_on(model: &Model) -> TokenStream {
    let ident = &model.ident;
    quote! {
        #[automatically_derived]
        impl<__D: __okt::Delegate<#ident>> __okt::Dispatch<__okt::Delegated<__D>> for #ident {
            type Context = __D::Context;
            type Error = __D::Error;

            fn dispatch(
                self,
                delegated: &__okt::Delegated<__D>,
                cx: &__D::Context,
            ) -> impl ::core::future::Future<
                Output = ::core::result::Result<__okt::Answer, __D::Error>
            > + ::core::marker::Send {
                __okt::hand_on(self, delegated, cx)
            }
        }
    }
}

/// Returns the states with a method, each once.
fn handled(model: &Model) -> impl Iterator<Item = &Node> {
    model.nodes.iter().filter(|node| model.is_handled(node))
}

/// Describes the methods of an implementation (e.g. "one `async fn` per state that is not idle: start, running").
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

/// Generates one method (e.g. `fn running(&self, cx: &Self::Context) -> impl Future<..> + Send`).
fn method(model: &Model, node: &Node) -> TokenStream {
    let method = &node.method;
    let variant = node.variant();
    let what = match model.kind {
        Kind::Lifecycle => "work",
        Kind::Pass => "step",
    };
    let work = docs::doc(&format!(
        "The {what} of [`{variant}`]({}::{variant}){}",
        model.name(),
        docs::after_colon(node)
    ));
    let (output, answer) = if node.is(Mark::Leaf) {
        let answer = docs::doc(match model.kind {
            Kind::Lifecycle => "The last work of a lifecycle: deletes what is left.",
            Kind::Pass => "The last step of a pass.",
        });
        (quote!(()), answer)
    } else {
        let (module, after) = (&model.module, successors::ident(node));
        let answer = docs::doc(&format!("Answers {}.", successors::in_words(model, node)));
        let generics = node.attributes.result.as_ref().map(|it| quote!(<#it>));
        (quote!(#module::#after #generics), answer)
    };
    let args = node.attributes.args.as_ref();
    let args = args.map(|args| quote!(args: &#args,));
    let of_args = args.as_ref().map(|_| {
        quote! {
            ///
            /// `args` are the arguments of the request that the visit serves.
        }
    });
    let output = match model.kind {
        Kind::Lifecycle => output,
        Kind::Pass => {
            let krate = &model.krate;
            quote!(#krate::__private::Step<#output>)
        }
    };
    // In a wrong graph a method may exist only because an implementation has it, so it gets a default body.
    let body = if model.is_wrong {
        quote!({ ::core::future::pending() })
    } else {
        quote!(;)
    };
    quote! {
        #work
        ///
        #answer
        #of_args
        fn #method(
            &self,
            cx: &Self::Context,
            #args
        ) -> impl ::core::future::Future<
            Output = ::core::result::Result<#output, Self::Error>
        > + ::core::marker::Send #body
    }
}

/// Generates the match arm of a state, with a full path to its method, because the compiler resolves one of many
/// methods slowly by name.
fn arm(model: &Model, node: &Node) -> TokenStream {
    let (pattern, handler, method) = (node.pattern(), &model.handler, &node.method);
    let boxed = match model.kind {
        Kind::Lifecycle => quote!(work),
        Kind::Pass => quote!(step),
    };
    let Some(args) = &node.attributes.args else {
        return quote!(#pattern => __okt::#boxed(<__H as #handler>::#method(handler, cx)),);
    };
    let result = node.result();
    let given = quote!(<__H::Context as __okt::Visited<#args, #result>>::args(cx));
    let call = quote!(<__H as #handler>::#method(handler, cx, #given));
    if node.attributes.result.is_some() {
        quote!(#pattern => __okt::visited::<#args, _, _, _>(cx, #call),)
    } else {
        quote!(#pattern => __okt::#boxed(#call),)
    }
}
