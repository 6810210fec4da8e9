//! The lock file is the graph as declared, and a change that takes something from stored objects is refused until it is
//! accepted.

#![cfg(feature = "source")]

use std::path::Path;

use expect_test::expect;
use okt_core::Graph;
use okt_syntax::lock::{Difference, compare, compare_texts, write};
use okt_syntax::source::{Cfg, Source};

const LIFE: &str = r#"
#[lifecycle_graph]
#[deadline(Failed, after = "1h", over(Start, Stopping))]
enum Life {
    #[entry]
    #[child(Running)]
    Start,

    #[rest]
    #[was("Up")]
    #[condition(Available)]
    #[trigger(Failed, after = "30m", on_error(attempts = 3))]
    #[child(r#Loop)]
    #[child(Stopping)]
    Running,

    #[visit]
    #[child(Running)]
    Loop,

    #[child(End)]
    Stopping,

    #[rest(hold, idle)]
    #[no_route(Running, Loop, reason = "its disk is lost")]
    #[child(Stopping)]
    Failed,

    #[leaf(idle)]
    End,
}
"#;

/// Calls a function with the graph of a declaration that has no mistakes.
fn with<T>(code: &str, look: impl FnMut(&Graph<'_>) -> T) -> T {
    let source = Source::parse(code, &Cfg::new([])).expect("it is Rust");
    assert_eq!(source.mistakes(), []);
    source.graphs(look).pop().expect("a graph")
}

fn lock() -> String {
    with(LIFE, |graph| write("", &[graph.into()]))
}

/// Returns what differs between the lock file and changed code.
fn differences(lock: &str, code: &str) -> Vec<Difference> {
    with(code, |graph| {
        compare(lock, &[graph.into()]).expect("it is readable")
    })
}

/// Returns the differences as text; an exclamation mark marks a refused change.
fn changes(lock: &str, code: &str) -> String {
    let lines = differences(lock, code).into_iter().map(|it| {
        let refused = if it.is_refused() { "! " } else { "" };
        format!("{refused}{}\n", it.change)
    });
    lines.collect()
}

#[test]
fn the_file_is_the_declaration_without_docs() {
    expect![[r#"
        //! The lifecycle graphs of this operator: objects in a cluster may be stored in any of these states.
        //!
        //! `cargo test` compares this file with the code, and `OKT_LOCK=write cargo test` writes it.
        //! To accept a change that takes something from stored objects, write below: `// accept <graph>: <change>: <why>`.

        #[lifecycle_graph]
        #[deadline(Failed, after = "1h", over(Start, Stopping))]
        enum Life {
            #[entry]
            #[child(Running)]
            Start,

            #[was("Up")]
            #[rest]
            #[condition("Available")]
            #[trigger(Failed, after = "30m", on_error(attempts = 3))]
            #[child(Loop)]
            #[child(Stopping)]
            Running,

            #[visit]
            #[child(Running)]
            Loop,

            #[child(End)]
            Stopping,

            #[rest(hold, idle)]
            #[no_route(Running, reason = "its disk is lost")]
            #[no_route(Loop, reason = "its disk is lost")]
            #[child(Stopping)]
            Failed,

            #[leaf(idle)]
            End,
        }
    "#]]
    .assert_eq(&lock());
}

#[test]
fn a_visit_has_arguments_in_the_file_but_not_their_type() {
    let code = LIFE.replace(
        "#[visit]",
        "#[visit(args = BTreeMap<String, u8>, result = u8)]\n    #[trigger(Failed, on_abort)]",
    );
    let lock = with(&code, |graph| write("", &[graph.into()]));
    let written = "    #[visit(args = _)]\n    #[trigger(Failed, on_abort)]\n";
    assert!(lock.contains(written), "{lock}");
    let others = code.replace("<String, u8>, result = u8", "<u8, u8>");
    assert_eq!(changes(&lock, &others), "");
    expect![[r"
        changed marks of `Loop`: visit, args, was visit
        added trigger `Loop → Failed`
    "]]
    .assert_eq(&changes(&self::lock(), &code));
}

#[test]
fn every_valid_graph_equals_its_lock() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui-tests/cases/pass");
    let cfg = Cfg::new([]);
    let mut graphs = 0;
    for entry in folder.read_dir().expect("the cases are there") {
        let path = entry.expect("the cases can be listed").path();
        let text = std::fs::read_to_string(&path).expect("a case can be read");
        let source = Source::parse(&text, &cfg).expect("a case is Rust");
        assert_eq!(source.mistakes(), [], "{}", path.display());
        let differences = source.graphs(|graph| {
            let lock = write("", &[graph.into()]);
            let again = Source::parse(&lock, &cfg).expect("a lock file is Rust");
            assert_eq!(again.mistakes(), [], "{lock}");
            compare(&lock, &[graph.into()]).expect("it is readable")
        });
        graphs += differences.len();
        assert_eq!(differences.concat(), [], "{}", path.display());
    }
    assert!(graphs > 5, "only {graphs} graphs");
}

#[test]
fn a_state_that_is_gone_is_refused_unless_another_has_been_it() {
    let renamed = LIFE.replace("Stopping", "Leaving");
    expect![[r"
        ! removed state `Stopping`
        removed child `Running → Stopping`
        removed child `Failed → Stopping`
        changed last child of `Running`: `Leaving`, was `Stopping`
        changed last child of `Failed`: `Leaving`, was `Stopping`
        added state `Leaving`
        added child `Running → Leaving`
        added child `Failed → Leaving`
    "]]
    .assert_eq(&changes(&lock(), &renamed));
    let has_been = renamed.replace("    Leaving,", "    #[was(\"Stopping\")]\n    Leaving,");
    expect![[r"
        changed name of the state `Leaving`, was `Stopping`
    "]]
    .assert_eq(&changes(&lock(), &has_been));
    let forgotten = LIFE.replace("    #[was(\"Up\")]\n", "");
    assert_eq!(
        changes(&lock(), &forgotten),
        "! removed former name `Up` of `Running`\n"
    );
}

#[test]
fn a_route_that_vanishes_is_refused_and_a_longer_one_is_reported() {
    let refused = LIFE.replace("Running, Loop, reason", "Running, Loop, End, reason");
    let refused = refused.replace(
        "    #[child(End)]\n    Stopping,",
        "    #[no_transit]\n    #[child(End)]\n    Stopping,",
    );
    let refused = refused.replace(
        "    #[rest]\n",
        "    #[rest]\n    #[no_route(End, reason = \"stop it first\")]\n",
    );
    expect![[r"
        ! removed route `Running → End`
        ! removed route `Failed → End`
        changed marks of `Stopping`: no_transit, was none
    "]]
    .assert_eq(&changes(&lock(), &refused));
    let longer = LIFE.replace(
        "    #[child(End)]\n    Stopping,",
        "    #[child(Cleaning)]\n    Stopping,\n\n    #[child(End)]\n    Cleaning,",
    );
    expect![[r"
        removed child `Stopping → End`
        changed last child of `Stopping`: `Cleaning`, was `End`
        changed route `Running → End`: 3 transitions, was 2
        changed route `Failed → End`: 3 transitions, was 2
        added state `Cleaning`
        added child `Stopping → Cleaning`
    "]]
    .assert_eq(&changes(&lock(), &longer));
}

#[test]
fn other_changes_are_reported() {
    let code = LIFE
        .replace("after = \"30m\", on_error(attempts = 3)", "after = \"10m\"")
        .replace("#[condition(Available)]", "#[condition(Reachable)]")
        .replace("    #[visit]\n", "    #[rest]\n");
    expect![[r"
        ! removed condition `Available`
        changed marks of `Loop`: rest, was visit
        changed trigger `Running → Failed`: after 10m, was after 30m or on 3 errors
        added condition `Reachable`
    "]]
    .assert_eq(&changes(&lock(), &code));
}

#[test]
fn an_accepted_change_is_written_with_its_reason() {
    let code = LIFE.replace("    #[was(\"Up\")]\n", "");
    let line = differences(&lock(), &code)[0].line();
    assert_eq!(
        line,
        "// accept Life: removed former name `Up` of `Running`: "
    );
    let without_reason = format!("{}{line}\n", lock());
    assert!(differences(&without_reason, &code)[0].is_refused());
    let accepted = format!("{}{line}no release had it\n", lock());
    let difference = &differences(&accepted, &code)[0];
    assert_eq!(difference.accepted.as_deref(), Some("no release had it"));
    assert!(!difference.is_refused());
    let written = with(&code, |graph| write(&accepted, &[graph.into()]));
    assert_eq!(differences(&written, &code), []);
    assert!(
        written.contains(
            "\n// accept Life: removed former name `Up` of `Running`: no release had it\n"
        )
    );
}

#[test]
fn graphs_come_and_go() {
    let other = LIFE.replace("enum Life", "enum Other");
    let both = with(LIFE, |life| {
        with(&other, |other| write("", &[life.into(), other.into()]))
    });
    assert_eq!(changes(&both, LIFE), "! removed graph\n");
    assert_eq!(changes("", LIFE), "added graph\n");
}

#[test]
fn the_error_of_an_unreadable_file_has_its_place() {
    let wrong = with(LIFE, |graph| {
        compare("enum {", &[graph.into()]).expect_err("no Rust")
    });
    assert_eq!(wrong.at, 5..5);
    let unknown = lock().replace("#[child(End)]", "#[child(Edn)]");
    let unknown = with(LIFE, |graph| {
        compare(&unknown, &[graph.into()]).expect_err("no state")
    });
    assert_eq!(
        unknown.message,
        "no variant named `Edn` found for enum `Life`"
    );
}

#[test]
fn parts_of_a_spec_are_written_as_code_and_compared() {
    let code = LIFE
        .replace("#[lifecycle_graph]", "#[lifecycle_graph(spec(Spec))]")
        .replace(
            "#[trigger(Failed, after",
            "#[trigger(Stopping, on_change(r#type, disk.r#move, major()))]\n#[trigger(Failed, after",
        );
    let lock = with(&code, |graph| write("", &[graph.into()]));
    let parts = "on_change(r#type, disk.r#move, major())";
    assert!(lock.contains(parts), "{lock}");
    assert_eq!(changes(&lock, &code), "");
    let fewer = code.replace(
        "on_change(r#type, disk.r#move, major())",
        "on_change(r#type)",
    );
    expect![[r"
        changed trigger `Running → Stopping`: on change of type, was on change of type, disk.move, major()
    "]].assert_eq(&changes(&lock, &fewer));
}

#[test]
fn each_version_of_a_kind_is_compared_with_itself() {
    let renamed = LIFE
        .replace("#[child(Running)]\n    Start", "#[child(Awake)]\n    Start")
        .replace("#[was(\"Up\")]", "#[was(\"Running\")]")
        .replace("    Running,", "    Awake,")
        .replace("Failed, after = \"30m\"", "Failed, after = \"20m\"")
        .replace("#[child(Running)]\n    Loop", "#[child(Awake)]\n    Loop")
        .replace("#[no_route(Running,", "#[no_route(Awake,");
    // A text and not a file: as `cargo okt diff` has it.
    let code =
        |first: &str, second: &str| format!("mod v1alpha1 {{ {first} }} mod v1 {{ {second} }}");
    let lines = |old: &str, new: &str| {
        let differences = compare_texts(old, new).expect("they are readable");
        let lines = differences.into_iter().map(|it| {
            let refused = if it.is_refused() { "! " } else { "" };
            format!("{refused}{}: {}\n", it.graph, it.change)
        });
        lines.collect::<String>()
    };
    let both = code(LIFE, &renamed);
    assert_eq!(lines(&both, &both), "");
    expect![[r"
        v1::Life: changed trigger `Awake → Failed`: after 25m or on 3 errors, was after 20m or on 3 errors
    "]]
    .assert_eq(&lines(&both, &both.replace("20m", "25m")));
    expect![[r"
        ! v1alpha1::Life: removed graph
    "]]
    .assert_eq(&lines(&both, &format!("mod v1 {{ {renamed} }}")));
    // From before there were versions.
    expect![[r"
        v1alpha1::Life: added graph
        v1::Life: added graph
    "]]
    .assert_eq(&lines(LIFE, &both));
    let gone = LIFE.replace("    #[was(\"Up\")]\n", "");
    expect![[r"
        ! Life: removed former name `Up` of `Running`
        v1alpha1::Life: added graph
    "]]
    .assert_eq(&lines(LIFE, &format!("mod v1alpha1 {{ {gone} }}")));
}
