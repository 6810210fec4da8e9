//! This file starts, keeps and ends the process of an instance.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::error::Error;
use super::instance::{Instance, blocking};
use super::process::{self, Holder};
use super::program::Launched;

/// How often a process that starts or ends is checked.
const SOON: Duration = Duration::from_millis(25);

/// How long a process may take to start or to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a running process is checked.
const NOW_AND_THEN: Duration = Duration::from_millis(250);

impl Instance {
    /// Starts a process that outlives this one, unless one exists, and waits until its agent takes work.
    ///
    /// # Flow
    ///
    /// It first waits for a process that is starting or ending; two concurrent callers get the same process.
    ///
    /// # Errors
    ///
    /// When the process ends (its log is part of the error), or takes too long.
    pub async fn start(&self) -> Result<(), Error> {
        let start = async {
            let mut launched: Option<Launched> = None;
            loop {
                match self.holder().await? {
                    // A process does not answer before it listens, and one that ends is not ready any more.
                    Holder::Process(Some(pid))
                        if self.agent().is_ready().await.unwrap_or(false) =>
                    {
                        if let Some(launched) = &mut launched {
                            launched.yield_to(pid).await?;
                        }
                        return Ok(());
                    }
                    Holder::Process(_) => {}
                    Holder::Nobody if !self.is_prepared() => {
                        return Err(Error::NotPrepared {
                            data: self.data().to_owned(),
                        });
                    }
                    Holder::Nobody => match &mut launched {
                        None => {
                            launched = Some(self.program.launch(&self.name, self.data()).await?);
                        }
                        Some(launched) => launched.check().await?,
                    },
                }
                sleep(SOON).await;
            }
        };
        self.within("to be ready", start).await
    }

    /// Starts a process whenever none exists; returns the error when that fails.
    pub async fn keep(&self) -> Error {
        loop {
            let kept = match self.runs().await {
                Ok(true) => Ok(()),
                Ok(false) => self.start().await,
                Err(error) => Err(error),
            };
            if let Err(error) = kept {
                return error;
            }
            sleep(NOW_AND_THEN).await;
        }
    }

    /// Returns whether a process exists, in any state.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub async fn runs(&self) -> Result<bool, Error> {
        Ok(self.holder().await? != Holder::Nobody)
    }

    /// Waits until no process exists.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub async fn gone(&self) -> Result<(), Error> {
        while self.runs().await? {
            sleep(NOW_AND_THEN).await;
        }
        Ok(())
    }

    /// Lets the process finish the work under way and end; returns whether there was one.
    ///
    /// # Errors
    ///
    /// When the process cannot be recognised as the one of this directory (nothing is signalled then), or does not
    /// end in time.
    pub async fn stop(&self) -> Result<bool, Error> {
        self.end(Signal::TERM).await
    }

    /// Ends the process with SIGKILL; returns whether there was one.
    ///
    /// # Errors
    ///
    /// When the process cannot be recognised as the one of this directory; nothing is signalled then.
    pub async fn kill(&self) -> Result<bool, Error> {
        self.end(Signal::KILL).await
    }

    async fn end(&self, signal: Signal) -> Result<bool, Error> {
        let pid = match self.holder().await? {
            Holder::Nobody => return Ok(false),
            Holder::Process(pid) => pid,
        };
        let why = || "it has not written its pid".into();
        let pid = pid.ok_or_else(|| Error::NotAnswering {
            data: self.data().to_owned(),
            why: why(),
        })?;
        process::tell(pid, self.data(), signal)?;
        let gone = async {
            while self.holder().await? == Holder::Process(Some(pid)) {
                sleep(SOON).await;
            }
            Ok(())
        };
        self.within("to end", gone).await.map(|()| true)
    }

    pub(super) async fn holder(&self) -> Result<Holder, Error> {
        let data = self.data().to_owned();
        blocking(move || process::holder(&data).map_err(Error::file("look at the lock of", &data)))
            .await
    }

    async fn within<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        match timeout(PATIENCE, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::Slow {
                data: self.data().to_owned(),
                what,
                limit: PATIENCE,
            }),
        }
    }
}
