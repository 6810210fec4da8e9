//! What the spec of a resource lacks: reported once, and added, so that it is no error anywhere else.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, LitStr, Meta, Path, Token, Type, parse_quote};

use crate::spec;

/// The derives of a spec: the word, its path in `okt` if it is there, and another word that does the same.
const DERIVES: [(&str, Option<&str>, &str); 7] = [
    ("CustomResource", Some("kube::CustomResource"), ""),
    ("LifecycleSpec", Some("LifecycleSpec"), ""),
    ("Clone", None, ""),
    ("Debug", None, ""),
    ("Serialize", Some("serde::Serialize"), ""),
    ("Deserialize", Some("serde::Deserialize"), ""),
    ("JsonSchema", Some("schemars::JsonSchema"), "KubeSchema"),
];

/// Adds what the spec of a resource lacks, and returns an error for each addition.
///
/// Any other item stays as it is, also the spec of a custom resource that OKT does not reconcile.
pub(crate) fn complete(krate: &Path, input: &mut DeriveInput) -> Vec<syn::Error> {
    let Ok(derived) = derives(&input.attrs) else {
        return Vec::new();
    };
    let has = |name: &str| derived.iter().any(|it| it == name);
    let has_options = input.attrs.iter().any(|attr| attr.path().is_ident("kube"));
    let is_resource = has("CustomResource") || has_options;
    let is_of_okt = has("LifecycleSpec") || spec::desired_in(input).is_some();
    if !(is_resource && is_of_okt) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    errors.extend(wrap_state(krate, input));
    errors.extend(add_derives(krate, input, &derived));
    errors.extend(mend_status(krate, input));
    errors
}

/// Adds the derives that are missing.
fn add_derives(
    krate: &Path,
    input: &mut DeriveInput,
    derived: &[syn::Ident],
) -> Option<syn::Error> {
    let has = |name: &str| derived.iter().any(|it| it == name);
    let has_schema = spec::text_in_kube(&input.attrs, "schema").is_some();
    let missing: Vec<_> = DERIVES
        .iter()
        .filter(|(name, _, other)| {
            !(has(name) || has(other) || (has_schema && *name == "JsonSchema"))
        })
        .collect();
    if missing.is_empty() {
        return None;
    }
    let words: Vec<&str> = missing.iter().map(|(name, _, _)| *name).collect();
    let why = format!(
        "the spec of a resource derives {}; add it: `#[derive({0}, ..)]`",
        words.join(", ")
    );
    let error = syn::Error::new(input.ident.span(), why);
    let paths = missing.iter().map(|(name, path, _)| -> TokenStream {
        let name: TokenStream = name.parse().unwrap_or_default();
        match path.map(str::parse::<TokenStream>) {
            Some(Ok(path)) => quote!(#krate::#path),
            Some(Err(_)) | None => name,
        }
    });
    let derive: Attribute = parse_quote!(#[derive(#(#paths),*)]);
    input.attrs.insert(0, derive);
    Some(error)
}

/// Wraps a field that has the type of a state in `Desired`, if there is no other desired state.
fn wrap_state(krate: &Path, input: &mut DeriveInput) -> Option<syn::Error> {
    if spec::desired_in(input).is_some() {
        return None;
    }
    let state = spec::status_in_kube(&input.attrs)?;
    let Data::Struct(data) = &mut input.data else {
        return None;
    };
    let mut fields = data.fields.iter_mut();
    let field = fields.find(|field| spelled(&field.ty) == spelled(&state))?;
    let why = format!(
        "this field is the desired state; write `Desired<{}>`",
        spelled(&state)
    );
    let error = syn::Error::new_spanned(&field.ty, why);
    field.ty = parse_quote!(#krate::Desired<#state>);
    Some(error)
}

/// Adds the status, or replaces one of other states than the spec desires.
fn mend_status(krate: &Path, input: &mut DeriveInput) -> Option<syn::Error> {
    let state = spec::desired_in(input);
    let wanted = match &state {
        Some(state) => format!("Status<{}>", spelled(state)),
        None if spec::is_without_lifecycle(input) => "PassStatus".to_owned(),
        None => return None,
    };
    let (span, why) = match spec::text_in_kube(&input.attrs, "status") {
        None => (
            input.ident.span(),
            format!(
                "a resource has a status, which OKT writes; add it: `#[kube(.., status = \"{wanted}\")]`"
            ),
        ),
        Some(status) => {
            let is = spec::status_in_kube(&input.attrs)?;
            let state = state.filter(|state| spelled(state) != spelled(&is))?;
            (
                status.span(),
                format!(
                    "the status is that of `{}`, and the spec desires a `{}`; write `status = \"{wanted}\"`",
                    spelled(&is),
                    spelled(&state)
                ),
            )
        }
    };
    set_status(input, krate, &wanted);
    Some(syn::Error::new(span, why))
}

/// Replaces the option `status`, or adds it.
fn set_status(input: &mut DeriveInput, krate: &Path, status: &str) {
    let krate = quote!(#krate).to_string().replace(' ', "");
    let status = LitStr::new(&format!("{krate}::{status}"), Span::call_site());
    for attr in &mut input.attrs {
        let options: Vec<Meta> = spec::options_in_kube(std::slice::from_ref(attr)).collect();
        if let Meta::List(list) = &mut attr.meta
            && list.path.is_ident("kube")
        {
            let others = options
                .iter()
                .filter(|option| !option.path().is_ident("status"));
            list.tokens = quote!(#(#others,)* status = #status);
            return;
        }
    }
}

fn spelled(ty: &Type) -> String {
    quote!(#ty).to_string().replace(' ', "")
}

/// Returns the last words of all derives below the attribute.
pub(crate) fn derives(attrs: &[Attribute]) -> syn::Result<Vec<syn::Ident>> {
    let mut names = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("derive")) {
        let list = attr.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)?;
        let last = |path: Path| Some(path.segments.last()?.ident.clone());
        names.extend(list.into_iter().filter_map(last));
    }
    Ok(names)
}
