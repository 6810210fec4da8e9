//! Tests of `cargo okt add`: what it writes, and that an error changes nothing. `.ci/packages` builds a project with a kind
//! of each form and an added state.

// `UPDATE_EXPECT` writes them.
#![allow(clippy::needless_raw_string_hashes)]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::expect;
use tempfile::TempDir;

fn okt(place: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-okt"))
        .arg("okt")
        .args(arguments.split_whitespace())
        .current_dir(place)
        .output()
        .expect("it starts")
}

#[track_caller]
fn succeeds(place: &Path, arguments: &str) {
    let output = okt(place, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Creates the project `orders` in a directory that is removed with the test.
fn project() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    succeeds(place.path(), "new orders --kind Order --group shop.io");
    let project = place.path().join("orders");
    (place, project)
}

/// Returns every file of a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read_to_string(&path).expect("text"));
        }
    }
    all
}

#[test]
fn a_kind_is_added_with_its_files_and_named_in_the_program() {
    let (_place, project) = project();
    succeeds(&project, "add kind Bucket --external");
    succeeds(&project, "add kind Type --pass --group other.io");
    let main = fs::read_to_string(project.join("src/main.rs")).expect("text");
    let (_, main) = main.split_once("\n\n").expect("two parts");
    expect![[r#"
        mod bucket;
        mod order;
        mod type_kind;

        use std::process::ExitCode;

        use okt::Program;

        #[tokio::main]
        async fn main() -> ExitCode {
            Program::new()
                .with(order::connect)
                .with(bucket::connect)
                .with(type_kind::connect)
                .main()
                .await
        }
    "#]]
    .assert_eq(main);
    let read = |file: &str| fs::read_to_string(project.join(file)).expect(file);
    assert!(read("src/bucket/resource.rs").contains("group = \"shop.io\""));
    assert!(read("src/type_kind/resource.rs").contains("group = \"other.io\""));
    assert!(read("src/bucket/tests.rs").contains("\"src/bucket/lifecycle.lock\""));
    assert!(
        read("examples/type_kind.yaml").starts_with("apiVersion: other.io/v1alpha1\nkind: Type\n")
    );
}

#[test]
fn a_state_is_added_with_its_edges_and_its_handler_and_comments_stay() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let source = "//! A life.

/* before */ #[okt::lifecycle_graph] // of it
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    // first
    #[entry] #[child(Up)] /* why */ Start, // to Up
    /// Runs.
    #[rest]
    // the way out
    #[child(End)]
    Up, // most of the time

    #[leaf(idle)]
    End
}

impl LifeHandler for It {
    async fn start(&self, _: &Action<Thing>) -> Result<life::AfterStart, Failure> { /* quick */ todo!() }

    // called often
    async fn up(&self, cx: &Action<Thing>) -> Result<life::AfterUp, Failure> {
        todo!()
    }
}
";
    for (line_end, name) in [("\n", "lines.rs"), ("\r\n", "windows.rs")] {
        let file = place.path().join(name);
        fs::write(&file, source.replace('\n', line_end)).expect("it is written");
        let add = |state: &str| succeeds(place.path(), &format!("add state {state} {name}"));
        add("Asleep --from Start,Up --to Up,End --rest");
        add("Backup --from Up --to Up --visit");
        add("Broken --from Up --to Start,End --hold");
        let text = fs::read_to_string(&file).expect("text");
        assert_eq!(
            text.matches("\r\n").count(),
            if line_end == "\n" {
                0
            } else {
                text.lines().count()
            }
        );
        expect![[r#"
            //! A life.

            /* before */ #[okt::lifecycle_graph] // of it
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            enum Life {
                // first
                #[entry] #[child(Asleep)] #[child(Up)] /* why */ Start, // to Up

                /// `Asleep`.
                #[rest]
                #[child(Up)]
                #[child(End)]
                Asleep,
                /// Runs.
                #[rest]
                // the way out
                #[child(Asleep)]
                #[child(Backup)]
                #[child(Broken)]
                #[child(End)]
                Up, // most of the time

                /// `Broken`.
                #[rest(hold, idle)]
                #[child(Start)]
                #[child(End)]
                Broken,

                /// `Backup`.
                #[visit]
                #[child(Up)]
                Backup,

                #[leaf(idle)]
                End
            }

            impl LifeHandler for It {
                async fn start(&self, _: &Action<Thing>) -> Result<life::AfterStart, Failure> { /* quick */ todo!() }

                async fn asleep(&self, _: &Action<Thing>) -> Result<life::AfterAsleep, Failure> {
                    Ok(life::AfterAsleep::Stay)
                }

                // called often
                async fn up(&self, cx: &Action<Thing>) -> Result<life::AfterUp, Failure> {
                    todo!()
                }

                async fn backup(&self, _: &Action<Thing>) -> Result<life::AfterBackup, Failure> {
                    Ok(life::AfterBackup::Next)
                }
            }
        "#]]
        .assert_eq(&text.replace("\r\n", "\n"));
    }
}

#[test]
fn a_step_of_a_pass_is_added() {
    let (_place, project) = project();
    succeeds(&project, "add kind Setting --pass");
    succeeds(&project, "add state Report --from Apply --to End");
    let operator = fs::read_to_string(project.join("src/setting/operator.rs")).expect("text");
    let step = "
    async fn report(&self, _: &Pass<Setting>) -> Result<Step<setting_pass::AfterReport>, Failure> {
        Ok(Step::done(setting_pass::AfterReport::Next))
    }
";
    assert!(operator.contains(step), "{operator}");
}

#[test]
fn an_invalid_argument_is_one_clear_error_and_changes_nothing() {
    let (_place, project) = project();
    succeeds(&project, "add kind Lot");
    let before = files(&project);
    let table = "
        state Running --from Starting --to Stopping --graph OrderState -> OrderState has a state Running already
        state Nap --from Running --to Stopping -> several graphs have these states; choose one with `--graph`: LotState, OrderState
        state Nap --from Running --to Stopping --graph Other -> Other is no graph with the states Running, Stopping;
        state Nap --from Walking --to Stopping -> no graph of this crate has the states Walking;
        state Nap --from Running --to Stopping --graph OrderStat -> OrderStat is no graph
        state Nap --from Gone --to Stopping --graph LotState -> Gone has no line `#[child(..)]`
        state nap --from Running --to Stopping -> `nap` is no name of a state
        state Self --from Running --to Stopping -> `Self` is no name of a state
        state A-B --from Running --to Stopping -> `A-B` is no name of a state
        state Nap --from Running --to Nap --graph LotState -> OKT010: `Nap` leads to itself
        state Nap --from Running --to Starting --rest --hold -> cannot be used with
        state Nap --from Running -> --to <STATES>
        state Nap --from Running --to Stopping nowhere.rs -> cannot read nowhere.rs
        kind Lot -> src/main.rs: it has a module `lot` already
        kind lot -> UpperCamelCase
        kind Program -> taken for something else
        kind Sale --pass --external -> cannot be used with
        kind Sale --agent -> cargo add okt --features sidecar
        kind Sale --group demo -> is no API group
    ";
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let (arguments, why) = line.trim().split_once(" -> ").expect("two parts");
        let output = okt(&project, &format!("add {arguments}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments}");
        assert!(
            error.starts_with("error: ") && error.contains(why),
            "{arguments}: {error}"
        );
        assert!(files(&project) == before, "{arguments} changed a file");
    }
}

#[test]
fn a_program_that_names_its_kinds_otherwise_is_not_changed() {
    let (_place, project) = project();
    let main = project.join("src/main.rs");
    for (text, why) in [
        (
            "fn main() { okt::main(connect) }\n",
            "write `mod lot;` and `.with(lot::connect)`",
        ),
        ("fn main() {\n", "src/main.rs: "),
    ] {
        fs::write(&main, text).expect("it is written");
        let before = files(&project);
        let output = okt(&project, "add kind Lot --group shop.io");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains(why) && error.ends_with("Nothing was changed.\n"),
            "{error}"
        );
        assert!(files(&project) == before, "{text}");
    }
    let output = okt(&project.join("src"), "add kind Lot");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("go into a project of `cargo okt new`"),
        "{error}"
    );
}

#[test]
fn features_decide_whether_a_state_is_there() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let file = place.path().join("main.rs");
    let source = "
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[entry]
    #[rest(idle)]
    #[cfg_attr(feature = \"spare\", child(Spare))]
    #[child(End)]
    Up,
    #[cfg(feature = \"spare\")]
    #[rest(idle)]
    #[child(Up)]
    #[child(End)]
    Spare,
    #[leaf(idle)]
    End,
}
";
    fs::write(&file, source).expect("it is written");
    let add = "add state Nap --from Spare --to End main.rs";
    let output = okt(place.path(), add);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("OKT004"), "{error}");
    assert_eq!(fs::read_to_string(&file).expect("text"), source);
    succeeds(place.path(), &format!("{add} --features spare"));
    let text = fs::read_to_string(&file).expect("text");
    assert!(
        text.contains("    #[child(Nap)]\n    #[child(End)]\n    Spare,"),
        "{text}"
    );
}

#[test]
fn a_state_goes_to_the_graph_that_has_its_states_of_several_with_one_name() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let version = |name: &str, stays: &str| {
        format!(
            "
mod {name} {{
    #[lifecycle_graph]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Tent {{
        #[entry]
        #[child({stays})]
        Pitching,

        #[rest(idle)]
        #[child(Gone)]
        {stays},

        #[leaf(idle)]
        Gone,
    }}

    impl TentHandler for {name} {{
        async fn pitching(&self, _: &Cx) -> Result<tent::AfterPitching, Failure> {{
            todo!()
        }}
    }}
}}
"
        )
    };
    let (old, new) = (version("v1", "Up"), version("v2", "Pitched"));
    let file = place.path().join("tents.rs");
    let both = format!("{old}{new}");
    fs::write(&file, &both).expect("it is written");
    succeeds(
        place.path(),
        "add state Lent --from Pitched --to Gone tents.rs",
    );
    let text = fs::read_to_string(&file).expect("text");
    let rest = text.strip_prefix(&old).expect("the other version stays");
    assert_eq!(rest.matches("Lent").count(), 5, "{rest}");

    fs::write(&file, &both).expect("it is written");
    let add = "add state Lent --from Pitching --to Gone tents.rs";
    let output = okt(place.path(), add);
    let error = String::from_utf8_lossy(&output.stderr);
    let choice = "choose one with `--graph`: v1::Tent, v2::Tent";
    assert!(error.contains(choice), "{error}");
    succeeds(place.path(), &format!("{add} --graph v1::Tent"));
    let text = fs::read_to_string(&file).expect("text");
    assert!(text.ends_with(&new) && text.contains("Lent"), "{text}");
}

#[test]
fn a_comment_stays_with_what_it_stands_beside_and_a_keyword_becomes_raw() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let file = place.path().join("life.rs");
    let source = "#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    #[leaf(idle)]
    End, /* the end */
    #[entry]
    #[rest]
    #[child(End)]
    Up // why
}

impl LifeHandler for It {
    async fn end<'a>(&'a self, _: &'a Cx) -> Result<life::AfterEnd, Failure> {}

    async fn up(&self, _: &Cx) -> Result<life::AfterUp, Failure> {
        todo!()
    } // up
}
";
    fs::write(&file, source).expect("it is written");
    succeeds(place.path(), "add state Move --from Up --to End life.rs");
    succeeds(place.path(), "add state Gen --from Up --to End life.rs");
    let text = fs::read_to_string(&file).expect("text");
    for part in [
        "    End, /* the end */\n    #[entry]\n",
        "    #[child(Move)]\n    #[child(Gen)]\n    #[child(End)]\n    Up, // why\n\n",
        "    } // up\n\n    async fn r#gen(&self, _: &Cx) -> Result<life::AfterGen, Failure> {",
        "    async fn r#move(&self, _: &Cx)",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn a_module_that_is_there_is_not_declared_again() {
    let (_place, project) = project();
    fs::create_dir(project.join("src/lot")).expect("a directory");
    fs::write(project.join("src/lot/mod.rs"), "").expect("it is written");
    let before = files(&project);
    let output = okt(&project, "add kind Lot");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("src/lot is there already"), "{error}");
    let main = project.join("src/main.rs");
    let text = fs::read_to_string(&main).expect("text");
    fs::write(&main, format!("{text}mod sale {{}}\n")).expect("it is written");
    let output = okt(&project, "add kind Sale");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("it has a module `sale` already"), "{error}");
    fs::write(&main, &text).expect("it is written");
    assert!(files(&project) == before, "nothing is changed");
    succeeds(&project, "add kind Bin");
    assert!(project.join("src/bin_kind.rs").exists() && !project.join("src/bin").exists());
}

#[test]
fn a_module_that_would_be_a_keyword_has_another_name() {
    let (_place, project) = project();
    succeeds(&project, "add kind Gen");
    assert!(project.join("src/gen_kind.rs").exists());
}

#[test]
fn a_changed_file_keeps_its_permissions_and_a_link_stays_one() {
    let (_place, project) = project();
    let link = project.join("src/order/resource.rs");
    let target = project.join("elsewhere.rs");
    fs::rename(&link, &target).expect("it is moved");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    fs::set_permissions(&target, Permissions::from_mode(0o600)).expect("its owner may");
    let add = "add state Extra --from Running --to Stopping";
    succeeds(&project, add);
    assert!(link.is_symlink());
    let text = fs::read_to_string(&target).expect("text");
    assert!(text.contains("Extra,"), "{text}");
    let mode = fs::metadata(&target)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    fs::set_permissions(&target, Permissions::from_mode(0o444)).expect("its owner may");
    let before = files(&project);
    let output = okt(&project, &add.replace("Extra", "Other"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("resource.rs: it is read-only"), "{error}");
    assert!(
        files(&project) == before,
        "nothing is changed, and nothing is left"
    );
}

#[test]
fn what_is_said_fits_the_form_of_the_kind() {
    for (form, from, to, said) in [
        ("--agent", "Running", "Gone", "in the file of the agent"),
        ("--external", "Present", "Gone", "in the file of the agent"),
        ("", "Running", "Gone", "writes the lock file"),
        ("--pass", "Check", "End", "an arm for it.\n"),
    ] {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        succeeds(place.path(), &format!("new orders --kind Order {form}"));
        let project = place.path().join("orders");
        let output = okt(
            &project,
            &format!("add state Extra --from {from} --to {to}"),
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(said), "{form}: {text}");
    }
}

#[test]
fn a_mistake_of_the_program_is_what_is_reported() {
    let (_place, project) = project();
    let main = project.join("src/main.rs");
    let text = fs::read_to_string(&main).expect("text");
    fs::write(&main, format!("{text}fn {{\n")).expect("it is written");
    let output = okt(&project, "add kind Lot");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: src/main.rs: "), "{error}");
}
