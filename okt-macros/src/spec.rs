//! `#[derive(LifecycleSpec)]`: finds the lifecycle field of a spec.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, GenericArgument, Member, Path, PathArguments, Type, parse_quote};

use crate::items;
use crate::report::Report;

/// Generates `impl LifecycleSpec for DatabaseSpec`.
///
/// If there are two fields, it uses the first one, so that the second one causes only one error. Without a field it
/// generates nothing.
pub(crate) fn expand(report: &mut Report, input: &DeriveInput) -> TokenStream {
    let Options { krate, none } = options(report, input);
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => return refuse(report, data.enum_token.span),
        Data::Union(data) => return refuse(report, data.union_token.span),
    };
    let mut desired_fields = fields
        .members()
        .zip(fields)
        .filter_map(|(member, field)| Some((member, &field.ty, desired(&field.ty)?)));
    if let Some(none) = none {
        for (member, _, (word, _)) in desired_fields {
            let spot = report.spot(word.span());
            report.say(
                spot,
                format!(
                    "`{}` is a desired state, but `#[lifecycle(none)]` says that there is no lifecycle; remove one of them",
                    spell(&member)
                ),
            );
        }
        return without(&krate, input, none);
    }
    let Some((member, desired, (_, state))) = desired_fields.next() else {
        let spot = report.spot(input.ident.span());
        report.say(
            spot,
            format!(
                "`{}` has no field of type `Desired<..>`; add one, e.g. `pub lifecycle: Desired<DatabaseState>`, or say `#[lifecycle(none)]` where its operator only runs a pass",
                items::name(&input.ident)
            ),
        );
        return TokenStream::new();
    };
    for (_, _, (word, _)) in desired_fields {
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

            fn forget_lifecycle(&mut self) {
                self.#member = ::core::default::Default::default();
            }
        }
    }
}

/// Generates the `impl` for a spec without a lifecycle.
fn without(krate: &Path, input: &DeriveInput, none: Span) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, generics, where_clause) = input.generics.split_for_impl();
    let state = quote_spanned!(none=> #krate::NoLifecycle);
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::LifecycleSpec for #ident #generics #where_clause {
            type State = #state;

            fn lifecycle(&self) -> &#krate::Desired<Self::State> {
                <Self::State>::desired()
            }

            fn forget_lifecycle(&mut self) {}
        }
    }
}

/// Returns the name and the state enum of a type `Desired<DatabaseState>`, by any path.
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

/// The options in `#[lifecycle(..)]`.
struct Options {
    /// The crate that the code names.
    krate: Path,
    /// The span of `none`: the spec has no lifecycle.
    none: Option<Span>,
}

fn options(report: &mut Report, input: &DeriveInput) -> Options {
    let mut read = Options {
        krate: parse_quote!(::okt),
        none: None,
    };
    let attrs = input.attrs.iter();
    for attr in attrs.filter(|attr| attr.path().is_ident("lifecycle")) {
        for item in items::of_attribute(report, attr).unwrap_or_default() {
            match item.word().as_deref() {
                Some("crate") => {
                    read.krate = crate::options::path(report, &item).unwrap_or(read.krate);
                }
                Some("none") => {
                    item.is_flag(report, "none");
                    read.none = Some(attr.path().span());
                }
                Some(_) | None => item.unknown(report, &["crate", "none"]),
            }
        }
    }
    read
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
