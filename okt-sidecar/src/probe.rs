//! The probe: observes the application with a command or a request, and interprets the answer.
//!
//! Its result appears in the status of an object, so it quotes only the text that is meant for that. The log at level
//! `debug` has the whole text.

use std::future::pending;
use std::time::Duration;

use okt_agent::wire::{Seen, Sighting};
use tokio::time::Instant;

use super::command::{Command, Cut, OutputStream};
use super::config::{Asks, Meaning, Method, Probe};
use super::http::{Http, shown};
use super::is_state;
use super::launch::Launcher;
use super::notes::Notes;

/// How much of an answer is read, in bytes.
const LONGEST_ANSWER: usize = 4 * 1024;

/// The grace period of a probe that has to end.
const GRACE: Duration = Duration::from_secs(1);

impl Probe {
    /// Observes once. `environment` is for a command.
    pub(crate) async fn observe(
        &self,
        launcher: &Launcher,
        http: &Http,
        notes: &Notes,
        environment: &[(String, String)],
    ) -> Sighting {
        match &self.asks {
            Asks::Command { .. } => self.run(launcher, notes, environment).await,
            Asks::Http { .. } => self.ask(http).await,
        }
        .unwrap_or_else(Sighting::unreachable)
    }

    async fn run(
        &self,
        launcher: &Launcher,
        notes: &Notes,
        environment: &[(String, String)],
    ) -> Result<Sighting, String> {
        let Asks::Command { command, exits } = &self.asks else {
            return Err("the probe is no command".to_owned());
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let command = Command {
            words: command,
            around: &self.around,
            environment,
            grace: GRACE,
            deadline: Instant::now() + self.timeout,
        };
        let note = async |identity| {
            // A probe ends by itself in time, so a full disk must not stop observations.
            if let Err(error) = notes.write("probe", &identity) {
                tracing::warn!(%error, "cannot note down the probe");
            }
            Ok(())
        };
        let ended = command.run(launcher, note, pending(), |stream, piece| {
            let kept = match stream {
                OutputStream::Out => &mut out,
                OutputStream::Err => &mut err,
            };
            let room = LONGEST_ANSWER - kept.len();
            kept.extend_from_slice(&piece[..piece.len().min(room)]);
        });
        let ended = ended
            .await
            .map_err(|error| format!("the probe cannot be run: {error}"))?;
        notes.remove("probe");
        if ended.cut == Some(Cut::TimedOut) {
            return Err(format!("the probe took longer than {:?}", self.timeout));
        }
        let code = ended
            .status
            .code()
            .and_then(|code| u16::try_from(code).ok());
        match code {
            Some(code) if exits.contains_key(&code) => Ok(meant(&exits[&code])),
            Some(0) if exits.is_empty() => read(&out),
            _ => {
                let said = first_line(if err.is_empty() { &out } else { &err });
                let how = super::exit::how(ended.status);
                tracing::debug!(said, "the probe {how}");
                Err(format!("the probe {how}"))
            }
        }
    }

    async fn ask(&self, http: &Http) -> Result<Sighting, String> {
        let Asks::Http { url, statuses } = &self.asks else {
            return Err("the probe is no request".to_owned());
        };
        let deadline = Instant::now() + self.timeout;
        let answered = http.ask(Method::Get, url, http::HeaderMap::new(), None, deadline);
        let answered = answered
            .await
            .map_err(|error| format!("{}: {error}", shown(url)))?;
        match statuses.get(&answered.status) {
            Some(answer) => Ok(meant(answer)),
            None if statuses.is_empty() && answered.status == 200 => read(&answered.body),
            None => Err(format!("{} answered {}", shown(url), answered.status)),
        }
    }
}

/// Returns the observation for an answer of the configuration.
pub(crate) fn meant(answer: &Meaning) -> Sighting {
    match answer {
        Meaning::Absent => Sighting::of(Seen::Absent),
        Meaning::In(state) => Sighting::in_state(state),
    }
}

/// Parses an answer: the first word is the state, and the others are events or, after `unreachable`, the cause.
pub(super) fn read(answer: &[u8]) -> Result<Sighting, String> {
    let line = first_line(answer);
    let mut words = line.split_whitespace();
    let sighting = match words.next() {
        None => return Err("the answer of the probe is empty".to_owned()),
        Some("absent") => Sighting::of(Seen::Absent),
        Some("unreachable") => {
            let why: Vec<_> = words.collect();
            return Ok(Sighting::unreachable(why.join(" ")));
        }
        Some(state) if is_state(state) => Sighting::in_state(state),
        Some(_) => {
            tracing::debug!(line, "the answer of the probe begins with no state");
            return Err("the answer of the probe begins with no state".to_owned());
        }
    };
    words.try_fold(sighting, |sighting, event| {
        if is_state(event) {
            return Ok(sighting.event(event));
        }
        tracing::debug!(line, "a word in the answer of the probe can be no state");
        Err("a word after the state in the answer of the probe is no event".to_owned())
    })
}

fn first_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_the_state_and_the_others_are_events() {
        let seen = read(b"Running Promoted Upgradable\nwhatever\n").expect("two events");
        assert_eq!(
            seen,
            Sighting::in_state("Running")
                .event("Promoted")
                .event("Upgradable")
        );
        assert_eq!(read(b" absent\n"), Ok(Sighting::of(Seen::Absent)));
        assert_eq!(
            read(b"unreachable  no route to the primary\n"),
            Ok(Sighting::unreachable("no route to the primary"))
        );
    }

    #[test]
    fn what_is_no_answer_is_reported_and_not_quoted() {
        let error = |text: &[u8]| read(text).expect_err("no answer");
        assert_eq!(error(b""), "the answer of the probe is empty");
        assert_eq!(
            error(b"FATAL: no such role"),
            "the answer of the probe begins with no state"
        );
        assert_eq!(
            error(b"Running since-monday"),
            "a word after the state in the answer of the probe is no event"
        );
    }
}
