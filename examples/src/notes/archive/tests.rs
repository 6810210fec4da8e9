//! The guarantees of an archive, wherever the move to it was interrupted.

use super::*;

const STEPS: [Step; 6] = [
    Step::Folded,
    Step::CopyBegun,
    Step::Copied,
    Step::Kept,
    Step::SetAside,
    Step::Removed,
];

fn prepared(root: &Path) -> Move {
    let data = root.join("data");
    fs::create_dir_all(data.join(BACKUPS)).expect("a directory");
    let store = Store::create(&data.join(DATABASE)).expect("a database");
    for title in ["a", "b", "c"] {
        store.insert(title, "text").expect("a document");
    }
    fs::write(data.join(BACKUPS).join("one.db"), "a backup").expect("a backup");
    Move::new(&data, "name", "id", &root.join("archive"))
}

fn interrupted(at: Step) -> impl Fn(Step) -> Result<(), Error> {
    move |step| {
        if step == at {
            Err(Error::Name {
                name: format!("{step:?}"),
            })
        } else {
            Ok(())
        }
    }
}

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .expect("a listing")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

#[test]
fn an_archive_interrupted_after_any_step_is_finished_by_the_next_call() {
    for means in [Means::Rename, Means::Copy] {
        for at in STEPS {
            let root = tempfile::tempdir().expect("a directory");
            let archive = prepared(root.path());
            // Not every step occurs with both means; a step that does not occur interrupts nothing.
            let _ = archive.run(means, interrupted(at));

            for _ in 0..2 {
                let documents = archive
                    .run(means, |_| Ok(()))
                    .expect("the rest of the work");
                assert_eq!(documents, 3, "{means:?} after {at:?}");
                assert_eq!(entries(root.path()), ["archive"], "{means:?} after {at:?}");
                assert_eq!(
                    entries(&root.path().join("archive")),
                    ["name-id"],
                    "{means:?} after {at:?}"
                );
                assert_eq!(
                    entries(&archive.kept),
                    [BACKUPS, DATABASE],
                    "{means:?} after {at:?}"
                );
            }
        }
    }
}

#[test]
fn a_copy_reaches_every_step_in_order() {
    let root = tempfile::tempdir().expect("a directory");
    let steps = std::cell::RefCell::new(Vec::new());
    let record = |step| {
        steps.borrow_mut().push(step);
        Ok(())
    };
    prepared(root.path())
        .run(Means::Copy, record)
        .expect("an archive");
    assert_eq!(*steps.borrow(), STEPS);
}

#[test]
fn a_directory_prepared_again_survives_a_late_repetition() {
    let root = tempfile::tempdir().expect("a directory");
    let archive = prepared(root.path());
    archive.run(Means::Rename, |_| Ok(())).expect("an archive");
    prepared(root.path());

    assert_eq!(
        archive
            .run(Means::Rename, |_| Ok(()))
            .expect("the same archive"),
        3
    );

    assert_eq!(
        Store::open(&archive.data.join(DATABASE))
            .and_then(|store| store.count())
            .expect("documents"),
        3
    );
}

#[test]
fn a_directory_in_use_is_not_archived() {
    let root = tempfile::tempdir().expect("a directory");
    let archive = prepared(root.path());
    let _server = Lock::take(&archive.data).expect("a lock");

    let error = archive
        .run(Means::Rename, |_| Ok(()))
        .expect_err("a served directory");

    assert!(matches!(error, Error::InUse { .. }), "{error}");
}
