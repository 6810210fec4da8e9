//! The version before a spec, `#[lifecycle(previous(v1alpha1::Shop))]`: the `From` both ways.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, FieldsNamed, Path, Token, Type};

use crate::items::{self, Item, ItemContent};
use crate::report::{ErrorReport, Spot};

/// The version before a spec.
pub(crate) struct Previous {
    pub(crate) resource: Path,
    /// Whether the author writes the conversions.
    pub(crate) by_hand: bool,
    /// The fields that only the previous version has.
    pub(crate) removed: Vec<Ident>,
    /// Whether a type is the desired state, whose names differ between versions.
    pub(crate) is_desired: fn(&Type) -> bool,
}

/// What `#[lifecycle(..)]` says of a field.
#[derive(Default)]
pub(crate) struct FieldOptions {
    /// Where it comes from, if not from the field of its name, and where that is said.
    origin: Option<(Origin, Spot)>,
    /// Where it is said that it stays as it is once it is set.
    pub(crate) immutable: Option<Spot>,
    /// The expression of its value where it is left out, and where that is said.
    pub(crate) default: Option<(String, Spot)>,
}

impl FieldOptions {
    /// Reads the options of all fields of a struct.
    pub(crate) fn of_fields(report: &mut ErrorReport, input: &DeriveInput) -> Vec<Self> {
        let Data::Struct(data) = &input.data else {
            return Vec::new();
        };
        data.fields
            .iter()
            .map(|field| Self::of(report, &field.attrs))
            .collect()
    }

    fn of(report: &mut ErrorReport, attrs: &[Attribute]) -> Self {
        let mut options = Self::default();
        let own = attrs
            .iter()
            .filter(|attr| attr.path().is_ident("lifecycle"));
        for attr in own {
            for item in items::of_attribute(report, attr).unwrap_or_default() {
                options.read(report, &item);
            }
        }
        options
    }

    fn read(&mut self, report: &mut ErrorReport, item: &Item) {
        let origin = match item.word().as_deref() {
            Some("immutable") => {
                self.immutable = item.is_flag(report, "immutable").then_some(item.spot);
                return;
            }
            Some("default") => {
                self.default = item.text(report, "default");
                return;
            }
            Some("new") => item.is_flag(report, "new").then_some(Origin::New),
            Some("was") => {
                let was = idents(report, item, "was(memory)");
                was.and_then(|was| Some(Origin::Field(was.into_iter().next()?)))
            }
            Some("holds") => Some(Origin::Parts(parts(report, item))),
            Some(_) | None => {
                item.unknown(report, &["new", "was", "holds", "immutable", "default"]);
                None
            }
        };
        self.origin = origin
            .map(|origin| (origin, item.spot))
            .or(self.origin.take());
    }

    /// Returns where it is said how the field comes from the previous version.
    pub(crate) fn of_previous(&self) -> Option<Spot> {
        self.origin.as_ref().map(|(_, spot)| *spot)
    }
}

/// Where a field comes from.
enum Origin {
    /// A field of the previous version.
    Field(Ident),
    /// Fields of the previous version, by the name that each has in this field.
    Parts(Vec<(Ident, Ident)>),
    /// The previous version does not have it.
    New,
}

impl Previous {
    /// Returns the method of `LifecycleSpec`, and the conversions.
    pub(crate) fn expand(
        &self,
        report: &mut ErrorReport,
        krate: &Path,
        input: &DeriveInput,
        own: Option<Ident>,
        options: &[FieldOptions],
    ) -> (TokenStream, TokenStream) {
        let Some(own) = own else {
            let spot = report.spot(input.ident.span());
            report.error(
                None,
                spot,
                "only the spec of a resource has a previous version",
                "derive `CustomResource`, or remove `previous(..)`",
            );
            return Default::default();
        };
        let resource = &self.resource;
        let method = quote! {
            fn previous() -> ::core::option::Option<#krate::__private::PreviousVersion> {
                ::core::option::Option::Some(#krate::__private::previous::<#resource, #own>())
            }
        };
        let conversions = if self.by_hand {
            TokenStream::new()
        } else {
            self.conversions(report, krate, input, options)
        };
        (method, conversions)
    }

    fn conversions(
        &self,
        report: &mut ErrorReport,
        krate: &Path,
        input: &DeriveInput,
        options: &[FieldOptions],
    ) -> TokenStream {
        let Some(fields) = named_fields(input) else {
            let spot = report.spot(input.ident.span());
            report.error(
                None,
                spot,
                "the conversions of a spec without named fields are not derived",
                "write `#[lifecycle(previous(..), by_hand)]` and both `From`",
            );
            return TokenStream::new();
        };
        let (up, down) = self.both_ways(fields, options);
        let (ident, resource) = (&input.ident, &self.resource);
        // A field that is missing or too much is an error of the path that names the version.
        let span = resource
            .segments
            .last()
            .map_or_else(Span::call_site, |it| it.ident.span());
        let before = quote_spanned!(span=> Before { #(#down),* });
        let (impl_generics, generics, where_clause) = input.generics.split_for_impl();
        quote! {
            const _: () = {
                type Before = <#resource as #krate::LifecycleObject>::Spec;

                #[automatically_derived]
                #[allow(clippy::useless_conversion, clippy::field_reassign_with_default)]
                impl #impl_generics ::core::convert::From<Before> for #ident #generics #where_clause {
                    fn from(it: Before) -> Self {
                        Self { #(#up),* }
                    }
                }

                #[automatically_derived]
                #[allow(clippy::useless_conversion)]
                impl #impl_generics ::core::convert::From<#ident #generics> for Before #where_clause {
                    fn from(it: #ident #generics) -> Self {
                        #before
                    }
                }
            };
        }
    }

    /// Returns the fields of this version from those of the previous one, and those of the previous one from these.
    fn both_ways(
        &self,
        fields: &FieldsNamed,
        options: &[FieldOptions],
    ) -> (Vec<TokenStream>, Vec<TokenStream>) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (field, options) in fields.named.iter().zip(options) {
            let Some(name) = &field.ident else { continue };
            let carried = |value: TokenStream| {
                let into = if (self.is_desired)(&field.ty) {
                    quote!(in_version)
                } else {
                    quote!(into)
                };
                quote!(#value.#into())
            };
            let same = Origin::Field(name.clone());
            let origin = options.origin.as_ref().map_or(&same, |(origin, _)| origin);
            match origin {
                Origin::Field(was) => {
                    let (back, forth) = (carried(quote!(it.#name)), carried(quote!(it.#was)));
                    up.push(quote!(#name: #forth));
                    down.push(quote!(#was: #back));
                }
                Origin::Parts(parts) => {
                    let ty = &field.ty;
                    let sets = parts
                        .iter()
                        .map(|(part, was)| quote!(whole.#part = it.#was.into();));
                    up.push(quote!(#name: {
                        let mut whole: #ty = ::core::default::Default::default();
                        #(#sets)*
                        whole
                    }));
                    down.extend(
                        parts
                            .iter()
                            .map(|(part, was)| quote!(#was: it.#name.#part.into())),
                    );
                }
                Origin::New => up.push(quote!(#name: ::core::default::Default::default())),
            }
        }
        for removed in &self.removed {
            down.push(quote!(#removed: ::core::default::Default::default()));
        }
        (up, down)
    }
}

fn named_fields(input: &DeriveInput) -> Option<&FieldsNamed> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(fields),
            Fields::Unnamed(_) | Fields::Unit => None,
        },
        Data::Enum(_) | Data::Union(_) => None,
    }
}

/// Returns the names in `word(one, other)`; reports anything else.
pub(crate) fn idents(report: &mut ErrorReport, item: &Item, example: &str) -> Option<Vec<Ident>> {
    let parse = Punctuated::<Ident, Token![,]>::parse_terminated;
    read(report, item, example, parse).map(|all| all.into_iter().collect())
}

/// Returns the names in `holds(memory, cpu = cpus)`, each with that of the previous version.
fn parts(report: &mut ErrorReport, item: &Item) -> Vec<(Ident, Ident)> {
    let part = |input: ParseStream<'_>| -> syn::Result<(Ident, Ident)> {
        let name: Ident = input.parse()?;
        let was = if input.parse::<Option<Token![=]>>()?.is_some() {
            input.parse()?
        } else {
            name.clone()
        };
        Ok((name, was))
    };
    let parse = move |input: ParseStream<'_>| {
        Punctuated::<_, Token![,]>::parse_terminated_with(input, part)
    };
    let read = read(report, item, "holds(memory, cpu = cpus)", parse);
    read.into_iter().flatten().collect()
}

fn read<T>(
    report: &mut ErrorReport,
    item: &Item,
    example: &str,
    parse: impl FnOnce(ParseStream<'_>) -> syn::Result<Punctuated<T, Token![,]>>,
) -> Option<Punctuated<T, Token![,]>> {
    if let ItemContent::List { items, .. } = &item.content
        && let Ok(read) = parse.parse2(items.clone())
        && !read.is_empty()
    {
        return Some(read);
    }
    let word = item.word().unwrap_or_default();
    report.bad_option(
        item.spot,
        format!("`{word}` takes names of fields"),
        format!("write `{example}`"),
    );
    None
}
