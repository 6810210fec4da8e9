//! Reads the configuration of the application's process.

use std::time::Duration;

use rustix::process::Signal;

use super::parts::{answer, command, surroundings};
use crate::config::fields::Field;
use crate::config::{ApplicationConfig, CommandEnvironment, OnExit, Recognise, StopStep};
use crate::recognise::PidFile;

pub(super) fn application(field: &Field<'_>) -> Option<ApplicationConfig> {
    let mut fields = field.fields()?;
    let around = surroundings(&mut fields);
    let start = fields.take("command").map(|it| command(&it, &around));
    let stop = fields.take("stop").map(|it| stop(&it));
    let found = fields.take("recognise").map(|it| recognise(&it, &around));
    let choices = [("stop", OnExit::Stop), ("leave", OnExit::Leave)];
    let on_exit = fields.optional("onExit", |it| it.choice(&choices));
    let down = fields.optional("down", answer);
    if start.is_none() && found.is_none() {
        fields.wrong(
            "`command` (the agent starts it) or `recognise` (another program starts it) is missing",
        );
    }
    fields.end();
    let term = StopStep {
        signal: Signal::TERM,
        wait: Duration::from_secs(20),
    };
    Some(ApplicationConfig {
        command: start.flatten(),
        around,
        stop: stop.unwrap_or_else(|| vec![term]),
        recognise: found.flatten(),
        on_exit,
        down,
    })
}

fn stop(field: &Field<'_>) -> Vec<StopStep> {
    let step = |step: &Field<'_>| {
        let mut fields = step.fields()?;
        let signal = fields.required("signal", "such as TERM", |it| it.choice(&SIGNALS));
        let what = "how long it is given before the next one";
        let wait = fields.required("wait", what, Field::time);
        fields.end();
        Some(StopStep {
            signal: signal?,
            wait: wait?,
        })
    };
    field.list().iter().filter_map(step).collect()
}

fn recognise(field: &Field<'_>, around: &CommandEnvironment) -> Option<Recognise> {
    let mut fields = field.fields()?;
    let [file, name, directory, program] =
        ["pidFile", "name", "directory", "command"].map(|name| fields.take(name));
    if file.is_some() == program.is_some() {
        fields.wrong("expected one of `pidFile` and `command`");
    }
    if file.is_some() != name.is_some() {
        fields.wrong(
            "`pidFile` and `name` (of the process, as `ps -o comm` has it) go together: a file may name a process \
             that is another one by now",
        );
    }
    if let (Some(directory), None) = (&directory, &file) {
        directory.wrong("`directory` goes with `pidFile` and `name`");
    }
    fields.end();
    if let (Some(file), Some(name)) = (file, name) {
        return Some(Recognise::PidFile(PidFile {
            path: file.path()?,
            name: name.text()?,
            directory: directory.map_or(Some(None), |it| it.path().map(Some))?,
        }));
    }
    command(&program?, around).map(Recognise::Command)
}

/// The signals that may stop an application. KILL always comes last and is not listed.
const SIGNALS: [(&str, Signal); 6] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];
