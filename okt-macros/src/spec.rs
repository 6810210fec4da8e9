//! `#[derive(LifecycleSpec)]`: the field of a spec that says where the object should be in its life.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Data, DeriveInput, GenericArgument, Member, Path, PathArguments, Type, parse_quote};

use crate::items;
use crate::options;
use crate::report::Report;

/// Writes `impl LifecycleSpec for DatabaseSpec`.
///
/// Of two fields the first is taken, so that the second brings one error only; without any there is nothing to write.
pub(crate) fn expand(report: &mut Report, input: &DeriveInput) -> TokenStream {
    let krate = krate(report, input);
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => return refuse(report, data.enum_token.span),
        Data::Union(data) => return refuse(report, data.union_token.span),
    };
    let mut wishes = fields
        .members()
        .zip(fields)
        .filter_map(|(member, field)| Some((member, &field.ty, desired(&field.ty)?)));
    let Some((member, desired, (_, state))) = wishes.next() else {
        let spot = report.spot(input.ident.span());
        report.say(
            spot,
            format!(
                "`{}` has no field of type `Desired<..>`; add one, e.g. `pub lifecycle: Desired<DatabaseState>`",
                items::name(&input.ident)
            ),
        );
        return TokenStream::new();
    };
    for (_, _, (word, _)) in wishes {
        let spot = report.spot(word.span());
        report.say(
            spot,
            format!(
                "a second field of type `Desired<..>`, after `{}`; an object has one life, remove one",
                spell(&member)
            ),
        );
    }
    let ident = &input.ident;
    let (impl_generics, generics, where_clause) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::LifecycleSpec for #ident #generics #where_clause {
            type State = #state;

            fn lifecycle(&self) -> &#desired {
                &self.#member
            }

            fn lifecycle_mut(&mut self) -> &mut #desired {
                &mut self.#member
            }
        }
    }
}

/// The word and the state enum of a type `Desired<DatabaseState>`, by whatever path.
fn desired(ty: &Type) -> Option<(&Ident, &Type)> {
    let Type::Path(path) = ty else {
        return None;
    };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(state)) if last.ident == "Desired" => Some((&last.ident, state)),
        _ => None,
    }
}

/// The crate named by `#[lifecycle(crate(path))]`.
fn krate(report: &mut Report, input: &DeriveInput) -> Path {
    let mut krate = parse_quote!(::okt_runtime);
    let attrs = input.attrs.iter();
    for attr in attrs.filter(|attr| attr.path().is_ident("lifecycle")) {
        for item in items::of_attribute(report, attr).unwrap_or_default() {
            if item.word().as_deref() == Some("crate") {
                krate = options::path(report, &item).unwrap_or(krate);
            } else {
                item.unknown(report, &["crate"]);
            }
        }
    }
    krate
}

fn refuse(report: &mut Report, span: Span) -> TokenStream {
    let spot = report.spot(span);
    report.say(
        spot,
        "only a struct can be the spec of a lifecycle; one of its fields is a `Desired<..>`",
    );
    TokenStream::new()
}

fn spell(member: &Member) -> String {
    match member {
        Member::Named(ident) => items::name(ident),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
