//! From the tree of a configuration file to what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_saphyr::Location;

use super::complaints::{Complaints, ConfigError};
use super::fields::{Field, Fields, is_state};
use super::tree::{Node, Place};
use super::{
    Answer, Application, Asks, Call, Config, Job, Limits, Listen, Machine, Method, OnExit, Probe,
    Recognise, Step, StopStep, Surroundings, Tls, Verb, machine,
};

/// A configuration is written by hand: what is longer is another file.
const LONGEST_FILE: u64 = 1024 * 1024;

pub(super) fn read(file: &Path, machine: Machine) -> Result<Config, ConfigError> {
    let text = fs::metadata(file).and_then(|about| {
        if about.len() > LONGEST_FILE {
            return Err(std::io::Error::other("it is longer than 1 MiB"));
        }
        fs::read_to_string(file)
    });
    match text {
        Ok(text) => parse(file, &text, machine),
        Err(error) => {
            let mut complaints = Complaints::default();
            complaints.add(
                Place::default(),
                "",
                format!("cannot read the file: {error}"),
            );
            complaints.finish(file, None)
        }
    }
}

pub(super) fn parse(file: &Path, text: &str, machine: Machine) -> Result<Config, ConfigError> {
    let mut reader = Reader {
        complaints: Complaints::default(),
        machine,
    };
    let config = match serde_saphyr::from_str::<Node>(text) {
        Ok(node) => reader.config(&Field::whole(&node)),
        Err(error) => {
            let place = error
                .location()
                .map(|location: Location| Place::from(location));
            let text = error.without_snippet().to_string();
            // The place stands in front already, and the policy is no choice of the user's.
            let text = (text.split_once(" at line ")).map_or(text.as_str(), |(what, _)| what);
            let text = (text.split_once(", set Dup")).map_or(text, |(what, _)| what);
            reader.complaints.add(place.unwrap_or_default(), "", text);
            None
        }
    };
    reader.complaints.finish(file, config)
}

struct Reader {
    complaints: Complaints,
    machine: Machine,
}

impl Reader {
    fn config(&mut self, whole: &Field<'_>) -> Option<Config> {
        let mut fields = whole.fields(&mut self.complaints)?;
        let listen = self.listen(&mut fields);
        let token_file = self.file(fields.take("tokenFile"));
        let tls = fields.take("tls").and_then(|field| self.tls(&field));
        let data = fields
            .need(
                &mut self.complaints,
                "data",
                "a directory of the agent's own, that outlives it",
            )
            .and_then(|field| field.path(&mut self.complaints));
        let scratch = (fields.take("scratch")).and_then(|field| field.path(&mut self.complaints));
        let graph = fields
            .take("graph")
            .and_then(|field| field.text(&mut self.complaints));
        let limits = (fields.take("limits")).and_then(|field| self.limits(&field));
        let application = fields.take("application");
        let manages = application.is_some();
        let application = application.and_then(|field| self.application(&field));
        let probe = fields
            .need(
                &mut self.complaints,
                "probe",
                "how the agent sees where the application is",
            )
            .and_then(|field| self.probe(&field));
        let states = fields.take("states");
        let states = states.map_or_else(BTreeMap::new, |field| {
            self.states(&field, manages, application.as_ref())
        });
        if let (Some(Listen::Unix { .. }), Some(_)) = (&listen, &tls) {
            fields.wrong(
                &mut self.complaints,
                "`tls` is of no use on a Unix socket: leave it out",
            );
        }
        if let Some(Listen::Tcp(address)) = &listen
            && !address.ip().to_canonical().is_loopback()
            && token_file.is_none()
        {
            let text = format!(
                "`tokenFile` is missing: whoever reaches {address} could give orders; listen on 127.0.0.1 or \
                 unix:/path otherwise"
            );
            fields.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        let data = data?;
        Some(Config {
            listen: listen?,
            token_file,
            tls,
            scratch: scratch.unwrap_or_else(|| data.join("scratch")),
            data,
            graph,
            limits: limits.unwrap_or_default(),
            application,
            probe: probe?,
            states,
        })
    }

    fn listen(&mut self, fields: &mut Fields<'_>) -> Option<Listen> {
        let what = "such as 127.0.0.1:8470 or unix:/run/okt/agent.sock";
        let field = fields.need(&mut self.complaints, "listen", what);
        let mode = fields.take("socketMode");
        let field = field?;
        let text = field.text(&mut self.complaints)?;
        let Some(path) = text.strip_prefix("unix:") else {
            if let Some(mode) = mode {
                mode.wrong(&mut self.complaints, "only a Unix socket has a mode");
            }
            let address = text.parse::<SocketAddr>().ok();
            if address.is_none() {
                field.wrong(
                    &mut self.complaints,
                    format!("{text:?} is no address, {what}"),
                );
            }
            return address.map(Listen::Tcp);
        };
        let path = PathBuf::from(path);
        // Linux has 108 bytes for it, with the NUL at the end.
        if !path.is_absolute() || path.as_os_str().len() > 107 {
            let text = "the path of a socket begins with / and is 107 bytes long at most";
            field.wrong(&mut self.complaints, text);
        }
        let mode = mode.map_or(Some(0o600), |field| {
            let text = field.text(&mut self.complaints)?;
            let mode = u32::from_str_radix(text.trim_start_matches("0o"), 8).ok();
            let mode = mode.filter(|mode| *mode <= 0o777);
            if mode.is_none() {
                field.wrong(
                    &mut self.complaints,
                    format!("{text:?} is no mode such as \"0660\""),
                );
            }
            mode
        })?;
        Some(Listen::Unix { path, mode })
    }

    fn tls(&mut self, field: &Field<'_>) -> Option<Tls> {
        let mut fields = field.fields(&mut self.complaints)?;
        let certificate = fields.need(&mut self.complaints, "certificate", "a file of PEM");
        let key = fields.need(&mut self.complaints, "key", "a file of PEM");
        fields.end(&mut self.complaints);
        Some(Tls {
            certificate: self.file(certificate)?,
            key: self.file(key)?,
        })
    }

    fn limits(&mut self, field: &Field<'_>) -> Option<Limits> {
        let mut fields = field.fields(&mut self.complaints)?;
        let mut number = |reader: &mut Self, name, from, to| {
            let number = fields
                .take(name)?
                .number(&mut reader.complaints, from, to)?;
            usize::try_from(number).ok()
        };
        let connections = number(self, "connections", 1, 10_000);
        let output = number(self, "outputBytes", 1024, 16 * 1024 * 1024);
        let stopping = fields
            .take("stopping")
            .and_then(|it| it.time(&mut self.complaints));
        fields.end(&mut self.complaints);
        Some(Limits {
            connections,
            output,
            stopping,
        })
    }

    fn application(&mut self, field: &Field<'_>) -> Option<Application> {
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
            let text =
                "`command` (the agent runs it) or `recognise` (somebody else does) is missing";
            fields.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        Some(Application {
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

    fn recognise(&mut self, field: &Field<'_>, around: &Surroundings) -> Option<Recognise> {
        let mut fields = field.fields(&mut self.complaints)?;
        let file = fields.take("pidFile");
        let name = fields.take("name");
        let command = fields.take("command");
        if file.is_some() == command.is_some() {
            fields.wrong(
                &mut self.complaints,
                "one of `pidFile` and `command` is wanted here",
            );
        }
        if file.is_some() != name.is_some() {
            let text = "`pidFile` and `name` (of the process, as `ps -o comm` has it) go together: a file may name a \
                        process that is another one by now";
            fields.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        match (file, name, command) {
            (Some(file), Some(name), _) => Some(Recognise::PidFile {
                file: file.path(&mut self.complaints)?,
                name: name.text(&mut self.complaints)?,
            }),
            (_, _, Some(command)) => self.command(&command, around).map(Recognise::Command),
            (_, _, None) => None,
        }
    }

    fn probe(&mut self, field: &Field<'_>) -> Option<Probe> {
        let mut fields = field.fields(&mut self.complaints)?;
        let around = self.surroundings(&mut fields);
        let command = fields.take("command");
        let http = fields.take("http");
        let exits = fields.take("exits");
        let statuses = fields.take("statuses");
        let every = fields
            .take("every")
            .and_then(|field| field.time(&mut self.complaints));
        let timeout = fields
            .take("timeout")
            .and_then(|field| field.time(&mut self.complaints));
        let asks = match (command, http) {
            (Some(command), None) => {
                if let Some(field) = statuses {
                    field.wrong(
                        &mut self.complaints,
                        "a command has no statuses but `exits`",
                    );
                }
                let exits = exits
                    .map(|field| self.answers(&field, 0, 255))
                    .unwrap_or_default();
                (self.command(&command, &around)).map(|command| Asks::Command { command, exits })
            }
            (None, Some(http)) => {
                if let Some(field) = exits {
                    field.wrong(
                        &mut self.complaints,
                        "a request has no exits but `statuses`",
                    );
                }
                let statuses = statuses.map(|field| self.answers(&field, 100, 599));
                let statuses = statuses.unwrap_or_default();
                self.url(&http).map(|url| Asks::Http { url, statuses })
            }
            (Some(_), Some(_)) | (None, None) => {
                let text = "one of `command` and `http` (a URL) is wanted here";
                fields.wrong(&mut self.complaints, text);
                None
            }
        };
        fields.end(&mut self.complaints);
        Some(Probe {
            asks: asks?,
            around,
            every: every.unwrap_or(Duration::from_secs(2)),
            timeout: timeout.unwrap_or(Duration::from_secs(5)),
        })
    }

    fn answers(&mut self, field: &Field<'_>, from: u16, to: u16) -> BTreeMap<u16, Answer> {
        let entries = field.entries(&mut self.complaints);
        let answers = entries.into_iter().filter_map(|(name, place, field)| {
            let number = name
                .parse()
                .ok()
                .filter(|number| (from..=to).contains(number));
            if number.is_none() {
                let text = format!("a number from {from} to {to} is wanted here");
                self.complaints.add(place, &field.key, text);
            }
            Some((number?, self.answer(&field)?))
        });
        answers.collect()
    }

    fn answer(&mut self, field: &Field<'_>) -> Option<Answer> {
        match field.text(&mut self.complaints)?.as_str() {
            "absent" => Some(Answer::Absent),
            name if is_state(name) => Some(Answer::In(name.to_owned())),
            name => {
                let text = format!("{name:?} is neither a state such as Running nor \"absent\"");
                field.wrong(&mut self.complaints, text);
                None
            }
        }
    }

    fn states(
        &mut self,
        field: &Field<'_>,
        manages: bool,
        application: Option<&Application>,
    ) -> BTreeMap<String, Job> {
        let entries = field.entries(&mut self.complaints);
        let states = entries.into_iter().filter_map(|(name, place, field)| {
            if !is_state(name) {
                let text = "states have names such as Servicing, as they stand in the graph";
                self.complaints.add(place, &field.key, text);
            }
            Some((name.to_owned(), self.job(&field, manages, application)?))
        });
        states.collect()
    }

    fn job(
        &mut self,
        field: &Field<'_>,
        manages: bool,
        application: Option<&Application>,
    ) -> Option<Job> {
        let mut fields = field.fields(&mut self.complaints)?;
        let around = self.surroundings(&mut fields);
        let list = fields.take("steps");
        let single = self.step(&mut fields, &around, manages);
        let timeout_field = fields.take("timeout");
        let timeout = (timeout_field.as_ref()).and_then(|field| field.time(&mut self.complaints));
        let timeout = timeout.unwrap_or(Duration::from_mins(10));
        let grace = fields
            .take("grace")
            .and_then(|field| field.time(&mut self.complaints));
        let repeatable = (fields.take("repeatable")).and_then(|it| it.flag(&mut self.complaints));
        let until = fields
            .take("until")
            .and_then(|field| field.state(&mut self.complaints));
        let permanent = fields.take("permanent");
        let permanent = permanent
            .map(|field| self.numbers(&field, 1, 255))
            .unwrap_or_default();
        let steps = match (list, single) {
            (Some(list), None) => self.steps(&list, &around, manages),
            (None, Some(step)) => vec![step?],
            (Some(_), Some(_)) => {
                let text = "`steps` stands alone: put the rest into the list";
                fields.wrong(&mut self.complaints, text);
                return None;
            }
            (None, None) => {
                let text = "what is to be done is missing: one of `command`, `http`, `application`, `steps`";
                fields.wrong(&mut self.complaints, text);
                Vec::new()
            }
        };
        let stops =
            (steps.iter()).any(|it| matches!(it, Step::Application(Verb::Stop | Verb::Restart)));
        let stopping: Duration = (application.iter().flat_map(|it| &it.stop))
            .map(|step| step.wait)
            .sum();
        if stops && stopping >= timeout {
            let at = timeout_field.as_ref().unwrap_or(field);
            let text = format!(
                "{timeout:?} is shorter than what `application.stop` may take, {stopping:?}: it would never come \
                 to the end of its list"
            );
            at.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        // Starting what runs, and stopping what does not run, is no work.
        let harmless = !steps.is_empty()
            && (steps.iter()).all(|it| matches!(it, Step::Application(Verb::Start | Verb::Stop)));
        Some(Job {
            repeatable: repeatable.unwrap_or(harmless),
            steps,
            around,
            until,
            timeout,
            grace: grace.unwrap_or(Duration::from_secs(10)),
            permanent: permanent.into_iter().map(i32::from).collect(),
        })
    }

    fn steps(&mut self, list: &Field<'_>, around: &Surroundings, manages: bool) -> Vec<Step> {
        let steps = list.list(&mut self.complaints);
        let found = steps.iter().filter_map(|field| {
            let mut fields = field.fields(&mut self.complaints)?;
            let step = self.step(&mut fields, around, manages);
            if step.is_none() {
                let text = "one of `command`, `http`, `application` is wanted here";
                fields.wrong(&mut self.complaints, text);
            }
            fields.end(&mut self.complaints);
            step.flatten()
        });
        found.collect()
    }

    /// None: there is none. Some(None): there is one, and it is wrong.
    #[expect(
        clippy::option_option,
        reason = "both are told apart by what is said of them"
    )]
    fn step(
        &mut self,
        fields: &mut Fields<'_>,
        around: &Surroundings,
        manages: bool,
    ) -> Option<Option<Step>> {
        let found = ["command", "http", "application"].map(|name| fields.take(name));
        if found.iter().flatten().count() > 1 {
            let text = "only one of `command`, `http`, `application` may stand here; `steps` is a list of them";
            fields.wrong(&mut self.complaints, text);
            return Some(None);
        }
        let [command, http, application] = found;
        if let Some(field) = command {
            return Some(self.command(&field, around).map(Step::Command));
        }
        if let Some(field) = http {
            return Some(self.call(&field).map(Step::Http));
        }
        let field = application?;
        let choices = [
            ("start", Verb::Start),
            ("stop", Verb::Stop),
            ("restart", Verb::Restart),
        ];
        if !manages {
            let text = "there is no `application` that the agent could start or stop";
            field.wrong(&mut self.complaints, text);
        }
        Some(
            field
                .choice(&mut self.complaints, &choices)
                .map(Step::Application),
        )
    }

    fn call(&mut self, field: &Field<'_>) -> Option<Call> {
        let mut fields = field.fields(&mut self.complaints)?;
        let method = (fields.take("method")).map_or(Some(Method::Post), |field| {
            let choices = [
                ("GET", Method::Get),
                ("POST", Method::Post),
                ("PUT", Method::Put),
                ("PATCH", Method::Patch),
                ("DELETE", Method::Delete),
            ];
            field.choice(&mut self.complaints, &choices)
        });
        let url = fields.need(
            &mut self.complaints,
            "url",
            "such as http://127.0.0.1:8080/backup",
        );
        let url = url.and_then(|field| self.url(&field));
        let body = fields
            .take("body")
            .and_then(|field| field.text(&mut self.complaints));
        let mut statuses = |reader: &mut Self, name| {
            let field = fields.take(name);
            field
                .map(|field| reader.numbers(&field, 100, 599))
                .unwrap_or_default()
        };
        let expect = statuses(self, "expect");
        let permanent = statuses(self, "permanent");
        fields.end(&mut self.complaints);
        Some(Call {
            method: method?,
            url: url?,
            body,
            expect,
            permanent,
        })
    }

    fn url(&mut self, field: &Field<'_>) -> Option<url::Url> {
        let text = field.text(&mut self.complaints)?;
        match url::Url::parse(&text) {
            Ok(url) if url.scheme() == "http" && url.has_host() => Some(url),
            Ok(_) => {
                let text =
                    format!("{text:?}: only http:// is spoken, to an application beside the agent");
                field.wrong(&mut self.complaints, text);
                None
            }
            Err(error) => {
                field.wrong(&mut self.complaints, format!("{text:?} is no URL: {error}"));
                None
            }
        }
    }

    fn numbers(&mut self, field: &Field<'_>, from: i64, to: i64) -> BTreeSet<u16> {
        let list = field.list(&mut self.complaints);
        (list.iter())
            .filter_map(|field| field.number(&mut self.complaints, from, to))
            .filter_map(|number| u16::try_from(number).ok())
            .collect()
    }

    fn surroundings(&mut self, fields: &mut Fields<'_>) -> Surroundings {
        let [user, group] = ["user", "group"].map(|name| fields.take(name));
        let environment = fields.take("environment");
        let directory = fields.take("directory");
        let entries = environment.map(|field| field.entries(&mut self.complaints));
        let environment =
            entries
                .unwrap_or_default()
                .into_iter()
                .filter_map(|(name, place, field)| {
                    if name.is_empty() || name.contains(['=', '\0']) || name.starts_with("OKT_") {
                        let text = "no variable can be called so: OKT_ is the agent's own";
                        self.complaints.add(place, &field.key, text);
                    }
                    Some((name.to_owned(), field.text(&mut self.complaints)?))
                });
        let environment = environment.collect();
        let mut text = |field: Option<&Field<'_>>| field?.text(&mut self.complaints);
        let around = Surroundings {
            user: text(user.as_ref()),
            group: text(group.as_ref()),
            environment,
            directory: directory
                .as_ref()
                .and_then(|it| it.path(&mut self.complaints)),
        };
        if self.machine == Machine::Here {
            let fields = [user.as_ref(), group.as_ref(), directory.as_ref()];
            machine::surroundings(&mut self.complaints, fields, &around);
        }
        around
    }

    fn command(&mut self, field: &Field<'_>, around: &Surroundings) -> Option<Vec<String>> {
        let command = field.command(&mut self.complaints)?;
        let program = command.first()?;
        if program.is_empty() || program.contains('/') && !program.starts_with('/') {
            let text = format!(
                "{program:?}: a program is named by a path from the root, or found in PATH"
            );
            field.wrong(&mut self.complaints, text);
        } else if self.machine == Machine::Here {
            machine::program(&mut self.complaints, field, program, &around.environment);
        }
        Some(command)
    }

    fn file(&mut self, field: Option<Field<'_>>) -> Option<PathBuf> {
        let field = field?;
        let path = field.path(&mut self.complaints)?;
        if self.machine == Machine::Here {
            machine::file(&mut self.complaints, &field, &path);
        }
        Some(path)
    }
}

/// What an application may be asked to end with; what cannot be caught comes last by itself.
const SIGNALS: [(&str, Signal); 6] = [
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
];
