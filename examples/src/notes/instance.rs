//! This file is one instance of `notes` as its operator sees it: a directory, and a process that comes and goes.

use std::fs;
use std::path::{Path, PathBuf};

use okt_sidecar::client::{self as agent, Endpoint};
use okt_sidecar::wire::{ActionId, AgentStatus};

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
/// Holds nothing of the process itself: another program, or this one after a crash, has the same view.
/// What an operator has it do beside starting and ending goes to the [agent](Self::agent) in the process.
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

/// What can be said of the process of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Its agent answers.
    Answering(Box<AgentStatus>),
    /// There is none; a pid that was left behind is nobody's.
    NotRunning {
        /// Whether there is a database to serve.
        prepared: bool,
    },
    /// There is one, and it is starting, ending or stuck.
    NotAnswering {
        /// As far as it said so.
        pid: Option<u32>,
        /// What was tried.
        why: String,
    },
}

/// The data of an instance that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// The directory with `notes.db` and `backups`.
    pub path: PathBuf,
    /// How many documents the database holds.
    pub documents: u64,
}

impl Instance {
    /// Names an instance and its directory; nothing is done yet.
    ///
    /// # Errors
    ///
    /// When the name cannot be part of a file name, the directory cannot be made absolute, or its path is too long
    /// for a socket in it.
    pub fn new(name: &str, data: impl AsRef<Path>, program: Program) -> Result<Self, Error> {
        nameable(name)?;
        let data = data.as_ref();
        // A process is told from others by this path on its command line.
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

    /// Whoever asks the agent in the process: how it goes, and for work.
    pub fn agent(&self) -> &agent::Client {
        &self.agent
    }

    /// Makes the directory and the schema, where they are not there yet.
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

    /// Says whether there is a process and whether its agent answers.
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

    /// Hands in a document; once this returns it is kept.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, or refuses; with status 503 it is about to end.
    pub async fn add(&self, title: &str, body: &str) -> Result<Document, Error> {
        self.client().await?.add(title, body).await
    }

    /// How many documents the server holds.
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
        // A file that a killed process left must not lead to whoever has its port now.
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

/// Where the agent of a directory is, when there is one.
pub fn endpoint(data: &Path) -> Endpoint {
    Endpoint::unix(data.join(SOCKET))
}

/// A text that can be part of a file name, as an id of an action can.
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
        // The runtime is ending, or the work panicked, which it has no reason to.
        Err(_) => Err(Error::Store(StoreError::Stopped {
            action: "use data directory",
        })),
    }
}
