//! Generates the module of successor enums, so that a handler can name only the targets of its state.

use okt_core::{Kind, Mark, StateId};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::expand::docs;
use crate::expand::lifecycle::state_id;
use crate::model::{Model, Node, constant};

/// The answers that are not states.
const STAY: &str = "Stay";
const NEXT: &str = "Next";
const WAIT: &str = "Wait";

/// The possible answers of the handler of one state.
struct Successors<'m> {
    node: &'m Node,
    /// The enum (e.g. `AfterRunning`).
    ident: Ident,
    stay: bool,
    next: bool,
    wait: bool,
    states: Vec<(StateId, &'m Node)>,
}

/// Returns the successors of every state that has them.
fn successors(model: &Model) -> impl Iterator<Item = Successors<'_>> {
    model
        .nodes
        .iter()
        .filter(|node| model.has_successors(node))
        .map(|node| Successors::of(model, node))
}

impl<'m> Successors<'m> {
    fn of(model: &'m Model, node: &'m Node) -> Self {
        let is_lifecycle = model.kind == Kind::Lifecycle;
        let mut states = model.successors(node);
        // Only a wrong graph has states with these names.
        states.retain(|(_, to)| ![STAY, NEXT, WAIT].contains(&to.variant().as_str()));
        // Only a request leads to a visit with arguments; a wrong graph allows what a handler may name.
        states.retain(|(_, to)| model.is_wrong || !to.is(Mark::Args));
        Self {
            node,
            ident: ident(node),
            stay: is_lifecycle && (model.is_wrong || node.is(Mark::Rest)),
            next: model.is_wrong || !node.attributes.children.is_empty(),
            wait: is_lifecycle,
            states,
        }
    }

    /// Returns whether the answers that end the work carry a result.
    fn has_result(&self) -> bool {
        self.node.attributes.result.is_some()
    }

    /// Returns whether the answer that names this state carries the result: it names a child.
    fn carries(&self, id: StateId) -> bool {
        let mut children = self.node.attributes.children.iter();
        self.has_result() && children.any(|child| child.to == id)
    }

    /// Generates the parameter of the enum for the type of the result.
    ///
    /// The module of the enum does not see the types that are in scope at the graph, least of all in a function; and for
    /// an answer without the result, rustc still names the type that is missing.
    fn generics(&self) -> Option<TokenStream> {
        self.has_result().then(|| quote!(<R>))
    }

    /// Returns the names of the answers.
    fn names(&self) -> Vec<String> {
        let ours = [(self.stay, STAY), (self.next, NEXT), (self.wait, WAIT)];
        let has = ours.iter().filter(|(has, _)| *has);
        has.map(|(_, name)| (*name).to_string())
            .chain(self.states.iter().map(|(_, node)| node.variant()))
            .collect()
    }

    /// Generates the enum (e.g. `pub enum AfterRunning { Stay, Next, Wait(Duration), Servicing, .. }`).
    fn declaration(&self) -> TokenStream {
        let (ident, generics) = (&self.ident, self.generics());
        let (carried, result) = if self.has_result() {
            let doc =
                " `R` is the result of the visit, which goes with `Next` and with each child.";
            (Some(quote!((R))), doc)
        } else {
            (None, "")
        };
        let doc = docs::doc(&format!(
            "How the work of `{}` ends; it leads to {}.{result}",
            self.node.variant(),
            docs::one_of(
                &self
                    .states
                    .iter()
                    .map(|(_, node)| node.variant())
                    .collect::<Vec<_>>()
            )
        ));
        let stay = self.stay.then(|| {
            quote! {
                /// The work is done and names no state: the object stays, unless its spec asks for another state or something happens.
                Stay #carried,
            }
        });
        let next = self.next.then(|| {
            let last = self.node.attributes.children.last();
            let ident = last.and_then(|last| last.ident.as_ref());
            let last = ident.map_or_else(String::new, crate::items::name);
            // A pass has no desired state.
            let doc = docs::doc(&if self.wait {
                format!("The work is done. The object goes on towards a leaf if it is being deleted, towards its visit or desired state if a route leads there, and otherwise to the last child, `{last}`.")
            } else {
                format!("The step is done; on to the last child, `{last}`.")
            });
            quote! {
                #doc
                Next #carried,
            }
        });
        let wait = self.wait.then(|| {
            quote! {
                /// Not done: call again after this time, or when something it depends on changes.
                Wait(::core::time::Duration),
            }
        });
        let states = self.states.iter().map(|(id, node)| {
            let carried = carried.as_ref().filter(|_| self.carries(*id));
            let doc = docs::doc(&format!(
                "Go to `{}`{}",
                node.variant(),
                docs::after_colon(node)
            ));
            let ident = node.plain_ident();
            quote! {
                #doc
                #ident #carried,
            }
        });
        let body = quote! {
            #stay
            #next
            #wait
            #(#states)*
        };
        let (vis, body) = self.at_the_attributes(body);
        quote! {
            #doc
            #vis enum #ident #generics #body
        }
    }

    /// Gives the declaration of the enum the place of the state's attributes: for a successor that is not declared, rustc
    /// shows the lines from the visibility to the closing brace, so it shows those that are declared.
    ///
    /// The name has no place in the source; otherwise an editor would find a second definition.
    fn at_the_attributes(&self, body: TokenStream) -> (TokenStream, Group) {
        let here = Span::call_site();
        let (first, last) = self.node.marked.unwrap_or((here, here));
        let (first, last) = (here.located_at(first), here.located_at(last));
        let mut body = Group::new(Delimiter::Brace, body);
        body.set_span(last);
        (quote_spanned!(first=> pub), body)
    }

    /// Generates the conversion into an `Answer`, and the traits implemented with it.
    ///
    /// For a graph of many states this compiles in half the time of derived traits.
    fn answer(&self, module: &Ident) -> TokenStream {
        let (ident, generics) = (&self.ident, self.generics());
        let carried = self.has_result().then(|| quote!({ .. }));
        let stay = self
            .stay
            .then(|| quote!(Self::Stay #carried => __okt::Answer::Stay,));
        let next = self
            .next
            .then(|| quote!(Self::Next #carried => __okt::Answer::Next,));
        let wait = self
            .wait
            .then(|| quote!(Self::Wait(time) => __okt::Answer::Wait(time),));
        let states = self.states.iter().map(|(id, node)| {
            let carried = carried.as_ref().filter(|_| self.carries(*id));
            let (ident, id) = (node.plain_ident(), state_id(*id));
            quote!(Self::#ident #carried => __okt::Answer::To(#id),)
        });
        let result = self.has_result().then(|| self.visit_successor(module));
        quote! {
            #[automatically_derived]
            impl #generics __okt::Successor for #module::#ident #generics {
                #[inline]
                fn answer(&self) -> __okt::Answer {
                    match *self {
                        #stay
                        #next
                        #wait
                        #(#states)*
                    }
                }
            }

            #[automatically_derived]
            impl #generics ::core::fmt::Debug for #module::#ident #generics {
                #[inline]
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    __okt::debug(self, __GRAPH, f)
                }
            }

            #result
        }
    }

    /// Generates the access to the result.
    fn visit_successor(&self, module: &Ident) -> TokenStream {
        let ident = &self.ident;
        let ours = [(self.stay, STAY), (self.next, NEXT)].into_iter();
        let ours = ours.filter(|(has, _)| *has);
        let children = self.states.iter().filter(|(id, _)| self.carries(*id));
        let carrying = ours
            .map(|(_, name)| Ident::new(name, Span::call_site()))
            .chain(children.map(|(_, node)| node.plain_ident()));
        quote! {
            #[automatically_derived]
            impl<R> __okt::VisitSuccessor for #module::#ident<R> {
                type Result = R;

                fn result(&self) -> ::core::option::Option<&R> {
                    match self {
                        #(Self::#carrying(result))|* => ::core::option::Option::Some(result),
                        _ => ::core::option::Option::None,
                    }
                }
            }
        }
    }
}

/// Returns the name of the successors enum of a state (e.g. `AfterRunning`).
pub(crate) fn ident(node: &Node) -> Ident {
    format_ident!("After{}", node.variant(), span = Span::call_site())
}

/// Lists the possible answers of the handler of a state, for docs.
pub(crate) fn in_words(model: &Model, node: &Node) -> String {
    docs::one_of(&Successors::of(model, node).names())
}

/// Generates the module `database_state`.
pub(crate) fn module(model: &Model) -> TokenStream {
    let (vis, module) = (&model.vis, &model.module);
    let doc = docs::doc(&format!(
        "What the handlers of [`{0}`](super::{0}) answer: for each state that has one, where it leads.",
        model.name()
    ));
    let enums = successors(model).map(|successors| successors.declaration());
    let conditions = conditions(model);
    let gates = gates(model);
    quote! {
        #doc
        #vis mod #module {
            #(#enums)*
            #gates
            #conditions
        }
    }
}

/// Generates the enum of the gates; none if no gate is declared.
fn gates(model: &Model) -> Option<TokenStream> {
    let variants: Vec<TokenStream> = model
        .gates
        .iter()
        .filter_map(|gate| {
            let (ident, kind) = (gate.variant()?, gate.kind.as_str());
            let states = gate.states.iter().filter_map(|state| model.get(state.to));
            let states: Vec<String> = states.map(Node::variant).collect();
            let doc = docs::doc(&format!("The {kind} before {}.", docs::one_of(&states)));
            Some(quote!(#doc #ident,))
        })
        .collect();
    (!model.is_wrong && !variants.is_empty()).then(|| {
        quote! {
            /// The gates.
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub enum Gate {
                #(#variants)*
            }
        }
    })
}

/// Generates the conversions of all successor enums.
pub(crate) fn answers(model: &Model) -> TokenStream {
    successors(model)
        .map(|successors| successors.answer(&model.module))
        .collect()
}

/// Generates the module of condition types; none if no condition is declared.
fn conditions(model: &Model) -> Option<TokenStream> {
    let mut types: Vec<(Ident, &str)> = Vec::new();
    for condition in model.conditions() {
        if let Some(ident) = constant(&condition.name)
            && types.iter().all(|(known, _)| *known != ident)
        {
            types.push((ident, &condition.name));
        }
    }
    if types.is_empty() {
        return None;
    }
    let constants = types.iter().map(|(ident, name)| {
        let doc = docs::doc(&format!("The condition `{name}`."));
        quote! {
            #doc
            pub const #ident: &str = #name;
        }
    });
    Some(quote! {
        /// The types of the conditions that the states declare.
        pub mod conditions {
            #(#constants)*
        }
    })
}
