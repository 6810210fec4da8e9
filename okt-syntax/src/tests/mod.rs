//! Tests the expansion, as text, of the files that the compiler tests compile.

mod fuzz;
#[path = "../../tests/common/pages.rs"]
mod pages;

use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Item, Meta, parse_quote};

use crate::{expand_with, graph_of, shim, spec};

#[test]
fn every_attribute() {
    let declared = parse_quote! {
        /// The life of a cache.
        #[lifecycle_graph(crate(okt_core))]
        #[deadline(Broken, after = "4h", over(Serving))]
        #[window(low_tide, states(Restoring, Flushing), needs = "30m")]
        pub enum Cache {
            /// Entries are read from disk; see [`Cache::Serving`].
            ///
            /// This can take an hour.
            #[entry]
            #[condition("cache.okt.dev/Filled", status = "Unknown", message = "still reading")]
            #[trigger(Broken, after = "1h30m", on_error(attempts = 5))]
            #[trigger(Gone, on_delete)]
            #[child(Serving)]
            Filling,

            #[rest]
            #[was("Ready")]
            #[condition(Serving, reason = "Warm")]
            #[trigger(Filling, on_change)]
            #[no_route(Gone, reason = "only deletion drains")]
            #[child(Restoring)]
            #[child(Flushing)]
            #[child(Draining)]
            Serving,

            #[visit(args = Restore, result = Vec<Restored>)]
            #[trigger(Broken, on_abort)]
            #[child(Serving)]
            Restoring,

            #[visit(args = super::Flush)]
            #[child(Serving)]
            Flushing,

            #[no_transit]
            #[child(Gone)]
            Draining,

            #[rest(hold, idle)]
            #[serde(rename = "Failed")]
            #[no_route(Serving, Restoring, Flushing, Gone, reason = "it is broken")]
            #[child(Draining)]
            Broken,

            #[leaf]
            Gone,
        }
    };
    expect_file!["../../snapshots/every_attribute.rs"].assert_eq(&expansion(&[declared]));
}

#[test]
fn lifecycle_spec() {
    expect_file!["../../snapshots/lifecycle_spec.rs"].assert_eq(&expansion(&items(&read(
        &folder_of_cases().join("pass/lifecycle_spec.rs"),
    ))));
}

#[test]
fn pass_graph() {
    let declared = parse_quote! {
        #[lifecycle_graph(pass, crate(okt_core))]
        pub enum BrokerPass {
            #[entry]
            #[trigger(Finalize, on_delete)]
            #[child(End)]
            Apply,

            #[condition(Released)]
            #[trigger(End, on_give_up)]
            #[child(End)]
            Finalize,

            #[leaf(idle)]
            End,
        }
    };
    expect_file!["../../snapshots/pass_graph.rs"].assert_eq(&expansion(&[declared]));
}

#[test]
fn two_expansions_are_equal() {
    for case in cases() {
        let expand = || -> Vec<String> {
            let items = items(&case);
            items.iter().map(|item| written(item).to_string()).collect()
        };
        assert_eq!(expand(), expand(), "{case}");
    }
}

#[test]
fn every_expansion_is_valid_rust() {
    for case in cases() {
        for item in items(&case) {
            let written = written(&item);
            let parsed: syn::Result<syn::File> = syn::parse2(written);
            assert!(parsed.is_ok(), "{case}: {:?}", parsed.err());
        }
    }
}

#[test]
fn wire_names_from_serde_are_checked() {
    let reported = errors_of(quote! {
        #[serde(rename_all = "kebab-case")]
        enum Life {
            #[entry]
            #[child(End)]
            BeingMade,
            #[leaf]
            #[serde(rename(serialize = "Over", deserialize = "Gone"))]
            End,
        }
    });
    expect![[r#"
        OKT020: the wire name `being-made` cannot be the reason of a condition
        help: use at most 63 ASCII letters, digits and `_`, beginning with a letter; `#[serde(rename = "..")]` gives the state another wire name
        more: `cargo okt explain OKT020`
        OKT014: a state is written and read by one name, here by `Over` and `Gone`
        help: use `rename = "Over"`
        more: `cargo okt explain OKT014`"#]]
    .assert_eq(&reported);
}

/// Returns the messages about a declaration, one per line.
fn errors_of(declaration: TokenStream) -> String {
    let code = expand_with(declaration, graph_of);
    let file: syn::File = syn::parse2(code).expect("an expansion is Rust");
    let messages = file.items.iter().filter_map(|item| match item {
        Item::Macro(item) => {
            let text: syn::LitStr = item.mac.parse_body().expect("an error has a text");
            Some(text.value())
        }
        _ => None,
    });
    messages.collect::<Vec<_>>().join("\n")
}

/// Returns the formatted expansion of some items.
fn expansion(items: &[Item]) -> String {
    let code: TokenStream = items.iter().map(written).collect();
    let file = syn::parse2(code).expect("an expansion is Rust");
    format!(
        "// What the macros write; renewed by `UPDATE_EXPECT=1 cargo test -p okt-syntax`.\n\n{}",
        prettyplease::unparse(&file)
    )
}

/// Returns every case of the compiler tests.
fn cases() -> Vec<String> {
    let pages = pages::pages().into_iter();
    let mut cases: Vec<String> = pages.map(|(_, page)| pages::wrong_program(&page)).collect();
    for folder in [
        "pass",
        "fail/attributes",
        "fail/handlers",
        "fail/spec",
        "fail/together",
    ] {
        let entries = folder_of_cases().join(folder).read_dir();
        let mut files: Vec<PathBuf> = entries
            .expect("the cases are there")
            .map(|entry| entry.expect("the cases can be listed").path())
            .filter(|path| path.extension().is_some_and(|it| it == "rs"))
            .collect();
        files.sort();
        cases.extend(files.iter().map(|file| read(file)));
    }
    assert!(cases.len() > 40, "only {} cases", cases.len());
    cases
}

fn read(case: &Path) -> String {
    std::fs::read_to_string(case).expect("a case can be read")
}

fn folder_of_cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/cases")
}

/// Returns the items of a program that use these macros, including those in modules.
fn items(text: &str) -> Vec<Item> {
    let file = syn::parse_file(text).expect("a case is Rust");
    let mut found = Vec::new();
    let mut items = file.items;
    items.reverse();
    while let Some(item) = items.pop() {
        match item {
            Item::Mod(module) => {
                let inner = module.content.into_iter().flat_map(|(_, items)| items);
                items.extend(inner.collect::<Vec<_>>().into_iter().rev());
            }
            item if attributes(&item).iter().any(is_ours) => found.push(item),
            _ => {}
        }
    }
    found
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Enum(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether an attribute is `#[lifecycle_graph]` or `#[derive(LifecycleSpec)]`.
fn is_ours(attr: &Attribute) -> bool {
    is_graph(attr) || attr.to_token_stream().to_string().contains("LifecycleSpec")
}

fn is_graph(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|last| last.ident == "lifecycle_graph")
}

/// Expands an item as rustc would.
fn written(item: &Item) -> TokenStream {
    let Some(attr) = attributes(item).iter().find(|attr| is_graph(attr)) else {
        return expand_with(item.to_token_stream(), spec::expand);
    };
    let args = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    let mut item = item.clone();
    match &mut item {
        Item::Enum(item) => item.attrs.retain(|attr| !is_graph(attr)),
        Item::Struct(item) => item.attrs.retain(|attr| !is_graph(attr)),
        Item::Fn(item) => {
            item.attrs.retain(|attr| !is_graph(attr));
            return shim::expand(&args, &item.to_token_stream());
        }
        _ => {}
    }
    expand_with(shim::expand(&args, &item.to_token_stream()), graph_of)
}
