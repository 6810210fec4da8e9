//! This file is one instance of `notes` for its operator: a directory, and a process that may run.

use std::fs;
use std::path::{Path, PathBuf};

use okt_agent::client::{self as agent, Endpoint};
use okt_agent::wire::{ActionId, AgentStatus};

use super::archive::{Means, Move};
use super::client::{self, Client};
use super::error::{Error, StoreError, sentence};
use super::files::{self, BACKUPS, DATABASE, PATH_BYTES, SOCKET};
use super::process::Holder;
use super::program::Program;
use super::store::Store;
use super::wire::Document;

/// A directory with documents, and the process that serves it, if one does.
///
/// It holds no state of the process: another program, or this one after a crash, works with the same instance.
/// Any work but starting and ending goes to the [agent](Self::agent) in the process.
///
/// # Guarantees
///
/// Every method can be called again after it was dropped, or its caller killed, at any point.
///
/// # Example
///
/// ```no_run
/// use okt_examples::notes::{Error, Instance, Program};
///
/// # async fn example() -> Result<(), Error> {
/// let program = Program { exe: "notes".into(), args: vec!["serve".into()] };
/// let instance = Instance::new("team-a", "/var/lib/notes/team-a", program)?;
/// instance.prepare().await?;
/// instance.start().await?;
/// instance.add("groceries", "bread, salt").await?;
/// instance.stop().await?;
/// instance.archive("uid.4", "/var/lib/notes-archive").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Instance {
    pub(super) name: String,
    data: PathBuf,
    pub(super) program: Program,
    http: reqwest::Client,
    agent: agent::Client,
}

/// The observed state of the process of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Its agent answers.
    Answering(Box<AgentStatus>),
    /// No process runs; a recorded pid is stale.
    NotRunning {
        /// Whether there is a database to serve.
        prepared: bool,
    },
    /// A process exists, and is starting, ending or stuck.
    NotAnswering {
        /// Its pid, if it has written one.
        pid: Option<u32>,
        /// Why its agent does not answer.
        why: String,
    },
}

/// The data of an instance that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The directory with `notes.db` and `backups`.
    pub path: PathBuf,
    /// How many documents the database holds.
    pub documents: u64,
}

impl Instance {
    /// Creates an instance for a name and a directory; does nothing yet.
    ///
    /// # Errors
    ///
    /// When the name cannot be part of a file name, the directory cannot be made absolute, or its path is too long
    /// for a socket in it.
    pub fn new(name: &str, data: impl AsRef<Path>, program: Program) -> Result<Self, Error> {
        nameable(name)?;
        let data = data.as_ref();
        // This path on its command line identifies a process.
        let data = std::path::absolute(data).map_err(Error::file("find", data))?;
        if data.as_os_str().len() > PATH_BYTES {
            return Err(Error::Path { data });
        }
        let agent = agent::Client::new(&endpoint(&data))?;
        Ok(Self {
            name: name.into(),
            data,
            program,
            http: client::http()?,
            agent,
        })
    }

    /// The data directory, absolute.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the client of the agent in the process.
    pub fn agent(&self) -> &agent::Client {
        &self.agent
    }

    /// Creates the directory and the schema, if they do not exist yet.
    ///
    /// # Errors
    ///
    /// When the directory holds another database, or the disk refuses.
    pub async fn prepare(&self) -> Result<(), Error> {
        let data = self.data.clone();
        blocking(move || {
            fs::create_dir_all(data.join(BACKUPS))
                .map_err(Error::file("make data directory", &data))?;
            drop(Store::create(&data.join(DATABASE))?);
            files::sync_directory(&data)
                .and_then(|()| files::sync_parent(&data))
                .map_err(Error::file("sync data directory", &data))
        })
        .await
    }

    /// Returns whether a process exists and whether its agent answers.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub async fn status(&self) -> Result<Observed, Error> {
        Ok(match self.holder().await? {
            Holder::Nobody => Observed::NotRunning {
                prepared: self.is_prepared(),
            },
            Holder::Process(pid) => match self.agent.status().await {
                Ok(status) => Observed::Answering(Box::new(status)),
                Err(error) => Observed::NotAnswering {
                    pid,
                    why: sentence(&error),
                },
            },
        })
    }

    /// Moves the database and the backups to `into/<name>-<id>` and removes the directory.
    ///
    /// # Errors
    ///
    /// When a process serves the directory, there is nothing to archive, or the disk refuses.
    pub async fn archive(&self, id: &str, into: impl AsRef<Path>) -> Result<Archive, Error> {
        let into = into.as_ref();
        let into = std::path::absolute(into).map_err(Error::file("find", into))?;
        let archive = Move::new(&self.data, &self.name, nameable(id)?, &into);
        blocking(move || {
            let documents = archive.run(Means::Rename, |_| Ok(()))?;
            Ok(Archive {
                path: archive.kept,
                documents,
            })
        })
        .await
    }

    /// Adds a document; the server has stored it once this returns.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, or refuses; with status 503 it is about to end.
    pub async fn add(&self, title: &str, body: &str) -> Result<Document, Error> {
        self.client().await?.add(title, body).await
    }

    /// Returns how many documents the server holds.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer.
    pub async fn count(&self) -> Result<u64, Error> {
        self.client().await?.count().await
    }

    async fn client(&self) -> Result<Client, Error> {
        let not_running = || Error::NotRunning {
            data: self.data.clone(),
        };
        // The file of a killed process must not lead to another program on its port.
        match self.holder().await? {
            Holder::Nobody => Err(not_running()),
            Holder::Process(_) => Client::find(&self.http, &self.data)
                .await?
                .ok_or_else(not_running),
        }
    }

    pub(super) fn is_prepared(&self) -> bool {
        self.data.join(DATABASE).exists()
    }
}

/// Returns the endpoint of the agent of a directory.
pub fn endpoint(data: &Path) -> Endpoint {
    Endpoint::unix(data.join(SOCKET))
}

/// Checks that a text can be part of a file name, as the id of an action can.
fn nameable(name: &str) -> Result<&str, Error> {
    match name.parse::<ActionId>() {
        Ok(_) => Ok(name),
        Err(_) => Err(Error::Name { name: name.into() }),
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The runtime is ending, or the work panicked.
        Err(_) => Err(Error::Store(StoreError::Stopped {
            action: "use data directory",
        })),
    }
}
