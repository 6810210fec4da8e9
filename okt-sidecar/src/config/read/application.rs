//! Reads the configuration of the application's process.

use std::time::Duration;

use rustix::process::Signal;

use super::ConfigReader;
use crate::config::fields::Field;
use crate::config::{ApplicationConfig, CommandEnvironment, OnExit, Recognise, StopStep};
use crate::recognise::PidFile;

impl ConfigReader {
    pub(super) fn application(&mut self, field: &Field<'_>) -> Option<ApplicationConfig> {
        let mut fields = field.fields(&mut self.complaints)?;
        let around = self.surroundings(&mut fields);
        let command = fields.take("command");
        let command = command.map(|field| self.command(&field, &around));
        let stop = fields.take("stop").map(|field| self.stop(&field));
        let recognise = fields
            .take("recognise")
            .map(|field| self.recognise(&field, &around));
        let on_exit = fields.take("onExit").and_then(|field| {
            let choices = [("stop", OnExit::Stop), ("leave", OnExit::Leave)];
            field.choice(&mut self.complaints, &choices)
        });
        let down = fields.take("down").and_then(|field| self.answer(&field));
        if command.is_none() && recognise.is_none() {
            let text = "`command` (the agent starts it) or `recognise` (another program starts it) is missing";
            fields.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        Some(ApplicationConfig {
            command: command.flatten(),
            around,
            stop: stop.unwrap_or_else(|| {
                vec![StopStep {
                    signal: Signal::TERM,
                    wait: Duration::from_secs(20),
                }]
            }),
            recognise: recognise.flatten(),
            on_exit,
            down,
        })
    }

    fn stop(&mut self, field: &Field<'_>) -> Vec<StopStep> {
        let steps = field.list(&mut self.complaints);
        let steps = (steps.iter()).filter_map(|step| {
            let mut fields = step.fields(&mut self.complaints)?;
            let signal = fields
                .need(&mut self.complaints, "signal", "such as TERM")
                .and_then(|field| field.choice(&mut self.complaints, &SIGNALS));
            let wait = fields
                .need(
                    &mut self.complaints,
                    "wait",
                    "how long it is given before the next one",
                )
                .and_then(|field| field.time(&mut self.complaints));
            fields.end(&mut self.complaints);
            Some(StopStep {
                signal: signal?,
                wait: wait?,
            })
        });
        steps.collect()
    }

    fn recognise(&mut self, field: &Field<'_>, around: &CommandEnvironment) -> Option<Recognise> {
        let mut fields = field.fields(&mut self.complaints)?;
        let file = fields.take("pidFile");
        let name = fields.take("name");
        let directory = fields.take("directory");
        let command = fields.take("command");
        if file.is_some() == command.is_some() {
            fields.wrong(
                &mut self.complaints,
                "expected one of `pidFile` and `command`",
            );
        }
        if file.is_some() != name.is_some() {
            let text = "`pidFile` and `name` (of the process, as `ps -o comm` has it) go together: a file may name a \
                        process that is another one by now";
            fields.wrong(&mut self.complaints, text);
        }
        if let Some(directory) = directory.as_ref().filter(|_| file.is_none()) {
            let text = "`directory` goes with `pidFile` and `name`";
            directory.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        match (file, name, command) {
            (Some(file), Some(name), _) => Some(Recognise::PidFile(PidFile {
                path: file.path(&mut self.complaints)?,
                name: name.text(&mut self.complaints)?,
                directory: match directory {
                    None => None,
                    Some(directory) => Some(directory.path(&mut self.complaints)?),
                },
            })),
            (_, _, Some(command)) => self.command(&command, around).map(Recognise::Command),
            (_, _, None) => None,
        }
    }
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
