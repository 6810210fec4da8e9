//! Logs of `run` on standard error, and spans for traces: their format, and their level, which may change while the
//! program runs.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(feature = "otel")]
use okt_telemetry::receivers::collector::Traces;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use super::command_line::{LOG, LogFormat, RunOptions, filter};
use super::config;

/// How often the file is read.
const POLL: Duration = Duration::from_secs(5);

/// Starts to log and to take spans, unless the program has already set up logging. Follows the option `log` in the file,
/// if there is one, until the result is dropped.
pub(super) fn start(
    asked: &RunOptions,
    file: Option<PathBuf>,
    #[cfg(feature = "otel")] traces: Option<&Traces>,
) -> Option<AbortOnDropHandle<()>> {
    let (filter, level) = reload::Layer::new(EnvFilter::new(&asked.log));
    let all = asked.log.contains(CLIENT);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match asked.log_format {
        LogFormat::Text => {
            let lines = fmt::layer().with_writer(|| OneLine(std::io::stderr()));
            Box::new(lines.with_ansi(std::io::stderr().is_terminal()))
        }
        LogFormat::Json => {
            let lines = fmt::layer().with_writer(std::io::stderr);
            Box::new(lines.json().flatten_event(true))
        }
    };
    let filter = filter.and(filter_fn(move |event| all || !quotes_answers(event)));
    let logs = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "otel")]
    let logs = logs.with(traces.map(Traces::layer));
    if logs.try_init().is_err() {
        #[cfg(feature = "otel")]
        if traces.is_some() {
            tracing::warn!(
                "the program has set up logging itself: add `Traces::layer` there for --otlp-endpoint"
            );
        }
        return None;
    }
    let follow = follow(file?, level, asked.log.clone());
    Some(AbortOnDropHandle::new(tokio::spawn(follow)))
}

/// The target of the events of kube's client.
const CLIENT: &str = "kube_client";

/// Returns whether an event may quote an answer: where one does not decode, kube's client logs all of it, with secrets and
/// the specs of others.
fn quotes_answers(event: &Metadata<'_>) -> bool {
    event.is_event() && event.target().starts_with(CLIENT) && *event.level() == Level::WARN
}

/// Writes each event on one line: applications and users choose texts in it, which could otherwise look like other events.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    /// Takes an event, which comes as a whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = event.strip_suffix(b"\n").unwrap_or(event);
        let mut text = Vec::with_capacity(event.len());
        for byte in line {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'\r' => text.extend(b"\\r"),
                byte => text.push(*byte),
            }
        }
        if line.len() < event.len() {
            text.push(b'\n');
        }
        self.0.write_all(&text)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Changes what is logged whenever the file does.
async fn follow(file: PathBuf, level: reload::Handle<EnvFilter, Registry>, mut now: String) {
    let mut refused = None;
    loop {
        tokio::time::sleep(POLL).await;
        match next(&file) {
            Ok((text, _)) if text == now => refused = None,
            Ok((text, filter)) => {
                // It fails only if nothing logs any more.
                let _ = level.reload(filter);
                tracing::info!("logs `{text}` from now on");
                (now, refused) = (text, None);
            }
            Err(why) if refused.as_ref() == Some(&why) => {}
            Err(why) => {
                tracing::warn!("logs `{now}` as before: {why}");
                refused = Some(why);
            }
        }
    }
}

/// Reads what is to be logged.
///
/// # Errors
///
/// If the file cannot be read, or its option cannot.
fn next(file: &Path) -> Result<(String, EnvFilter), String> {
    let text = config::text_of(file, "log")?.unwrap_or_else(|| LOG.to_owned());
    match filter(&text) {
        Ok(filter) => Ok((text, filter)),
        Err(error) => Err(format!("{}: `log`: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_kubes_client_cannot_decode_is_not_logged() {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let file = log.reopen().expect("a file");
        let filter = EnvFilter::new("info").and(filter_fn(|event| !quotes_answers(event)));
        let lines = fmt::layer().with_writer(std::sync::Mutex::new(file));
        let logs = tracing_subscriber::registry().with(lines.with_filter(filter));
        tracing::subscriber::with_default(logs, || {
            tracing::warn!(target: "kube_client::client", "a password");
            tracing::error!(target: "kube_client::client", "no connection");
            tracing::warn!("another");
        });
        let text = std::fs::read_to_string(log.path()).expect("a text");
        assert!(!text.contains("a password"), "{text}");
        assert!(
            text.contains("no connection") && text.contains("another"),
            "{text}"
        );
    }

    #[test]
    fn an_event_is_one_line_whatever_its_texts_are() {
        let mut log = OneLine(Vec::new());
        log.write_all(b"INFO it said: a\nERROR forged\r\n\n")
            .expect("it is written");
        log.write_all(b"INFO the next one\n")
            .expect("it is written");
        assert_eq!(
            String::from_utf8_lossy(&log.0),
            "INFO it said: a\\nERROR forged\\r\\n\nINFO the next one\n"
        );
    }
}
