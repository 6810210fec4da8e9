//! Reads a configuration from the tree of its file.
//!
//! | content | file |
//! |---|---|
//! | the agent itself, and common parts | here |
//! | the application's process | `application` |
//! | the probe | `probe` |
//! | the work of states | `job` |

mod application;
mod job;
mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use okt_agent::wire::ObjectRef;
use serde_saphyr::Location;

use super::complaints::{Complaints, ConfigError};
use super::fields::{Field, Fields};
use super::tree::{Node, Position};
use super::{AgentLimits, CommandEnvironment, Config, ListenConfig, Machine, TlsConfig, machine};

/// A configuration is written by hand. A longer file is probably another file.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The limit for nested tables and lists. A deeper file is probably another file, and would need a large stack.
const DEEPEST: usize = 32;

impl Config {
    /// Reads a file and checks all of it.
    ///
    /// # Errors
    ///
    /// All mistakes, each with its line and key. A retry helps only after the file (or the machine) has changed.
    pub fn read(file: &Path, machine: Machine) -> Result<Self, ConfigError> {
        let text = fs::metadata(file).and_then(|about| {
            if about.len() > LONGEST_FILE {
                return Err(std::io::Error::other("it is longer than 1 MiB"));
            }
            fs::read_to_string(file)
        });
        match text {
            Ok(text) => Self::parse(file, &text, machine),
            Err(error) => {
                let mut complaints = Complaints::default();
                complaints.add(
                    Position::default(),
                    "",
                    format!("cannot read the file: {error}"),
                );
                complaints.finish(file, None)
            }
        }
    }

    /// Reads and checks the text of `file`.
    ///
    /// ```
    /// use std::path::Path;
    /// use okt_sidecar::{Config, Machine};
    ///
    /// let text = "
    /// listen: 127.0.0.1:8470
    /// data: /var/lib/okt-sidecar
    /// probe: { command: [pg_isready], exits: { 0: Running, 2: absent } }
    /// states:
    ///   Servicing: { comand: [pg_basebackup, -D, /backup] }
    /// ";
    /// let error = Config::parse(Path::new("okt.yaml"), text, Machine::Elsewhere).unwrap_err();
    /// assert!(error.to_string().contains("states.Servicing.comand: unknown key, did you mean `command`?"));
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Config::read`].
    pub fn parse(file: &Path, text: &str, machine: Machine) -> Result<Self, ConfigError> {
        let mut reader = ConfigReader {
            complaints: Complaints::default(),
            machine,
        };
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEEPEST },
        };
        let config = match serde_saphyr::from_str_with_options::<Node>(text, options) {
            Ok(node) => reader.config(&Field::whole(&node)),
            Err(error) => {
                let place = error
                    .location()
                    .map(|location: Location| Position::from(location));
                let text = error.without_snippet().to_string();
                // The message has the place already, and the user cannot choose the policy.
                let text = (text.split_once(" at line ")).map_or(text.as_str(), |(what, _)| what);
                let text = (text.split_once(", set Dup")).map_or(text, |(what, _)| what);
                reader.complaints.add(place.unwrap_or_default(), "", text);
                None
            }
        };
        reader.complaints.finish(file, config)
    }
}

struct ConfigReader {
    complaints: Complaints,
    machine: Machine,
}

impl ConfigReader {
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
        let object = fields.take("object").and_then(|field| self.object(&field));
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
        if let (Some(ListenConfig::Unix { .. }), Some(_)) = (&listen, &tls) {
            fields.wrong(
                &mut self.complaints,
                "`tls` is of no use on a Unix socket: leave it out",
            );
        }
        if let Some(ListenConfig::Tcp(address)) = &listen
            && !address.ip().to_canonical().is_loopback()
            && token_file.is_none()
            && tls.as_ref().is_none_or(|tls| tls.client_ca.is_none())
        {
            let text = format!(
                "`tokenFile` or `tls.clientCa` is missing: whoever reaches {address} could give orders; listen on \
                 127.0.0.1 or unix:/path otherwise"
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
            object,
            graph,
            limits: limits.unwrap_or_default(),
            application,
            probe: probe?,
            states,
        })
    }

    fn listen(&mut self, fields: &mut Fields<'_>) -> Option<ListenConfig> {
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
            return address.map(ListenConfig::Tcp);
        };
        let path = PathBuf::from(path);
        // Linux allows 108 bytes with the NUL at the end, and the temporary name has the agent's process id.
        if !path.is_absolute() || path.as_os_str().len() > 99 {
            let text = "the path of a socket begins with / and is 99 bytes long at most";
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
        Some(ListenConfig::Unix { path, mode })
    }

    fn tls(&mut self, field: &Field<'_>) -> Option<TlsConfig> {
        let mut fields = field.fields(&mut self.complaints)?;
        let certificate = fields.need(&mut self.complaints, "certificate", "a file of PEM");
        let key = fields.need(&mut self.complaints, "key", "a file of PEM");
        let client_ca = fields.take("clientCa");
        // A wrong `clientCa` must not count as a missing one.
        let client_ca = match client_ca {
            None => Some(None),
            some => self.file(some).map(Some),
        };
        fields.end(&mut self.complaints);
        Some(TlsConfig {
            certificate: self.file(certificate)?,
            key: self.file(key)?,
            client_ca: client_ca?,
        })
    }

    fn object(&mut self, field: &Field<'_>) -> Option<ObjectRef> {
        let mut fields = field.fields(&mut self.complaints)?;
        let namespace = fields.take("namespace");
        let namespace = namespace.map_or(Some(String::new()), |it| it.text(&mut self.complaints));
        let name = fields
            .need(
                &mut self.complaints,
                "name",
                "`metadata.name` of the object",
            )
            .and_then(|it| it.text(&mut self.complaints));
        fields.end(&mut self.complaints);
        Some(ObjectRef {
            namespace: namespace?,
            name: name?,
        })
    }

    fn limits(&mut self, field: &Field<'_>) -> Option<AgentLimits> {
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
        Some(AgentLimits {
            connections,
            output,
            stopping,
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

    fn surroundings(&mut self, fields: &mut Fields<'_>) -> CommandEnvironment {
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
        let around = CommandEnvironment {
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

    fn command(&mut self, field: &Field<'_>, around: &CommandEnvironment) -> Option<Vec<String>> {
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
