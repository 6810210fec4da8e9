//! Journals that are torn or damaged, and failing writes.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;

use super::super::memory::{AgentMemory, MemoryChange};
use super::{Journal, JournalError, JournalStep, Opened};
use crate::wire::Fence;

fn epoch(epoch: u64) -> MemoryChange {
    MemoryChange {
        fence: Some(Fence {
            epoch,
            transition: 1,
            run: 1,
            recorded_at: Timestamp::UNIX_EPOCH,
        }),
        ..MemoryChange::default()
    }
}

fn open(directory: &Path) -> (Journal, AgentMemory) {
    match Journal::open(directory, Box::new(|_| Ok(()))).unwrap() {
        Opened::Usable(journal, memory) => (journal, memory),
        Opened::Damaged(_, damage) => panic!("{damage}"),
    }
}

fn damage(directory: &Path) -> String {
    match Journal::open(directory, Box::new(|_| Ok(()))).unwrap() {
        Opened::Usable(..) => panic!("the damaged journal was used"),
        Opened::Damaged(_, damage) => damage.to_string(),
    }
}

/// Writes a journal with one line for each of these epochs, after a first line.
fn written(directory: &Path, epochs: &[u64]) {
    let (mut journal, mut memory) = open(directory);
    for each in epochs {
        journal.add(&memory, &epoch(*each)).unwrap();
        memory.apply(epoch(*each));
    }
}

#[test]
fn added_changes_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[1, 2, 3]);
    assert_eq!(open(directory.path()).1.fence.epoch, 3);
    written(directory.path(), &[4]);
    assert_eq!(open(directory.path()).1.fence.epoch, 4);
}

#[test]
fn the_directory_of_a_new_journal_is_on_disk_before_it_is_used() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("new");
    let gate = |step| match step {
        JournalStep::SyncDirectory => Err(io::Error::other("no space left on the device")),
        _ => Ok(()),
    };
    let opened = Journal::open(&directory, Box::new(gate));
    assert!(matches!(opened, Err(JournalError::Open { .. })));
    assert!(!directory.exists());
    open(&directory);
}

#[test]
fn two_agents_never_open_the_same_journal() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path());
    let second = Journal::open(directory.path(), Box::new(|_| Ok(())));
    assert!(matches!(second, Err(JournalError::Locked(_))));
    drop(first);
    open(directory.path());
}

#[test]
fn a_last_line_that_is_torn_anywhere_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[1, 2, 3]);
    let file = directory.path().join("journal");
    let whole = fs::read(&file).unwrap();
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    for end in last + 1..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        assert_eq!(open(directory.path()).1.fence.epoch, 2, "cut at {end}");
        // Zeros where the file is longer than the written data.
        let mut holes = whole[..end].to_vec();
        holes.resize(whole.len() - 1, 0);
        holes.push(b'\n');
        if end < whole.len() - 1 {
            fs::write(&file, &holes).unwrap();
            assert_eq!(open(directory.path()).1.fence.epoch, 2, "zeros from {end}");
        }
    }
}

#[test]
fn a_damaged_line_is_named_and_the_journal_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    written(directory.path(), &[1, 2, 3]);
    let file = directory.path().join("journal");
    let whole = fs::read(&file).unwrap();
    let mut line = 1;
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        fs::write(&file, &damaged).unwrap();
        if place < whole.len() - 1 {
            let text = damage(directory.path());
            let named = format!("{}:{line}: the line is damaged", file.display());
            assert!(text.starts_with(&named), "{text}");
        }
        line += usize::from(whole[place] == b'\n');
    }
    // Nor does it use lines of another version, whose meaning is unknown.
    let json = r#"{"later":1}"#;
    let sum = crc32fast::hash(json.as_bytes());
    let text = format!("{sum:08x} {json}\n");
    fs::write(&file, text).unwrap();
    assert!(damage(directory.path()).contains("another version wrote this line"));
}

#[test]
fn a_journal_is_rewritten_before_it_gets_long() {
    let directory = tempfile::tempdir().unwrap();
    let (mut journal, mut memory) = open(directory.path());
    let mut longest = 0;
    for each in 0..300 {
        // The lines are long, so that few are needed: each takes an `fsync`.
        let long = MemoryChange {
            forgotten: vec!["x".repeat(128).parse().unwrap(); 100],
            ..epoch(each)
        };
        journal.add(&memory, &long).unwrap();
        memory.apply(long);
        longest = longest.max(journal.length());
    }
    assert!(
        (super::COMPACT_FROM..2 * super::COMPACT_FROM).contains(&longest),
        "{longest}"
    );
    drop(journal);
    assert_eq!(open(directory.path()).1.fence.epoch, 299);
}

#[test]
fn a_write_that_fails_at_any_step_loses_no_confirmed_change() {
    for fault in 0..24 {
        let directory = tempfile::tempdir().unwrap();
        let steps = Arc::new(AtomicUsize::new(0));
        let gate = {
            let steps = Arc::clone(&steps);
            move |_: JournalStep| {
                if steps.fetch_add(1, Ordering::Relaxed) == fault {
                    return Err(io::Error::other("no space left on the device"));
                }
                Ok(())
            }
        };
        let Opened::Usable(mut journal, mut memory) =
            Journal::open(directory.path(), Box::new(gate)).unwrap()
        else {
            panic!("an empty journal is usable");
        };
        let mut failures = 0;
        for each in 1..8 {
            match journal.add(&memory, &epoch(each)) {
                Ok(()) => memory.apply(epoch(each)),
                Err(_) => failures += 1,
            }
        }
        assert!(failures <= 1, "one fault made {failures} writes fail");
        drop(journal);
        let (_, read) = open(directory.path());
        assert_eq!(read, memory, "fault at step {fault}");
    }
}
