//! Reads a configuration from the tree of its file.
//!
//! | content | file |
//! |---|---|
//! | the agent itself | here |
//! | the application's process | `application` |
//! | the probe | `probe` |
//! | the work of states | `job` |
//! | values that several parts have | `parts` |

mod application;
mod job;
mod parts;
mod probe;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use okt_agent::wire::ObjectRef;
use serde_saphyr::Location;

use self::application::application;
use self::job::{Managed, states};
use self::parts::file;
use self::probe::probe;
use super::fields::{Field, Fields, Reading};
use super::mistakes::{ConfigError, Mistakes};
use super::tree::Node;
use super::{AgentLimits, ApplicationConfig, Config, ListenConfig, Machine, TlsConfig};

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
        text.map_or_else(
            |error| {
                let mistakes = Mistakes::default();
                let text = format!("cannot read the file: {error}");
                mistakes.add(Location::UNKNOWN, "", text);
                mistakes.finish(file, None)
            },
            |text| Self::parse(file, &text, machine),
        )
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
        let reading = Reading {
            machine,
            mistakes: Mistakes::default(),
        };
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEEPEST },
        };
        let config = match serde_saphyr::from_str_with_options::<Node>(text, options) {
            Ok(node) => config(&Field {
                reading: &reading,
                key: String::new(),
                node: &node,
            }),
            Err(error) => {
                let place = error.location().unwrap_or(Location::UNKNOWN);
                let text = error.without_snippet().to_string();
                // The message has the place already, and the user cannot choose the policy.
                let without_place = text.split(" at line ").next();
                let what = without_place.and_then(|it| it.split(", set Dup").next());
                reading.mistakes.add(place, "", what.unwrap_or_default());
                None
            }
        };
        reading.mistakes.finish(file, config)
    }
}

fn config(whole: &Field<'_>) -> Option<Config> {
    let mut fields = whole.fields()?;
    let listen = listen(&mut fields);
    let token_file = fields.optional("tokenFile", file);
    let tls = fields.optional("tls", tls);
    let what = "a directory of the agent's own, that outlives it";
    let data = fields.required("data", what, Field::path);
    let scratch = fields.optional("scratch", Field::path);
    let object = fields.optional("object", object);
    let graph = fields.optional("graph", Field::text);
    let limits = fields.optional("limits", limits);
    let application_field = fields.take("application");
    let application = application_field.as_ref().and_then(application);
    let managed = Managed {
        exists: application_field.is_some(),
        stopping: application.as_ref().map(ApplicationConfig::stopping),
    };
    let what = "how the agent sees where the application is";
    let probe = fields.required("probe", what, probe);
    let states = fields.take("states").map(|it| states(&it, managed));
    if let (Some(ListenConfig::Unix { .. }), Some(_)) = (&listen, &tls) {
        fields.wrong("`tls` is of no use on a Unix socket: leave it out");
    }
    if let Some(ListenConfig::Tcp(address)) = &listen
        && !address.ip().to_canonical().is_loopback()
        && token_file.is_none()
        && tls.as_ref().is_none_or(|tls| tls.client_ca.is_none())
    {
        fields.wrong(format!(
            "`tokenFile` or `tls.clientCa` is missing: whoever reaches {address} could give orders; listen on \
             127.0.0.1 or unix:/path otherwise"
        ));
    }
    fields.end();
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
        states: states.unwrap_or_default(),
    })
}

fn listen(fields: &mut Fields<'_>) -> Option<ListenConfig> {
    let what = "such as 127.0.0.1:8470 or unix:/run/okt/agent.sock";
    let listen = fields.required("listen", what, |it| Some(it.clone()));
    let mode = fields.take("socketMode");
    let field = listen?;
    let text = field.text()?;
    let Some(path) = text.strip_prefix("unix:") else {
        if let Some(mode) = mode {
            mode.wrong("only a Unix socket has a mode");
        }
        let address = text.parse::<SocketAddr>().ok();
        if address.is_none() {
            field.wrong(format!("{text:?} is no address, {what}"));
        }
        return address.map(ListenConfig::Tcp);
    };
    let path = PathBuf::from(path);
    // Linux allows 108 bytes with the NUL at the end, and the temporary name has the agent's process id.
    if !path.is_absolute() || path.as_os_str().len() > 99 {
        field.wrong("the path of a socket begins with / and is 99 bytes long at most");
    }
    let mode = mode.map_or(Some(0o600), |field| socket_mode(&field))?;
    Some(ListenConfig::Unix { path, mode })
}

fn socket_mode(field: &Field<'_>) -> Option<u32> {
    let text = field.text()?;
    match u32::from_str_radix(text.trim_start_matches("0o"), 8) {
        Ok(mode) if mode <= 0o777 => Some(mode),
        Ok(_) | Err(_) => {
            field.wrong(format!("{text:?} is no mode such as \"0660\""));
            None
        }
    }
}

fn tls(field: &Field<'_>) -> Option<TlsConfig> {
    let mut fields = field.fields()?;
    let certificate = fields.required("certificate", "a file of PEM", file);
    let key = fields.required("key", "a file of PEM", file);
    // A wrong `clientCa` must not count as a missing one.
    let client_ca = fields.optional_or("clientCa", None, |it| file(it).map(Some));
    fields.end();
    Some(TlsConfig {
        certificate: certificate?,
        key: key?,
        client_ca: client_ca?,
    })
}

fn object(field: &Field<'_>) -> Option<ObjectRef> {
    let mut fields = field.fields()?;
    let namespace = fields.optional_or("namespace", String::new(), Field::text);
    let name = fields.required("name", "`metadata.name` of the object", Field::text);
    fields.end();
    Some(ObjectRef {
        namespace: namespace?,
        name: name?,
    })
}

fn limits(field: &Field<'_>) -> Option<AgentLimits> {
    let mut fields = field.fields()?;
    let mut number = |name, from, to| {
        let number = fields.take(name)?.number(from, to)?;
        usize::try_from(number).ok()
    };
    let connections = number("connections", 1, 10_000);
    let output = number("outputBytes", 1024, 16 * 1024 * 1024);
    let stopping = fields.optional("stopping", Field::time);
    fields.end();
    Some(AgentLimits {
        connections,
        output,
        stopping,
    })
}
