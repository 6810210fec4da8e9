//! Tests with the real rust-analyzer: an editor finds, renames and completes every state that an attribute names.
//!
//! The graph is that of `ui-tests/cases/pass/every_attribute.rs`. The test finds the names of states in all of its
//! attributes, so it also tests each attribute that is added there.

mod editor;
mod life;
mod lsp;
mod source;

use std::collections::BTreeSet;
use std::ops::Range;

use editor::{Editor, Offer};
use life::{LIFE, doc, without_trait, wrong};
use source::{Name, Place, breaks_rule, edited, mentions, mistakes, names, rules};

/// The kind of completion of a state, as a number of the protocol.
///
/// rust-analyzer shows a variant in a pattern as a variable (`render/pattern.rs` in its crate `ide-completion`), and in
/// an expression as an enum member. The macro generates patterns, because in an expression rust-analyzer also offers
/// every function of the enum.
const VARIABLE: u64 = 6;
const CONSTANT: u64 = 21;

/// The beginning of what hover shows of the macro `compile_error`.
///
/// If a name in an attribute breaks a rule, the error has the span of the name. rust-analyzer shows the error at the word
/// `compile_error` of the generated code, while you type. So the word needs the span too, and rust-analyzer finds it
/// there, after the variant.
const ERROR: &str = "\n\n---\n\n```rust\ncore::macros::builtin\n```";

#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn go_to_definition_leads_to_the_variant() {
    at_each_name(|editor, text, name| {
        let variants = names(text).into_iter().filter(Name::is_variant);
        let variant = variants.filter(|variant| variant.state == name.state);
        let variant = variant.map(|variant| Some(variant.at));
        let error = breaks_rule(text, name).then_some(None);
        let expected: Vec<_> = variant.chain(error).collect();
        assert_eq!(editor.definitions(name.at.start), expected, "{name:?}");
    });
}

#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn hover_shows_the_variant_and_its_doc() {
    at_each_name(|editor, text, name| {
        let shown = editor.hover(name.at.start);
        let (shown, is_error) = match shown.split_once(ERROR) {
            Some((shown, _)) => (shown, true),
            None => (&*shown, false),
        };
        assert_eq!(is_error, breaks_rule(text, name), "{name:?}: {shown}");
        let variant = format!("\n```rust\nlife::Cache\n```\n\n```rust\n{} = ", name.state);
        assert!(shown.starts_with(&variant), "{name:?}: {shown}");
        assert_eq!(shown.matches("```rust").count(), 2, "{name:?}: {shown}");
        assert!(shown.ends_with(&doc(name)), "{name:?}: {shown}");
    });
}

#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn references_of_a_variant_are_every_attribute_and_every_use() {
    at_each_name(|editor, text, name| {
        let named = names(text).into_iter();
        let others = named.filter(|other| other.state == name.state && !other.is_variant());
        let others: Vec<Range<usize>> = others.map(|other| other.at).collect();
        assert_eq!(editor.references(name.at.start), others, "{name:?}");
    });
}

/// The names that the macro generates from the name of a state (`AfterFilling::Serving`, the method `serving`) stay as
/// they are, and rustc reports each use of the old ones. With the span of the name they would be renamed, but go to
/// definition would lead to each of them.
#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn rename_of_a_variant_changes_every_attribute_and_every_use() {
    const NEW: &str = "Renamed";
    at_each_name(|editor, text, name| {
        let edits = editor.rename(name.at.start, NEW);
        let same = names(text).into_iter();
        let same = same.filter(|other| other.state == name.state);
        let expected: Vec<_> = same.map(|other| (other.at, NEW.to_owned())).collect();
        assert_eq!(edits, expected, "{name:?}");
        let renamed = edited(text, &edits);
        assert_eq!(rules(&renamed), rules(text), "{name:?}: {renamed}");
    });
}

#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn completion_offers_exactly_the_states() {
    let Some(mut editor) = editor::open_or_skip() else {
        return;
    };
    let life = without_trait();
    assert_eq!(mistakes(&life), []);
    for name in mentions(&life) {
        editor.show(&life);
        let offers = editor.completions(name.at.start + 2);
        offers_states(&offers, &[], &format!("inside of {name:?}"));
        // The half-typed name itself is a mistake now.
        typed_offers_states(&mut editor, &life, &name, 2, &[]);
    }
}

#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn completion_offers_exactly_the_states_while_the_enum_has_errors() {
    let Some(mut editor) = editor::open_or_skip() else {
        return;
    };
    for wrong in wrong(&without_trait()) {
        for name in mentions(&wrong) {
            typed_offers_states(&mut editor, &wrong, &name, 2, &[]);
        }
    }
}

/// rust-analyzer offers constants in a pattern (`completions/pattern.rs` and `completions/flyimport.rs` in its crate
/// `ide-completion`): those of the imported traits, and those of other traits if their name contains the typed letters.
///
/// It offers variants alone only in an import. The macro generates no imports, because rustc reports an unknown name in an
/// import at the macro.
#[test]
#[ignore = "needs rust-analyzer; run with --include-ignored"]
fn completion_also_offers_the_constant_of_an_imported_trait_and_of_any_if_nothing_is_typed() {
    let Some(mut editor) = editor::open_or_skip() else {
        return;
    };
    let life = without_trait();
    for name in mentions(LIFE) {
        typed_offers_states(&mut editor, LIFE, &name, 2, &["GRAPH(as Lifecycle)"]);
    }
    for name in mentions(&life) {
        // rust-analyzer inserts a word in lower case where nothing is typed. Behind the first state of `#[no_route]` such a
        // word is an option.
        if life[..name.at.start].ends_with('(') {
            let constants = [
                "GRAPH(use okt_core::Lifecycle)",
                "STATE(use okt_core::Serves)",
            ];
            typed_offers_states(&mut editor, &life, &name, 0, &constants);
        }
    }
}

#[test]
fn the_graph_has_every_attribute_that_names_states() {
    assert_eq!(mistakes(LIFE), []);
    let places = mentions(LIFE).into_iter().map(|name| name.place);
    let places: BTreeSet<Place> = places.collect();
    let expected = ["child", "deadline", "no_route", "trigger"];
    let expected = expected.map(|word| Place::Attribute(word.to_owned()));
    assert_eq!(Vec::from_iter(places), expected);
    let variants = names(LIFE).into_iter().filter(Name::is_variant).count();
    assert_eq!(variants, 8);
}

/// Checks each state at its variant and at each attribute that names it, in the valid graph and in wrong ones.
fn at_each_name(check: impl Fn(&mut Editor, &str, &Name)) {
    let Some(mut editor) = editor::open_or_skip() else {
        return;
    };
    let mut texts = wrong(LIFE);
    texts.push(LIFE.to_owned());
    for text in texts {
        editor.show(&text);
        let named = names(&text).into_iter();
        for name in named.filter(|name| name.place != Place::Code) {
            check(&mut editor, &text, &name);
        }
    }
}

/// Checks that the states are offered where only the first letters of a name are typed, and that the offer of the state
/// completes the name.
fn typed_offers_states(
    editor: &mut Editor,
    text: &str,
    name: &Name,
    letters: usize,
    constants: &[&str],
) {
    let typed = name.state[..letters].to_owned();
    let what = format!("{typed:?} of {name:?}");
    let half = edited(text, &[(name.at.clone(), typed)]);
    assert_ne!(mistakes(&half), [], "{what}: {half}");
    editor.show(&half);
    let offers = editor.completions(name.at.start + letters);
    offers_states(&offers, constants, &what);
    let mut offers = offers.into_iter();
    let offer = offers.find(|offer| offer.label == name.state);
    let offer = offer.expect("each state is offered");
    assert_eq!(edited(&half, &[offer.edit]), text, "{what}");
}

/// Checks that the offers are the states, these constants, and nothing else.
fn offers_states(offers: &[Offer], constants: &[&str], what: &str) {
    let states = names(LIFE).into_iter().filter(Name::is_variant);
    let states = states.map(|name| (name.state, VARIABLE));
    let constants = constants.iter().map(|name| ((*name).to_owned(), CONSTANT));
    let expected: BTreeSet<(String, u64)> = states.chain(constants).collect();
    let offered = offers.iter().map(|offer| (offer.label.clone(), offer.kind));
    let offered: BTreeSet<(String, u64)> = offered.collect();
    assert_eq!(offered, expected, "{what}");
    assert_eq!(offers.len(), expected.len(), "{what}: {offers:?}");
}
