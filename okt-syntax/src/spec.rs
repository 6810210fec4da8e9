//! `#[derive(LifecycleSpec)]`: finds the lifecycle field of a spec.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use serde_derive_internals::Derive;
use serde_derive_internals::ast::Container;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, GenericArgument, LitStr, Member, Meta, Path, PathArguments,
    Token, Type, parse_quote,
};

use crate::items;
use crate::previous::{FieldOptions, Previous, idents};
use crate::report::ErrorReport;

/// Generates `impl LifecycleSpec for DatabaseSpec`.
///
/// If there are two fields, it uses the first one, so that the second one causes only one error. Without a field it
/// generates nothing.
pub(crate) fn expand(report: &mut ErrorReport, input: &DeriveInput) -> TokenStream {
    let Options {
        krate,
        none,
        previous,
        of_fields,
    } = options(report, input);
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => return refuse(report, data.enum_token.span),
        Data::Union(data) => return refuse(report, data.union_token.span),
    };
    names_its_crates(report, input, &krate);
    let (previous, conversions) = previous
        .map(|previous| previous.expand(report, &krate, input, resource(input), &of_fields))
        .unwrap_or_default();
    let told = told_of_fields(report, input, &of_fields);
    let more = quote!(#previous #told);
    let mut desired_fields = fields
        .members()
        .zip(fields)
        .filter_map(|(member, field)| Some((member, &field.ty, desired(&field.ty)?)));
    if let Some(none) = none {
        for (member, _, (word, _)) in desired_fields {
            let spot = report.spot(word.span());
            report.error(None, spot,
                format!("`{}` is a desired state, but `#[lifecycle(none)]` says that there is no lifecycle",
                    spell(&member)), "remove one of them",
            );
        }
        let implementation = without(&krate, input, none, &more);
        return quote!(#implementation #conversions);
    }
    let Some((member, desired, (_, state))) = desired_fields.next() else {
        let spot = report.spot(input.ident.span());
        report.error(None, spot,
            format!("`{}` has no field of type `Desired<..>`",
                items::name(&input.ident)), "add one, e.g. `pub lifecycle: Desired<DatabaseState>`, or say `#[lifecycle(none)]` where its operator only runs a pass",
        );
        return in_place_of_the_field(&krate, input);
    };
    let others = desired_fields.map(|(_, _, (word, _))| word.span());
    refuse_others(report, &member, others);
    let lifecycle = quote!(&self.#member);
    let forget = quote!(self.#member = ::core::default::Default::default(););
    let implementation = implementation(
        &krate,
        input,
        (&quote!(#state), &quote!(#desired)),
        &lifecycle,
        &forget,
        &more,
    );
    quote!(#implementation #conversions)
}

/// Generates what the API server is told of fields, by the names that serde writes: which stay as they are once they are
/// set, and which are filled in.
fn told_of_fields(
    report: &mut ErrorReport,
    input: &DeriveInput,
    of_fields: &[FieldOptions],
) -> TokenStream {
    let is_told = |field: &FieldOptions| field.immutable.is_some() || field.default.is_some();
    if !of_fields.iter().any(is_told) {
        return TokenStream::new();
    }
    let context = serde_derive_internals::Ctxt::new();
    let container = Container::from_ast(&context, input, Derive::Serialize, &parse_quote!(_serde));
    // What is wrong with the attributes, the derives of serde report.
    let _errors = context.check();
    let fields = container.iter().flat_map(|it| it.data.all_fields());
    let (mut immutable, mut defaults) = (Vec::new(), Vec::new());
    for (field, options) in fields.zip(of_fields) {
        let default = options.default.as_ref();
        let spot = options.immutable.or(default.map(|(_, spot)| *spot));
        if let Some(spot) = spot
            && (field.attrs.flatten() || field.attrs.skip_serializing())
        {
            report.error(
                None,
                spot,
                "a field that is flattened or skipped has no name by which a policy could find it",
                "write this on fields with a name of their own",
            );
        }
        let name = &field.attrs.name().serialize_name().value;
        immutable.extend(options.immutable.map(|_| name.clone()));
        defaults.extend(default.map(|(value, _)| quote!((#name, #value))));
    }
    quote! {
        fn immutable() -> &'static [&'static str] {
            &[#(#immutable),*]
        }

        fn defaults() -> &'static [(&'static str, &'static str)] {
            &[#(#defaults),*]
        }
    }
}

/// Generates the `impl`: the states, the type of the desired state, the bodies of two methods, and `more` methods.
fn implementation(
    krate: &Path,
    input: &DeriveInput,
    (state, desired): (&TokenStream, &TokenStream),
    lifecycle: &TokenStream,
    forget: &TokenStream,
    more: &TokenStream,
) -> TokenStream {
    let ident = &input.ident;
    let (impl_generics, generics, where_clause) = input.generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::LifecycleSpec for #ident #generics #where_clause {
            type State = #state;

            fn lifecycle(&self) -> &#desired {
                #lifecycle
            }

            fn forget_lifecycle(&mut self) {
                #forget
            }

            #more
        }
    }
}

/// Reports all desired states but the first one.
fn refuse_others(report: &mut ErrorReport, first: &Member, others: impl Iterator<Item = Span>) {
    for other in others {
        let spot = report.spot(other);
        let why = format!(
            "a second field of type `Desired<..>`, after `{}`",
            spell(first)
        );
        report.error(None, spot, why, "an object has one life, remove one");
    }
}

/// Generates the `impl` for a spec without a lifecycle.
fn without(krate: &Path, input: &DeriveInput, none: Span, more: &TokenStream) -> TokenStream {
    let state = quote_spanned!(none=> #krate::NoLifecycle);
    let desired = quote!(#krate::Desired<Self::State>);
    let lifecycle = quote!(<Self::State>::desired());
    implementation(
        krate,
        input,
        (&state, &desired),
        &lifecycle,
        &TokenStream::new(),
        more,
    )
}

/// Reports a resource whose other derives cannot find their crates, because only `okt` is a dependency.
fn names_its_crates(report: &mut ErrorReport, input: &DeriveInput, krate: &Path) {
    let is_resource = input.attrs.iter().any(|attr| attr.path().is_ident("kube"));
    // `#[okt::crates]` adds `#[kube(crates(..))]`.
    let is_named = options_in_kube(&input.attrs).any(|option| option.path().is_ident("crates"));
    if is_resource && !is_named && !depends_on("kube") {
        let krate = quote!(#krate).to_string().replace([' ', ':'], "");
        let spot = report.spot(input.ident.span());
        report.error(None, spot,
            format!("the derives of serde, schemars and kube look for these crates in Cargo.toml, which has `{krate}`"), format!("write `#[{krate}::crates]` above the derives"),
        );
    }
}

/// Returns whether the manifest of the crate that is compiled has a dependency of this name; yes if it cannot be read.
fn depends_on(name: &str) -> bool {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").and_then(|directory| {
        std::fs::read_to_string(std::path::Path::new(&directory).join("Cargo.toml")).ok()
    });
    manifest.is_none_or(|manifest| {
        manifest.lines().any(|line| {
            let line = line.trim_start();
            let key = line.split(['=', '.', ' ', '\t']).next().unwrap_or_default();
            key.trim_matches('"') == name || line.ends_with(&format!("dependencies.{name}]"))
        })
    })
}

/// Generates an `impl` for a spec that lacks its field, if the type of its status names the states: the missing field is
/// then the only error.
fn in_place_of_the_field(krate: &Path, input: &DeriveInput) -> TokenStream {
    let Some(state) = status_in_kube(&input.attrs) else {
        return TokenStream::new();
    };
    let desired = quote!(#krate::Desired<#state>);
    let lifecycle = quote!(::core::unreachable!());
    implementation(
        krate,
        input,
        (&quote!(#state), &desired),
        &lifecycle,
        &TokenStream::new(),
        &TokenStream::new(),
    )
}

/// Returns the options of all attributes `#[kube(..)]` that can be read.
pub(crate) fn options_in_kube(attrs: &[Attribute]) -> impl Iterator<Item = Meta> {
    let lists = attrs.iter().filter(|attr| attr.path().is_ident("kube"));
    let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
    let options = lists.filter_map(move |attr| attr.parse_args_with(parse).ok());
    options.flatten()
}

/// Returns an option of `#[kube(..)]` that is a text.
pub(crate) fn text_in_kube(attrs: &[Attribute], name: &str) -> Option<LitStr> {
    options_in_kube(attrs).find_map(|option| items::text_of(&option, name).cloned())
}

/// Returns the states in `#[kube(.., status = "Status<DatabaseState>")]`.
pub(crate) fn status_in_kube(attrs: &[Attribute]) -> Option<Type> {
    status_of(&text_in_kube(attrs, "status")?.parse().ok()?)
}

/// Returns the states of a type `Status<DatabaseState, ..>`, by any path.
fn status_of(ty: &Type) -> Option<Type> {
    let (word, state) = generic(ty)?;
    (word == "Status").then(|| state.clone())
}

/// Returns the state enum of the first field of type `Desired<DatabaseState>`.
pub(crate) fn desired_in(input: &DeriveInput) -> Option<Type> {
    let Data::Struct(data) = &input.data else {
        return None;
    };
    let mut fields = data.fields.iter();
    fields.find_map(|field| Some(desired(&field.ty)?.1.clone()))
}

/// Returns whether the spec says `#[lifecycle(none)]`.
pub(crate) fn is_without_lifecycle(input: &DeriveInput) -> bool {
    let mut report = ErrorReport::new();
    let options = options(&mut report, input);
    report.leave();
    options.none.is_some()
}

/// Returns the name of the resource that kube generates.
fn resource(input: &DeriveInput) -> Option<Ident> {
    let named = |word| text_in_kube(&input.attrs, word)?.parse().ok();
    named("struct").or_else(|| named("kind"))
}

/// Returns the name and the state enum of a type `Desired<DatabaseState>`, by any path.
fn desired(ty: &Type) -> Option<(&Ident, &Type)> {
    generic(ty).filter(|(word, _)| *word == "Desired")
}

/// Returns the name of a type and its first argument.
fn generic(ty: &Type) -> Option<(&Ident, &Type)> {
    let Type::Path(path) = ty else {
        return None;
    };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(state)) => Some((&last.ident, state)),
        _ => None,
    }
}

/// The options in `#[lifecycle(..)]`.
struct Options {
    /// The crate that the code names.
    krate: Path,
    /// The span of `none`: the spec has no lifecycle.
    none: Option<Span>,
    /// The version before it.
    previous: Option<Previous>,
    /// What is said of each field.
    of_fields: Vec<FieldOptions>,
}

fn options(report: &mut ErrorReport, input: &DeriveInput) -> Options {
    let mut read = Options {
        krate: parse_quote!(::okt),
        none: None,
        previous: None,
        of_fields: FieldOptions::of_fields(report, input),
    };
    let (mut by_hand, mut names_one) = (false, false);
    let (mut removed, mut of_previous) = (Vec::new(), None);
    let is_own = |attr: &&Attribute| attr.path().is_ident("lifecycle");
    for attr in input.attrs.iter().filter(is_own) {
        for item in items::of_attribute(report, attr).unwrap_or_default() {
            match item.word().as_deref() {
                Some("crate") => {
                    read.krate = crate::options::path(report, &item).unwrap_or(read.krate);
                }
                Some("none") => {
                    item.is_flag(report, "none");
                    read.none = Some(attr.path().span());
                }
                Some("previous") => {
                    names_one = true;
                    let path = crate::options::path_of(report, &item, "previous", "v1alpha1::Shop");
                    read.previous = path.map(|resource| Previous {
                        resource,
                        by_hand: false,
                        removed: Vec::new(),
                        is_desired: |ty| desired(ty).is_some(),
                    });
                }
                Some("by_hand") => {
                    by_hand = item.is_flag(report, "by_hand");
                    of_previous = Some(item.spot);
                }
                Some("removed") => {
                    removed.extend(idents(report, &item, "removed(size)").unwrap_or_default());
                    of_previous = Some(item.spot);
                }
                Some(_) | None => {
                    item.unknown(report, &["crate", "none", "previous", "by_hand", "removed"]);
                }
            }
        }
    }
    let of_field = || read.of_fields.iter().find_map(FieldOptions::of_previous);
    match (&mut read.previous, of_previous.or_else(of_field)) {
        (Some(previous), _) => {
            previous.by_hand = by_hand;
            previous.removed = removed;
        }
        (None, Some(spot)) if !names_one => report.error(
            None,
            spot,
            "this says how the spec comes from that of the previous version, and there is none",
            "add `#[lifecycle(previous(v1alpha1::Shop))]` to the struct, or remove it",
        ),
        (None, _) => {}
    }
    read
}

fn refuse(report: &mut ErrorReport, span: Span) -> TokenStream {
    let spot = report.spot(span);
    report.error(
        None,
        spot,
        "only a struct can be the spec of a lifecycle",
        "one of its fields is a `Desired<..>`",
    );
    TokenStream::new()
}

fn spell(member: &Member) -> String {
    match member {
        Member::Named(ident) => items::name(ident),
        Member::Unnamed(index) => index.index.to_string(),
    }
}
