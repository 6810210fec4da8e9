//! Generates `impl Lifecycle`: the graph with its routes as a constant, and the conversion between states and ids.

use core::time::Duration;

use okt_core::routes::{Table, Tables};
use okt_core::{
    Cause, ConditionStatus, Declared, GateKind, Graph, Kind, NoRoute, Passes, State, StateId,
    Trigger,
};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::quote;
use syn::{WhereClause, parse_quote};

use crate::attr::Gate;
use crate::graph::with_graph;
use crate::model::{Model, Node};

/// Generates `impl Lifecycle for DatabaseState`.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let ident = &model.ident;
    let (impl_generics, generics, _) = model.generics.split_for_impl();
    let where_clause = where_clause(model);
    let graph = with_graph(model, |graph| {
        if model.is_wrong {
            harmless(graph)
        } else {
            constant(graph)
        }
    });
    let index = index(model);
    // A state with fields is refused, so its id is never converted.
    let states = model
        .nodes
        .iter()
        .take_while(|node| !node.has_fields)
        .map(Node::plain_ident);
    let parts = spec_parts(model);
    let (gate, gates) = gates(model);
    quote! {
        const __GRAPH: &__okt::Graph<'static> = &#graph;

        #[automatically_derived]
        impl #impl_generics __okt::Lifecycle for #ident #generics #where_clause {
            type Gate = #gate;
            const GRAPH: &'static __okt::Graph<'static> = __GRAPH;

            fn id(self) -> __okt::StateId {
                __okt::StateId(#index)
            }

            fn from_id(id: __okt::StateId) -> ::core::option::Option<Self> {
                let states: &'static [Self] = &[#(Self::#states),*];
                states.get(id.index()).copied()
            }
        }

        #parts
        #gates
    }
}

/// Generates the type of the gates, and its conversion from ids.
fn gates(model: &Model) -> (TokenStream, Option<TokenStream>) {
    let module = &model.module;
    let gates: Vec<Ident> = model.gates.iter().filter_map(Gate::variant).collect();
    if model.is_wrong || gates.is_empty() {
        return (quote!(__okt::NoGate), None);
    }
    let code = quote! {
        #[automatically_derived]
        impl __okt::LifecycleGate for #module::Gate {
            fn from_id(id: __okt::GateId) -> ::core::option::Option<Self> {
                let gates: &'static [Self] = &[#(Self::#gates),*];
                gates.get(id.index()).copied()
            }
        }
    };
    (quote!(#module::Gate), Some(code))
}

/// Generates `impl SpecParts<DatabaseSpec> for DatabaseState`: for every spec, if no trigger names a part.
fn spec_parts(model: &Model) -> TokenStream {
    let ident = &model.ident;
    let accesses: Vec<&TokenStream> = model.parts().map(|part| &part.access).collect();
    if let Some(spec) = model
        .spec
        .as_ref()
        .filter(|_| !model.is_wrong && !accesses.is_empty())
    {
        return quote! {
            #[automatically_derived]
            impl __okt::SpecParts<#spec> for #ident {
                fn parts(__spec: &#spec, __see: &mut dyn ::core::ops::FnMut(&dyn __okt::SpecPart)) {
                    #(__see(&#accesses);)*
                }
            }
        };
    }
    let mut generics = model.generics.clone();
    generics
        .params
        .push(parse_quote!(__Spec: ?::core::marker::Sized));
    let (impl_generics, ..) = generics.split_for_impl();
    let (_, own, _) = model.generics.split_for_impl();
    let where_clause = where_clause(model);
    quote! {
        #[automatically_derived]
        impl #impl_generics __okt::SpecParts<__Spec> for #ident #own #where_clause {}
    }
}

/// Generates `impl Serves<RestoreArgs> for DatabaseState` for each visit with arguments.
pub(crate) fn requests(model: &Model) -> TokenStream {
    let ident = &model.ident;
    let requests = model.requests().map(|(id, node, args)| {
        let (id, result) = (state_id(id), node.result());
        quote! {
            #[automatically_derived]
            impl __okt::Serves<#args> for #ident {
                const STATE: __okt::StateId = #id;
                type Result = #result;
            }
        }
    });
    requests.collect()
}

/// Generates the position of a state, as an expression: a cast, unless the enum has discriminants of its own.
fn index(model: &Model) -> TokenStream {
    if model.nodes.iter().all(Node::is_plain) {
        return quote!(self as u16);
    }
    let arms = model.iter().map(|(id, node)| {
        let (pattern, id) = (node.pattern(), Literal::u16_unsuffixed(id.0));
        quote!(#pattern => #id,)
    });
    quote!(match self { #(#arms)* })
}

/// Adds the bounds that a generic enum, which is refused, needs to implement `Lifecycle` without further errors.
fn where_clause(model: &Model) -> Option<WhereClause> {
    if model.generics.params.is_empty() {
        return None;
    }
    let mut generics = model.generics.clone();
    generics.make_where_clause().predicates.push(parse_quote! {
        Self: ::core::marker::Copy + ::core::cmp::Eq + ::core::fmt::Debug
            + ::core::marker::Send + ::core::marker::Sync + 'static
    });
    generics.where_clause
}

/// Generates a graph without states, for a wrong declaration; it never runs.
fn harmless(graph: &Graph<'_>) -> TokenStream {
    let nothing = Graph {
        states: &[],
        gates: &[],
        ..*graph
    };
    constant(&nothing)
}

/// Generates a graph as an expression.
fn constant(graph: &Graph<'_>) -> TokenStream {
    let Graph {
        name,
        doc,
        kind,
        parts,
        gates,
        states,
        routes: _,
    } = graph;
    let kind = match kind {
        Kind::Lifecycle => quote!(Lifecycle),
        Kind::Pass => quote!(Pass),
    };
    let gates = gates.iter().map(gate);
    let states = states.iter().map(state);
    let tables = Tables::of(graph);
    let routes = tables.routes();
    let (rows, hops, out) = (table(routes.rows), table(routes.hops), table(routes.out));
    let home = state_id(routes.home);
    quote! {
        __okt::Graph {
            name: #name,
            doc: #doc,
            kind: __okt::Kind::#kind,
            parts: &[#(#parts),*],
            gates: &[#(#gates),*],
            states: &[#(#states),*],
            routes: __okt::Routes {
                rows: #rows,
                hops: #hops,
                out: #out,
                home: #home,
            },
        }
    }
}

fn state(state: &State<'_>) -> TokenStream {
    let State {
        name,
        variant,
        doc,
        was,
        marks,
        triggers,
        children,
        conditions,
        no_routes,
    } = state;
    let marks = Literal::u8_unsuffixed(marks.0);
    let triggers = triggers.iter().map(trigger);
    let children = children.iter().map(|to| state_id(*to));
    let conditions = conditions.iter().map(condition);
    let no_routes = no_routes.iter().map(no_route);
    quote! {
        __okt::State {
            name: #name,
            variant: #variant,
            doc: #doc,
            was: &[#(#was),*],
            marks: __okt::Marks(#marks),
            triggers: &[#(#triggers),*],
            children: &[#(#children),*],
            conditions: &[#(#conditions),*],
            no_routes: &[#(#no_routes),*],
        }
    }
}

fn trigger(Trigger { to, cause }: &Trigger) -> TokenStream {
    let to = state_id(*to);
    let cause = match cause {
        Cause::Named => quote!(Named),
        Cause::After(time) => {
            let time = duration(*time);
            quote!(After(#time))
        }
        Cause::Deadline(time) => {
            let time = duration(*time);
            quote!(Deadline(#time))
        }
        Cause::OnError { attempts } => {
            let attempts = Literal::u32_unsuffixed(*attempts);
            quote!(OnError { attempts: #attempts })
        }
        Cause::OnDelete => quote!(OnDelete),
        Cause::OnChange => quote!(OnChange),
        Cause::OnChangeOf(parts) => {
            let parts = Literal::u32_unsuffixed(parts.0);
            quote!(OnChangeOf(__okt::Parts(#parts)))
        }
        Cause::OnGiveUp => quote!(OnGiveUp),
        Cause::OnAbort => quote!(OnAbort),
    };
    quote!(__okt::Trigger { to: #to, cause: __okt::Cause::#cause })
}

fn gate(gate: &okt_core::Gate<'_>) -> TokenStream {
    let okt_core::Gate {
        name,
        kind,
        states,
        passes: Passes { triggers, deletion },
    } = gate;
    let kind = match kind {
        GateKind::Window { needs } => {
            let needs = duration(*needs);
            quote!(Window { needs: #needs })
        }
        GateKind::Approval => quote!(Approval),
        GateKind::Limit => quote!(Limit),
    };
    let states = states.iter().map(|id| state_id(*id));
    quote! {
        __okt::Gate {
            name: #name,
            kind: __okt::GateKind::#kind,
            states: &[#(#states),*],
            passes: __okt::Passes { triggers: #triggers, deletion: #deletion },
        }
    }
}

fn duration(time: Duration) -> TokenStream {
    let seconds = Literal::u64_unsuffixed(time.as_secs());
    let nanos = Literal::u32_unsuffixed(time.subsec_nanos());
    quote!(::core::time::Duration::new(#seconds, #nanos))
}

fn condition(condition: &Declared<'_>) -> TokenStream {
    let Declared {
        name,
        status,
        reason,
        message,
    } = condition;
    let status = match status {
        ConditionStatus::True => quote!(True),
        ConditionStatus::False => quote!(False),
        ConditionStatus::Unknown => quote!(Unknown),
    };
    quote! {
        __okt::Declared {
            name: #name,
            status: __okt::ConditionStatus::#status,
            reason: #reason,
            message: #message,
        }
    }
}

fn no_route(NoRoute { to, reason }: &NoRoute<'_>) -> TokenStream {
    let to = state_id(*to);
    quote!(__okt::NoRoute { to: #to, reason: #reason })
}

fn table(Table(bytes): Table<'_>) -> TokenStream {
    let bytes = Literal::byte_string(bytes);
    quote!(__okt::Table(#bytes))
}

/// Generates a state id as an expression (e.g. `StateId(3)`).
pub(crate) fn state_id(StateId(id): StateId) -> TokenStream {
    let id = Literal::u16_unsuffixed(id);
    quote!(__okt::StateId(#id))
}
