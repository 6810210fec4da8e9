//! `#[crates]`: the derives of serde, schemars and kube find their crates in `okt`.

use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::{Attribute, DeriveInput, Expr, LitStr, Path, Token, parse_quote, token};

use crate::resource::{self, derives};

/// The crates that the code of kube's derives names, by their names there, and their paths in `okt`.
const OF_KUBE: [(&str, &str); 6] = [
    ("kube", "kube"),
    ("kube_core", "kube::core"),
    ("k8s_openapi", "k8s_openapi"),
    ("schemars", "schemars"),
    ("serde", "serde"),
    ("serde_json", "serde_json"),
];

/// The same for `KubeSchema`.
const OF_KUBE_SCHEMA: [(&str, &str); 4] = [
    ("kube_core", "kube::core"),
    ("schemars", "schemars"),
    ("serde", "serde"),
    ("serde_json", "serde_json"),
];

/// Adds the attributes to an item with derives; on a mistake, returns the item and the error.
pub(crate) fn expand(args: TokenStream, item: &TokenStream) -> TokenStream {
    match (krate(args), syn::parse2::<DeriveInput>(item.clone())) {
        (Ok(krate), Ok(mut input)) => {
            let mut mistakes = resource::complete(&krate, &mut input);
            mistakes.extend(default_of_container(&mut input));
            let errors = mistakes.iter().map(syn::Error::to_compile_error);
            match add(&krate, &mut input) {
                Ok(()) => quote!(#(#errors)* #input),
                Err(error) => refused(&error, item),
            }
        }
        (Err(error), _) | (_, Err(error)) => refused(&error, item),
    }
}

fn refused(error: &syn::Error, item: &TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    quote!(#error #item)
}

/// Returns the crate that `#[crates(path)]` names, by default `::okt`.
fn krate(args: TokenStream) -> syn::Result<Path> {
    if args.is_empty() {
        return Ok(parse_quote!(::okt));
    }
    Path::parse_mod_style.parse2(args.clone()).map_err(|_| {
        let why = "write `#[crates]`, or the path of the crate `okt`, e.g. `#[crates(my::okt)]`";
        syn::Error::new_spanned(args, why)
    })
}

fn add(krate: &Path, input: &mut DeriveInput) -> syn::Result<()> {
    let derives = derives(&input.attrs)?;
    let has = |names: &[&str]| derives.iter().any(|it| names.iter().any(|name| it == name));
    let of = |path: &str| -> LitStr {
        let krate = krate.to_token_stream().to_string().replace(' ', "");
        LitStr::new(&format!("{krate}::{path}"), Span::call_site())
    };
    let all = |crates: &[(&str, &str)]| -> TokenStream {
        let entries = crates.iter().map(|(name, path)| {
            let (name, path) = (syn::Ident::new(name, Span::call_site()), of(path));
            quote!(#name = #path)
        });
        quote!(crates(#(#entries),*))
    };
    let before = input.attrs.len();
    if has(&["Serialize", "Deserialize"]) {
        let serde = of("serde");
        input.attrs.push(parse_quote!(#[serde(crate = #serde)]));
    }
    if has(&["JsonSchema", "KubeSchema"]) {
        let schemars = of("schemars");
        input
            .attrs
            .push(parse_quote!(#[schemars(crate = #schemars)]));
    }
    if has(&["CustomResource"]) {
        let crates = all(&OF_KUBE);
        input.attrs.push(parse_quote!(#[kube(#crates)]));
    }
    if has(&["KubeSchema"]) {
        let crates = all(&OF_KUBE_SCHEMA);
        input.attrs.push(parse_quote!(#[x_kube(#crates)]));
    }
    if input.attrs.len() > before {
        return Ok(());
    }
    Err(syn::Error::new_spanned(
        &input.ident,
        "`#[crates]` finds no derive of serde, schemars or kube; write it above `#[derive(..)]`, or remove it",
    ))
}

/// Takes `#[serde(default)]` from above a struct that derives `KubeSchema`, and returns the error: kube copies the
/// attributes of the struct to private structs, for which there is no default.
fn default_of_container(input: &mut DeriveInput) -> Option<syn::Error> {
    let derives = derives(&input.attrs).unwrap_or_default();
    if !derives.iter().any(|it| it == "KubeSchema") {
        return None;
    }
    let at = input.attrs.iter().position(|it| default_in(it).is_some())?;
    let default = default_in(&input.attrs.remove(at));
    let why = "`KubeSchema` does not work with `#[serde(default)]` above the struct: write `#[serde(default)]` above each field that has a default";
    Some(syn::Error::new_spanned(default, why))
}

/// Returns the word `default` of an attribute of serde.
fn default_in(attr: &Attribute) -> Option<Path> {
    let mut default = None;
    if attr.path().is_ident("serde") {
        // What serde does not know is reported by serde.
        let _ = attr.parse_nested_meta(|meta| {
            if meta.input.peek(Token![=]) {
                meta.value()?.parse::<Expr>()?;
            } else if meta.input.peek(token::Paren) {
                meta.input.parse::<Group>()?;
            }
            if meta.path.is_ident("default") {
                default = Some(meta.path);
            }
            Ok(())
        });
    }
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(args: TokenStream, item: &TokenStream) -> String {
        expand(args, item).to_string().replace(' ', "")
    }

    #[test]
    fn each_derive_gets_the_paths_of_its_crates() {
        let spec = quote! {
            #[derive(Clone, kube::CustomResource, serde::Deserialize, JsonSchema)]
            #[kube(group = "example.com")]
            struct ServerSpec { size: u32 }
        };
        let spec = expanded(TokenStream::new(), &spec);
        for attribute in [
            r#"#[kube(group="example.com")]"#,
            r#"#[serde(crate="::okt::serde")]"#,
            r#"#[schemars(crate="::okt::schemars")]"#,
            r#"kube_core="::okt::kube::core",k8s_openapi="::okt::k8s_openapi""#,
        ] {
            assert!(spec.contains(attribute), "{attribute}: {spec}");
        }
        let part = quote!(
            #[derive(Serialize)]
            struct Part;
        );
        let part = expanded(quote!(my::okt), &part);
        assert_eq!(
            part,
            r#"#[derive(Serialize)]#[serde(crate="my::okt::serde")]structPart;"#
        );
    }

    #[test]
    fn what_the_spec_of_a_resource_lacks_is_reported_and_added() {
        let spec = quote! {
            #[derive(CustomResource, Serialize, Deserialize)]
            #[kube(group = "example.com", kind = "Server")]
            struct ServerSpec { lifecycle: Desired<ServerState> }
        };
        let code = expanded(TokenStream::new(), &spec);
        assert_eq!(code.matches("compile_error!").count(), 2, "{code}");
        for added in [
            "#[derive(::okt::LifecycleSpec,Clone,Debug,::okt::schemars::JsonSchema)]",
            r#"status="::okt::Status<ServerState>""#,
        ] {
            assert!(code.contains(added), "{added}: {code}");
        }
    }

    #[test]
    fn a_custom_resource_that_okt_does_not_reconcile_stays_as_it_is() {
        let spec = quote! {
            #[derive(CustomResource, Serialize, Deserialize)]
            #[kube(group = "example.com", kind = "Server")]
            struct ServerSpec { size: u32 }
        };
        let code = expanded(TokenStream::new(), &spec);
        assert!(!code.contains("compile_error!"), "{code}");
        assert!(!code.contains("LifecycleSpec"), "{code}");
    }

    #[test]
    fn a_default_that_kube_schema_cannot_have_is_an_error_that_says_where_to_write_it() {
        for (default, is_refused) in [
            (quote!(rename_all(serialize = "camelCase"), default), true),
            (quote!(default = "of_part", rename = "part"), true),
            (quote!(rename_all = "camelCase"), false),
        ] {
            let code = |derive: TokenStream| {
                let part = quote!(
                    #[derive(Serialize, #derive)]
                    #[serde(#default)]
                    struct Part {
                        size: u32,
                    }
                );
                expanded(TokenStream::new(), &part)
            };
            let refused = code(quote!(KubeSchema));
            assert_eq!(refused.contains("aboveeachfield"), is_refused, "{refused}");
            assert!(refused.contains(r#"#[serde(crate="::okt::serde")]"#));
            assert!(!code(quote!(JsonSchema)).contains("compile_error"));
        }
    }

    #[test]
    fn a_mistake_is_an_error_and_the_item_stays() {
        for (args, item, why) in [
            (
                quote!(),
                quote!(
                    #[derive(Clone)]
                    struct Part;
                ),
                "findsnoderiveofserde",
            ),
            (
                quote!(1),
                quote!(
                    #[derive(Serialize)]
                    struct Part;
                ),
                "thepathofthecrate`okt`",
            ),
            (
                quote!(),
                quote!(
                    fn part() {}
                ),
                "expected",
            ),
        ] {
            let code = expanded(args, &item);
            assert!(
                code.contains("compile_error!") && code.contains(why),
                "{code}"
            );
            assert!(code.ends_with(&item.to_string().replace(' ', "")), "{code}");
        }
    }
}
