//! The probe: observes the application with a command or a request, and interprets the answer.
//!
//! Its result appears in the status of an object, so it quotes only the text that is meant for that. The log at level
//! `debug` has the whole text.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use http::{HeaderMap, Method};
use okt_agent::wire::{Seen, Sighting};
use tokio::time::Instant;
use url::Url;

use super::command::{Command, Cut, OutputStream};
use super::config::{Asks, Meaning, Probe};
use super::exit::how;
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
        let deadline = Instant::now() + self.timeout;
        let observed = match &self.asks {
            Asks::Command { command, exits } => {
                let command = Command {
                    words: command,
                    around: &self.around,
                    environment,
                    grace: GRACE,
                    deadline,
                };
                self.run(&command, exits, launcher, notes).await
            }
            Asks::Http { url, statuses } => request(http, url, statuses, deadline).await,
        };
        observed.unwrap_or_else(Sighting::unreachable)
    }

    async fn run(
        &self,
        command: &Command<'_>,
        exits: &BTreeMap<u16, Meaning>,
        launcher: &Launcher,
        notes: &Notes,
    ) -> Result<Sighting, String> {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let note = async |identity| {
            // A probe ends by itself in time, so a full disk must not stop observations.
            if let Err(error) = notes.write("probe", &identity) {
                tracing::warn!(%error, "cannot note down the probe");
            }
            Ok(())
        };
        let running = command.run(launcher, note, pending(), |stream, piece| {
            let kept = match stream {
                OutputStream::Out => &mut out,
                OutputStream::Err => &mut err,
            };
            let room = LONGEST_ANSWER - kept.len();
            kept.extend_from_slice(&piece[..piece.len().min(room)]);
        });
        let cannot_run = |error| format!("the probe cannot be run: {error}");
        let ended = running.await.map_err(cannot_run)?;
        notes.remove("probe");
        if ended.cut == Some(Cut::TimedOut) {
            return Err(format!("the probe took longer than {:?}", self.timeout));
        }
        let code = ended.status.code().unwrap_or(-1);
        match u16::try_from(code).ok().and_then(|code| exits.get(&code)) {
            Some(answer) => Ok(meant(answer)),
            None if exits.is_empty() && code == 0 => read(&out),
            None => {
                let output = first_line(if err.is_empty() { &out } else { &err });
                let how = how(ended.status);
                tracing::debug!(output, "the probe {how}");
                Err(format!("the probe {how}"))
            }
        }
    }
}

async fn request(
    http: &Http,
    url: &Url,
    statuses: &BTreeMap<u16, Meaning>,
    deadline: Instant,
) -> Result<Sighting, String> {
    let name = shown(url);
    let answer = http.ask(Method::GET, url, HeaderMap::new(), None, deadline);
    let answered = answer.await.map_err(|error| format!("{name}: {error}"))?;
    match statuses.get(&answered.status) {
        Some(answer) => Ok(meant(answer)),
        None if statuses.is_empty() && answered.status == 200 => read(&answered.body),
        None => Err(format!("{name} answered {}", answered.status)),
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
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or("");
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
