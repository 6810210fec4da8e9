//! `#[derive(Request)]`: the kind of requests whose arguments a struct is.

use core::time::Duration;

use darling::util::Flag;
use darling::{Error, FromDeriveInput, FromMeta};
use okt_core::names::is_state;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{DeriveInput, Path, Visibility, parse_quote};

/// The options in `#[request(..)]`.
#[derive(FromDeriveInput)]
#[darling(attributes(request), supports(struct_any))]
struct RequestOptions {
    ident: Ident,
    vis: Visibility,
    /// The name of the kind.
    kind: KindName,
    /// The resource whose objects serve the requests.
    of: Path,
    /// The state that serves them.
    state: Option<Path>,
    /// How long a finished request is kept.
    ttl: Option<Ttl>,
    /// Whether there is a kind that makes requests at times of a calendar.
    schedule: Flag,
    /// The crate that the code names.
    #[darling(rename = "crate")]
    krate: Option<Path>,
}

/// The name of a kind.
struct KindName(String);

impl FromMeta for KindName {
    fn from_string(name: &str) -> darling::Result<Self> {
        let is_kind = is_state(name) && name.starts_with(char::is_uppercase) && !name.contains('_');
        if is_kind {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::custom(format!(
                "`{name}` is no kind: write letters and digits, the first one in upper case, e.g. `kind = \"Restore\"`"
            )))
        }
    }
}

/// A time to live.
struct Ttl(Duration);

impl FromMeta for Ttl {
    fn from_string(text: &str) -> darling::Result<Self> {
        // humantime reads `30M` as months, which is never intended.
        let time = humantime::parse_duration(text)
            .ok()
            .filter(|_| !text.contains('M'));
        let no_time = || Error::custom(format!("`{text}` is no time: write e.g. `ttl = \"7d\"`"));
        time.map(Self).ok_or_else(no_time)
    }
}

/// Generates `impl Request for RestoreArgs`, and a name for the kind: `Restore`.
pub(crate) fn expand(input: &DeriveInput) -> TokenStream {
    let RequestOptions {
        ident,
        vis,
        kind: KindName(kind),
        of,
        state,
        ttl,
        schedule,
        krate,
    } = match RequestOptions::from_derive_input(input) {
        Ok(options) => options,
        Err(error) => return error.write_errors(),
    };
    let krate = krate.unwrap_or_else(|| parse_quote!(::okt));
    let ttl = ttl.map(|Ttl(time)| {
        let seconds = time.as_secs();
        quote!(const TTL: ::core::time::Duration = ::core::time::Duration::from_secs(#seconds);)
    });
    let is_scheduled = schedule.is_present();
    let scheduled = is_scheduled.then(|| {
        quote!(
            const SCHEDULED: bool = true;
        )
    });
    let checked = state.map(|state| {
        let message = format!("`state` is not the state whose visit has `args = {ident}`");
        quote! {
            const _: () = ::core::assert!(
                #state as u16 == <<#of as #krate::LifecycleObject>::State as #krate::Serves<#ident>>::STATE.0,
                #message
            );
        }
    });
    let name = Ident::new(&kind, Span::call_site());
    let doc = format!("The requests with the arguments [`{ident}`].");
    let schedule = is_scheduled.then(|| {
        let name = format_ident!("{kind}Schedule", span = Span::call_site());
        let doc = format!("A calendar by which [`{kind}`] requests are made.");
        quote! {
            #[doc = #doc]
            #vis type #name = #krate::ScheduleObject<#ident>;
        }
    });
    quote! {
        #[doc = #doc]
        #vis type #name = #krate::RequestObject<#ident>;

        #schedule
        #checked

        #[automatically_derived]
        impl #krate::Request for #ident {
            type Target = #of;
            const KIND: &'static str = #kind;
            #ttl
            #scheduled
        }
    }
}
