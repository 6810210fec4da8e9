//! The logs of the agents of one server, and the check that each piece of work was done once and is accounted for.

use std::collections::BTreeSet;

/// The work that the agents logged, in order.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// The ids whose work was begun.
    begun: BTreeSet<String>,
    /// The ids whose work succeeded; logged once the result is on the disk of the agent.
    done: BTreeSet<String>,
    /// The work under way at the current agent.
    under_way: Option<String>,
}

impl Record {
    /// Reads the log of all agents.
    ///
    /// # Errors
    ///
    /// The first line that breaks a rule.
    pub(crate) fn read(log: &str) -> Result<Self, String> {
        let mut record = Self::default();
        for line in log.lines() {
            record.take(line).map_err(|why| format!("{why}: {line}"))?;
        }
        if let Some(id) = &record.under_way {
            return Err(format!("{id} was begun, and nobody says how it ended"));
        }
        Ok(record)
    }

    /// Returns how many pieces of work were done.
    pub(crate) fn done(&self) -> usize {
        self.done.len()
    }

    /// Checks that an agent logged the begin of each of these ids.
    pub(crate) fn accounts_for<'a>(
        &self,
        mut ids: impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        ids.find(|id| !self.begun.contains(*id))
            .map_or(Ok(()), |id| {
                Err(format!("no agent says that it began {id}"))
            })
    }

    fn take(&mut self, line: &str) -> Result<(), &'static str> {
        let id = field(line, "id").to_owned();
        if line.contains(": listens ") {
            // A new agent: it resumes the work of the one before, unless that work ended when the old agent was killed.
            self.under_way = None;
        } else if line.contains(": begins ") || line.contains("has left an attempt") {
            if self.done.contains(&id) {
                return Err("done, and begun again");
            }
            if (self.under_way.as_ref()).is_some_and(|under_way| *under_way != id) {
                return Err("begun before the work under way has ended");
            }
            self.begun.insert(id.clone());
            self.under_way = Some(id);
        } else if line.contains(": ended ") {
            self.under_way = None;
            if field(line, "phase") == "Succeeded" && !self.done.insert(id) {
                return Err("done twice");
            }
        } else if line.contains("panicked") {
            return Err("an agent panicked");
        }
        Ok(())
    }
}

/// Returns a field of a log line, or an empty text.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let mut words = line.split_whitespace();
    words
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_default()
}

#[test]
fn work_that_is_done_twice_or_lost_is_detected() {
    let fine = "INFO a: begins id=1 state=\"Start\" attempt=1\nINFO a: ended id=1 phase=Succeeded\n\
        INFO a: begins id=2 attempt=1\nINFO a: listens place=b\nINFO a: an agent that is gone has left an attempt id=2\n";
    let ended = "INFO a: ended id=2 phase=Succeeded\n";
    let record = Record::read(&format!("{fine}{ended}")).expect("all of it is as it should be");
    assert_eq!(record.done(), 2);
    assert!(record.accounts_for(["1", "2"].into_iter()).is_ok());
    assert!(record.accounts_for(["3"].into_iter()).is_err());
    for wrong in [
        "",
        "INFO a: begins id=3 attempt=1\n",
        "INFO a: ended id=1 phase=Succeeded\n",
        "INFO a: ended id=2 phase=Succeeded\nINFO a: begins id=1 attempt=2\n",
        "INFO a: ended id=2 phase=Succeeded\nINFO a: begins id=3 attempt=1\nINFO a: begins id=4 attempt=1\n",
    ] {
        assert!(Record::read(&format!("{fine}{wrong}")).is_err(), "{wrong}");
    }
}
