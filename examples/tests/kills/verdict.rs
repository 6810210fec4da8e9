//! What must hold at rest: nothing is lost, done twice or left over.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use okt::sidecar::id_at_agent;
use okt_examples::notes::open_backup;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::history::{number, text};
use crate::ledger::Ledger;
use crate::stage::Stage;
use crate::user::{DESIRED, Diary, NAME, STATE};

/// Returns why a notebook is not at rest in its desired state, if it is not.
pub(crate) fn unrest(notebook: &Value) -> Option<String> {
    let name = text(notebook, NAME);
    let desired = match text(notebook, DESIRED) {
        "" => "Running",
        desired => desired,
    };
    let state = text(notebook, STATE);
    let conditions = notebook["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|conditions| {
        (conditions.iter()).any(|one| one["type"] == "Ready" && one["status"] == "True")
    });
    let generation = number(notebook, "/metadata/generation");
    let seen = number(notebook, "/status/observedGeneration");
    // A leaf is left only for a visit that was asked for there; an older one stays pending.
    let asked = number(notebook, "/status/lifecycle/visit/transition");
    let is_too_old = state == "End" && asked < number(notebook, "/status/lifecycle/transition");
    let visiting = text(notebook, "/status/lifecycle/visit/outcome") == "Pending" && !is_too_old;
    let leaving = !notebook["metadata"]["deletionTimestamp"].is_null();
    let rests = state == desired && ready && seen == generation && !visiting && !leaving;
    (!rests).then(|| {
        format!(
            "{name} is in {state}, desired {desired}: {}",
            notebook["status"]
        )
    })
}

/// The data directory of an existing or a deleted notebook.
struct Store {
    name: String,
    place: PathBuf,
    database: Connection,
}

/// The data that the servers have stored.
pub(crate) struct Kept {
    stores: Vec<Store>,
}

impl Kept {
    /// Opens all data, archived or not.
    pub(crate) fn observe(stage: &Stage) -> Self {
        let archive = stage.keeper.archive();
        let archived = entries(&archive).into_iter().filter_map(|entry| {
            let (name, _) = entry.split_once('-')?;
            Some((name.to_owned(), archive.join(&entry)))
        });
        let here = (stage.names().into_iter()).map(|name| (name.clone(), stage.data().join(name)));
        let stores = archived.chain(here).map(|(name, place)| {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let database = Connection::open_with_flags(place.join("notes.db"), flags);
            let database = database.expect("a database that can be read");
            Store {
                name,
                place,
                database,
            }
        });
        Self {
            stores: stores.collect(),
        }
    }

    /// Reports documents that are missing, duplicated, altered or unknown; returns how many documents there are.
    pub(crate) fn documents(&self, diary: &Diary, broken: &mut Vec<String>) -> u64 {
        let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        let mut count = 0;
        for store in &self.stores {
            let mut rows = store.database.prepare("SELECT title, body FROM documents");
            let rows = rows.as_mut().expect("a table of documents");
            let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
            for row in rows.expect("rows") {
                let (title, body) = row.expect("a document");
                let place = found.entry((store.name.clone(), title)).or_default();
                place.push(body);
                count += 1;
            }
        }
        for kept in &diary.kept {
            let place = (kept.name.clone(), kept.title.clone());
            match found.remove(&place).as_deref() {
                Some([body]) if *body == kept.body => {}
                None => broken.push(format!("the document {:?} is lost", kept.title)),
                Some(bodies) => broken.push(format!(
                    "the document {:?} is there {} times, or altered",
                    kept.title,
                    bodies.len()
                )),
            }
        }
        for ((name, title), bodies) in found {
            // Without an answer the user does not know whether the document was stored.
            if bodies.len() > 1 || !diary.unheard.contains(&title) {
                broken.push(format!("{name} has a document {title:?} that nobody wrote"));
            }
        }
        count
    }

    /// Reports work that began again after its end, took effect twice, or was not done although the record says so;
    /// returns how many pieces of work were done.
    pub(crate) fn actions(&self, backups: &[(String, String)], broken: &mut Vec<String>) -> usize {
        let mut ledger = Ledger::default();
        for store in &self.stores {
            let log = fs::read_to_string(store.place.join("notes.log")).unwrap_or_default();
            ledger.read(&log, broken);
            for file in entries(&store.place.join("backups")) {
                let Some(id) = file.strip_suffix(".db") else {
                    continue;
                };
                match open_backup(&store.place.join("backups").join(&file)) {
                    Ok(documents) => ledger.found(&store.name, id, documents, broken),
                    Err(error) => {
                        broken.push(format!("the backup {id} of {}: {error}", store.name));
                    }
                }
            }
        }
        for (name, id) in backups {
            if !ledger.holds(name, &id_at_agent(id)) {
                broken.push(format!(
                    "{name} was on its way after {id}, and there is no backup"
                ));
            }
        }
        ledger.done()
    }
}

/// Returns the leftovers of deleted notebooks, except what their graph archives.
pub(crate) fn left(stage: &Stage) -> Vec<String> {
    let mut left: Vec<_> = (stage.servers().into_iter())
        .map(|server| format!("the server {server:?} still runs"))
        .collect();
    let data = stage.names().into_iter();
    left.extend(data.map(|name| format!("the directory {name} is still there")));
    let archive = stage.keeper.archive();
    for entry in entries(&archive) {
        let odd = entries(&archive.join(&entry)).into_iter();
        // A server that is killed and not started again leaves what it had begun.
        let is_kept = |file: &str| matches!(file, "notes.db" | "notes.log" | "backups");
        let is_begun = |file: &str| file.ends_with(".partial") || file.starts_with("agent.sock.");
        let odd = odd.filter(|file| !is_kept(file) && !is_begun(file));
        left.extend(odd.map(|file| format!("{file} is still in the archive {entry}")));
        if entry.starts_with('.') {
            left.push(format!("{entry} is still in the archive"));
        }
        let backups = entries(&archive.join(&entry).join("backups")).into_iter();
        let odd = backups.filter(|file| {
            Path::new(file).extension() != Some(OsStr::new("db")) && !is_begun(file)
        });
        left.extend(odd.map(|file| format!("{file} is among the backups")));
    }
    left
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
