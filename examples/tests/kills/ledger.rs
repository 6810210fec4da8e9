//! The logs of the servers and their agents, in order, and which rules they broke.

use std::collections::{BTreeMap, BTreeSet};

/// The work that was done, by id.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The last attempt that began.
    begun: BTreeMap<String, u64>,
    /// The work that succeeded; logged once the result is on the disk of the agent.
    done: BTreeSet<String>,
    /// The backups that were made, not found, and how many documents each held.
    made: BTreeMap<String, u64>,
    /// The existing backups: the notebook and the id.
    there: BTreeSet<(String, String)>,
}

impl Ledger {
    /// Reads the log of all processes of one directory.
    pub(crate) fn read(&mut self, log: &str, broken: &mut Vec<String>) {
        for line in log.lines() {
            let id = field(line, "id").to_owned();
            if line.contains(" work begins ") {
                self.begins(&id, line, broken);
            } else if line.contains(" ended ") && field(line, "phase") == "Succeeded" {
                if !self.done.insert(id.clone()) {
                    broken.push(format!("{id} was done twice"));
                }
            } else if line.contains(" backup made ") {
                let documents = field(line, "documents").parse().unwrap_or(u64::MAX);
                if self.made.insert(id.clone(), documents).is_some() {
                    broken.push(format!("the backup {id} was made twice"));
                }
            } else if line.contains("panicked") {
                broken.push(format!("a server panicked: {line}"));
            }
        }
    }

    /// Checks that an attempt begins once or is resumed by the next agent, and that no finished work begins again.
    fn begins(&mut self, id: &str, line: &str, broken: &mut Vec<String>) {
        let attempt = field(line, "attempt").parse().unwrap_or(0);
        let resumed = field(line, "resumed") == "true";
        if self.done.contains(id) {
            broken.push(format!("{id} was done and is begun again"));
        }
        if let Some(last) = self.begun.insert(id.to_owned(), attempt)
            && (attempt < last || attempt == last && !resumed)
        {
            broken.push(format!("attempt {attempt} of {id} came after {last}"));
        }
    }

    /// Records an existing and complete backup.
    pub(crate) fn found(&mut self, name: &str, id: &str, documents: u64, broken: &mut Vec<String>) {
        if !self.there.insert((name.to_owned(), id.to_owned())) {
            broken.push(format!("the backup {id} is in two places"));
        }
        if !self.begun.contains_key(id) {
            broken.push(format!("nobody began the backup {id} of {name}"));
        }
        if let Some(made) = self.made.get(id)
            && *made != documents
        {
            broken.push(format!("the backup {id} holds {documents}, not {made}"));
        }
    }

    /// Returns whether there is a backup of this id.
    pub(crate) fn holds(&self, name: &str, id: &str) -> bool {
        self.there.contains(&(name.to_owned(), id.to_owned()))
    }

    /// Returns how many pieces of work were done.
    pub(crate) fn done(&self) -> usize {
        self.done.len()
    }
}

/// Returns a field of a log line, or an empty text.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let mut words = line.split_whitespace();
    words
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_default()
}
