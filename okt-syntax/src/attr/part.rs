//! The parts of a spec that a trigger names: `on_change(version, storage.size, major())`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Member, Token};

use crate::items::{self, Item, ItemContent};
use crate::report::ErrorReport;

/// A part of a spec: a field, a field of a field, or what a method without arguments returns.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// As it is declared, without spaces (e.g. `storage.size`).
    pub(crate) name: String,
    /// The part of `__spec`, as an expression whose names have the span of the source.
    pub(crate) access: TokenStream,
}

/// Reads what stands after `on_change`; nothing for `on_change` alone, and none if it cannot be read, which is reported.
pub(super) fn parts(report: &mut ErrorReport, item: &Item) -> Option<Vec<Part>> {
    const HELP: &str = "name fields of the spec, or methods that compute a value from it, e.g. `on_change(version)`, `on_change(storage.size, major())`; or write `on_change` alone";
    let tokens = match &item.content {
        ItemContent::Name(_) => return Some(Vec::new()),
        ItemContent::List { items, .. } => items.clone(),
        ItemContent::Value { .. } | ItemContent::Literal(_) => {
            report.bad_option(item.spot, "`on_change` takes no value", HELP);
            return None;
        }
    };
    let parse = Punctuated::<Expr, Token![,]>::parse_terminated;
    let read = match parse.parse2(tokens) {
        Ok(read) if !read.is_empty() => read,
        Ok(_) => {
            report.bad_option(item.spot, "`on_change()` names no part of the spec", HELP);
            return None;
        }
        Err(error) => {
            let spot = report.spot(error.span());
            report.bad_option(spot, format!("cannot be read: {error}"), HELP);
            return None;
        }
    };
    let mut parts: Vec<Part> = Vec::new();
    for expression in &read {
        let spot = report.spot_of(expression);
        let Some(part) = part(expression) else {
            report.bad_option(spot, "this is no part of the spec", HELP);
            return None;
        };
        if parts.iter().any(|known| known.name == part.name) {
            report.bad_option(spot, format!("`{}` stands twice", part.name), "keep one");
        } else {
            parts.push(part);
        }
    }
    Some(parts)
}

fn part(expression: &Expr) -> Option<Part> {
    match expression {
        Expr::Path(path) => {
            let ident = path.path.get_ident().filter(|_| path.attrs.is_empty())?;
            Some(Part {
                name: items::name(ident),
                access: quote!(__spec.#ident),
            })
        }
        Expr::Call(call) if call.args.is_empty() => {
            let Expr::Path(path) = &*call.func else {
                return None;
            };
            let ident = path.path.get_ident()?;
            Some(Part {
                name: format!("{}()", items::name(ident)),
                access: quote!(__spec.#ident()),
            })
        }
        Expr::Field(field) => {
            let Part { name, access } = part(&field.base)?;
            let member = &field.member;
            let own = match member {
                Member::Named(ident) => items::name(ident),
                Member::Unnamed(index) => index.index.to_string(),
            };
            Some(Part {
                name: format!("{name}.{own}"),
                access: quote!(#access.#member),
            })
        }
        Expr::MethodCall(call) if call.args.is_empty() && call.turbofish.is_none() => {
            let Part { name, access } = part(&call.receiver)?;
            let method = &call.method;
            Some(Part {
                name: format!("{name}.{}()", items::name(method)),
                access: quote!(#access.#method()),
            })
        }
        _ => None,
    }
}
