//! This file orders actions of an instance, waits for their end, and finds their results where no server is left.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

use super::client;
use super::error::Error;
use super::files::{self, BACKUPS, DATABASE};
use super::instance::{Instance, Observed, SOON, blocking};
use super::process::{Lock, Taken};
use super::store::Store;
use super::wire::{Action, ActionKind, ActionState, Detail, Door, Order, Settings, Status};

/// How often a running action is asked after.
const OFTEN: Duration = Duration::from_millis(100);

/// A checked copy of the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// The file, below the data directory until that is archived.
    pub path: PathBuf,
    /// How many it holds.
    pub documents: u64,
}

/// An instance whose process has ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// How many the database holds.
    pub documents: u64,
}

impl Instance {
    /// Takes a backup, or finds the one that was taken under this id.
    ///
    /// # Caveats
    ///
    /// Dropping the future stops the waiting; the server goes on, and the next call finds what it did.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, does something else, or fails.
    pub async fn backup(&self, id: &str) -> Result<Backup, Error> {
        let detail = match self.status().await? {
            Observed::Answering(_) => self.run(id, &Order::Backup {}).await?,
            Observed::NotRunning { prepared: true } => self.found(id, ActionKind::Backup).await?,
            other => return Err(self.unreachable(other)),
        };
        let Detail { documents, file } = detail;
        let file = file.unwrap_or_else(|| format!("{}.db", files::name_of(id).unwrap_or_default()));
        Ok(Backup {
            path: self.data().join(BACKUPS).join(file),
            documents,
        })
    }

    /// Replaces the settings of the running server; they outlive it.
    ///
    /// # Errors
    ///
    /// When the server does not run or answer, does something else, or a setting makes no sense.
    pub async fn configure(&self, id: &str, settings: Settings) -> Result<(), Error> {
        match self.status().await? {
            Observed::Answering(_) => self.run(id, &Order::Configure(settings)).await.map(drop),
            Observed::NotRunning { prepared: true } => {
                self.found(id, ActionKind::Configure).await.map(drop)
            }
            other => Err(self.unreachable(other)),
        }
    }

    /// Lets the process finish what it was asked and end; what a killed process left is put in order here.
    ///
    /// # Errors
    ///
    /// When the server does not answer, does something else, fails, or does not end in time.
    pub async fn drain(&self, id: &str) -> Result<Drained, Error> {
        client::name_of(id)?;
        loop {
            match self.status().await? {
                Observed::Answering(_) => {}
                Observed::NotRunning { prepared: true } => return self.settle(id).await,
                other => return Err(self.unreachable(other)),
            }
            let documents = match self.run(id, &Order::Drain {}).await {
                Ok(Detail { documents, .. }) => documents,
                // It may have ended before it could be asked again: then what it wrote down is the answer.
                // Or it drains because of a signal, and takes no order.
                Err(
                    Error::Request { .. }
                    | Error::NotRunning { .. }
                    | Error::Refused { status: 503, .. },
                ) => {
                    self.within("to end", self.gone()).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.within("to end", self.gone()).await?;
            return Ok(Drained { documents });
        }
    }

    /// Orders an action and waits for its end.
    async fn run(&self, id: &str, order: &Order) -> Result<Detail, Error> {
        client::name_of(id)?;
        let client = self.client().await?;
        let mut action = client.order(id, order).await?;
        loop {
            match action.state {
                ActionState::Running => sleep(OFTEN).await,
                ActionState::Succeeded { detail } => return Ok(detail),
                ActionState::Failed { message } => {
                    return Err(Error::Failed {
                        id: id.into(),
                        message,
                    });
                }
                ActionState::Unknown => return Err(Error::Interrupted { id: id.into() }),
            }
            action = client.action(id).await?;
        }
    }

    /// Finds the result of an action without a server.
    async fn found(&self, id: &str, kind: ActionKind) -> Result<Detail, Error> {
        client::name_of(id)?;
        let (data, id) = (self.data().to_owned(), id.to_owned());
        blocking(
            move || match Store::open(&data.join(DATABASE))?.action(&id)? {
                Some(Action {
                    state: ActionState::Succeeded { detail },
                    kind: done,
                    ..
                }) if done == kind => Ok(detail),
                Some(_) | None => Err(Error::NotRunning { data }),
            },
        )
        .await
    }

    /// Does what a drain does, for a process that is gone.
    async fn settle(&self, id: &str) -> Result<Drained, Error> {
        let (data, id) = (self.data().to_owned(), id.to_owned());
        blocking(move || {
            let _lock = match Lock::take(&data).map_err(Error::file("lock", &data))? {
                Taken::Lock(lock) => lock,
                Taken::Held(pid) => return Err(Error::InUse { data, pid }),
            };
            let store = Store::open(&data.join(DATABASE))?;
            let documents = store.count()?;
            let known = store.action(&id)?;
            if !matches!(
                known,
                Some(Action {
                    state: ActionState::Succeeded { .. },
                    ..
                })
            ) {
                let detail = Detail {
                    documents,
                    file: None,
                };
                store.begin(&id, ActionKind::Drain)?;
                store.end(&id, &ActionState::Succeeded { detail })?;
            }
            store.checkpoint()?;
            Ok(Drained { documents })
        })
        .await
    }

    /// Waits until the process that drains has ended.
    ///
    /// One that accepts was started later: the drain is of the process before, and is not repeated.
    async fn gone(&self) -> Result<(), Error> {
        loop {
            match self.status().await? {
                Observed::NotRunning { .. }
                | Observed::Answering(Status {
                    state: Door::Accepting,
                    ..
                }) => {
                    return Ok(());
                }
                Observed::Answering(_) | Observed::NotAnswering { .. } => sleep(SOON).await,
            }
        }
    }

    fn unreachable(&self, observed: Observed) -> Error {
        let data = self.data().to_owned();
        match observed {
            Observed::NotRunning { prepared: false } => Error::NotPrepared { data },
            Observed::NotRunning { prepared: true } => Error::NotRunning { data },
            Observed::NotAnswering { why, .. } => Error::NotAnswering { data, why },
            Observed::Answering(_) => Error::NotAnswering {
                data,
                why: "it answered a moment ago".into(),
            },
        }
    }
}
