//! This file is one instance of `notes` as its operator sees it: a directory, and a process that comes and goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::archive::{Means, Move};
use super::client::{self, Client};
use super::error::{Error, StoreError, sentence};
use super::files::{self, BACKUPS, DATABASE};
use super::process::{self, Holder};
use super::program::{Launched, Program};
use super::store::Store;
use super::wire::{Action, Document, Door, Page, Status};

/// How often a process that starts or ends is looked at.
pub(super) const SOON: Duration = Duration::from_millis(25);

/// A directory with documents, and the process that serves it, if one does.
///
/// Holds nothing of the process itself: another program, or this one after a crash, has the same view.
///
/// # Guarantees
///
/// Every method can be called again after it was dropped, or its caller killed, at any point.
/// Those that take an id do their work once for it; one id names one piece of work, so that a caller that orders two
/// kinds of action under one cause makes two ids of it (e.g. `…/12/configure`).
///
/// # Example
///
/// ```no_run
/// use okt_examples::notes::{Error, Instance, Program};
///
/// # async fn example() -> Result<(), Error> {
/// let program = Program { exe: "notes".into(), args: vec!["serve".into()] };
/// let instance = Instance::new("team-a", "/var/lib/notes/team-a", program)?;
/// instance.prepare("uid/1").await?;
/// instance.start().await?;
/// instance.add("groceries", "bread, salt").await?;
/// let backup = instance.backup("uid/2").await?;
/// println!("{} documents in {}", backup.documents, backup.path.display());
/// instance.drain("uid/3").await?;
/// instance.archive("uid/4", "/var/lib/notes-archive").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Instance {
    name: String,
    data: PathBuf,
    program: Program,
    patience: Duration,
    http: reqwest::Client,
}

/// What can be said of the process of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It answers, and is the one that serves this directory.
    Answering(Status),
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
    /// When the name cannot be part of a file name, or the directory cannot be made absolute.
    pub fn new(name: &str, data: impl AsRef<Path>, program: Program) -> Result<Self, Error> {
        client::name_of(name)?;
        let data = data.as_ref();
        // A process is told from others by this path on its command line.
        let data = std::path::absolute(data).map_err(Error::file("find", data))?;
        Ok(Self {
            name: name.into(),
            data,
            program,
            patience: Duration::from_secs(10),
            http: client::http()?,
        })
    }

    /// Waits this long for a process to start or to end, instead of ten seconds.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The data directory, absolute.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Makes the directory and the schema, where they are not there yet.
    ///
    /// # Errors
    ///
    /// When the directory holds another database, or the disk refuses.
    pub async fn prepare(&self, id: &str) -> Result<(), Error> {
        client::name_of(id)?;
        let (data, id) = (self.data.clone(), id.to_owned());
        blocking(move || {
            fs::create_dir_all(data.join(BACKUPS))
                .map_err(Error::file("make data directory", &data))?;
            let store = Store::create(&data.join(DATABASE))?;
            // The first one is the one who made it.
            if store.property("prepared by")?.is_none() {
                store.set_property("prepared by", &id)?;
            }
            files::sync_directory(&data)
                .and_then(|()| files::sync_parent(&data))
                .map_err(Error::file("sync data directory", &data))
        })
        .await
    }

    /// Starts a process that outlives this one, unless one answers, and waits until it takes documents.
    ///
    /// # Flow
    ///
    /// A process that is starting or draining is waited for first; two callers at once get the same process.
    ///
    /// # Errors
    ///
    /// When the process ends (its log is part of the error), or takes too long.
    pub async fn start(&self) -> Result<Status, Error> {
        let start = async {
            let mut launched: Option<Launched> = None;
            loop {
                match self.status().await? {
                    Observed::Answering(status) if status.state == Door::Accepting => {
                        if let Some(launched) = &mut launched {
                            launched.yield_to(status.pid).await?;
                        }
                        return Ok(status);
                    }
                    Observed::Answering(_) | Observed::NotAnswering { .. } => {}
                    Observed::NotRunning { prepared: false } => {
                        return Err(Error::NotPrepared {
                            data: self.data.clone(),
                        });
                    }
                    Observed::NotRunning { prepared: true } => match &mut launched {
                        None => launched = Some(self.program.launch(&self.name, &self.data).await?),
                        Some(launched) => launched.check().await?,
                    },
                }
                sleep(SOON).await;
            }
        };
        self.within("to accept documents", start).await
    }

    /// Says whether there is a process and whether it answers.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub async fn status(&self) -> Result<Observed, Error> {
        let pid = match self.holder().await? {
            Holder::Process(pid) => pid,
            Holder::Nobody => {
                let prepared = self.data.join(DATABASE).exists();
                return Ok(Observed::NotRunning { prepared });
            }
        };
        let not_answering = |why: String| Ok(Observed::NotAnswering { pid, why });
        match Client::find(&self.http, &self.data).await? {
            None => not_answering("it has not written notes.json".into()),
            // A process that is not the announced one refuses, because of the boot id in the request.
            Some(client) => match client.status().await {
                Ok(status) => Ok(Observed::Answering(status)),
                Err(error) => not_answering(sentence(&error)),
            },
        }
    }

    /// Moves the database and the backups to `into/<name>-<id>` and removes the directory.
    ///
    /// # Errors
    ///
    /// When a process serves the directory, there is nothing to archive, or the disk refuses.
    pub async fn archive(&self, id: &str, into: impl AsRef<Path>) -> Result<Archive, Error> {
        let into = into.as_ref();
        let into = std::path::absolute(into).map_err(Error::file("find", into))?;
        let archive = Move::new(
            &self.data,
            &client::name_of(&self.name)?,
            &client::name_of(id)?,
            &into,
        );
        blocking(move || {
            let documents = archive.run(Means::Rename, |_| Ok(()))?;
            Ok(Archive {
                path: archive.kept,
                documents,
            })
        })
        .await
    }

    /// Sends SIGKILL to the process and waits until it is gone; says whether there was one.
    ///
    /// # Errors
    ///
    /// When the process cannot be recognised as the one of this directory; nothing is signalled then.
    pub async fn kill(&self) -> Result<bool, Error> {
        let pid = match self.holder().await? {
            Holder::Nobody => return Ok(false),
            Holder::Process(pid) => pid,
        };
        let why = || "it has not written its pid".into();
        let pid = pid.ok_or_else(|| Error::NotAnswering {
            data: self.data.clone(),
            why: why(),
        })?;
        process::kill(pid, &self.data)?;
        let gone = async {
            while self.holder().await? == Holder::Process(Some(pid)) {
                sleep(SOON).await;
            }
            Ok(())
        };
        self.within("to die", gone).await.map(|()| true)
    }

    /// Hands in a document; once this returns it is kept.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, or refuses; with status 503 it is draining.
    pub async fn add(&self, title: &str, body: &str) -> Result<Document, Error> {
        self.client().await?.add(title, body).await
    }

    /// The documents with an id above `after`, at most `limit` of them and at most 1000.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer.
    pub async fn list(&self, after: i64, limit: u16) -> Result<Page, Error> {
        self.client().await?.list(after, limit).await
    }

    /// How many documents the server holds.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer.
    pub async fn count(&self) -> Result<u64, Error> {
        self.client().await?.count().await
    }

    /// What the server knows of an action.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, or knows nothing, which is a refusal with status 404.
    pub async fn action(&self, id: &str) -> Result<Action, Error> {
        self.client().await?.action(id).await
    }

    pub(super) async fn client(&self) -> Result<Client, Error> {
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

    async fn holder(&self) -> Result<Holder, Error> {
        let data = self.data.clone();
        blocking(move || process::holder(&data).map_err(Error::file("look at the lock of", &data)))
            .await
    }

    pub(super) async fn within<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match timeout(self.patience, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::Slow {
                data: self.data.clone(),
                what,
                limit: self.patience,
            }),
        }
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
