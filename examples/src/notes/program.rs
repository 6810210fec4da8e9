//! This file executes the program that serves a directory, and reports how it ended if it ends too early.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::error::Error;
use super::files::LOG;
use super::instance::blocking;

/// How much of a log an error contains, in bytes.
const LOG_BYTES: u64 = 2000;

/// The command that serves a directory; `--data DIR --name NAME` is appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file to execute.
    pub exe: PathBuf,
    /// The arguments before `--data` (e.g. `serve --backup-pause-ms 50`).
    pub args: Vec<OsString>,
}

/// A process that was started and is not ready yet.
#[derive(Debug)]
pub(super) struct Launched {
    child: Child,
    data: PathBuf,
    /// Where its lines begin in the log, in bytes.
    start: u64,
}

impl Program {
    /// Starts a process that outlives this one.
    pub(super) async fn launch(&self, name: &str, data: &Path) -> Result<Launched, Error> {
        let path = data.join(LOG);
        let (log, errors, start) = blocking(move || {
            let open = || {
                let log = File::options().append(true).create(true).open(&path)?;
                let (errors, start) = (log.try_clone()?, log.metadata()?.len());
                Ok((log, errors, start))
            };
            open().map_err(Error::file("open log", &path))
        })
        .await?;
        let child = Command::new(&self.exe)
            .args(&self.args)
            .arg("--data")
            .arg(data)
            .arg("--name")
            .arg(name)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            // A Ctrl-C for its operator must not reach it.
            .process_group(0)
            .spawn()
            .map_err(Error::file("execute", &self.exe))?;
        Ok(Launched {
            child,
            data: data.into(),
            start,
        })
    }
}

impl Launched {
    /// Ends the process unless it is the one that serves; another caller may have started that one first.
    pub(super) async fn yield_to(&mut self, serving: u32) -> Result<(), Error> {
        // Without an id it has ended.
        if self.child.id().is_none_or(|pid| serving == pid) {
            return Ok(());
        }
        self.child
            .kill()
            .await
            .map_err(Error::file("end the second server of", &self.data))
    }

    /// Fails when the process has ended.
    pub(super) async fn check(&mut self) -> Result<(), Error> {
        let Some(status) = self
            .child
            .try_wait()
            .map_err(Error::file("wait for the server of", &self.data))?
        else {
            return Ok(());
        };
        let (path, start) = (self.data.join(LOG), self.start);
        let log =
            blocking(move || tail(&path, start).map_err(Error::file("read log", &path))).await?;
        Err(Error::Ended {
            data: self.data.clone(),
            status,
            log,
        })
    }
}

fn tail(path: &Path, start: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let start = start.max(file.metadata()?.len().saturating_sub(LOG_BYTES));
    file.seek(SeekFrom::Start(start))?;
    let mut text = Vec::new();
    file.take(LOG_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}
