//! The files that a command and the agent share: input, progress and result.
//!
//! The command reads `OKT_INPUT`, and writes `OKT_PROGRESS` (a named pipe, so that nothing piles up) and `OKT_RESULT`.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use okt_agent::private;
use okt_agent::{Done, Fault, Task};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use tokio::net::unix::pipe::{OpenOptions, Receiver};

use super::is_state;
use super::users::Person;

/// The directory of one attempt. Dropping it removes the directory.
pub(crate) struct Scratch {
    directory: PathBuf,
    pub(crate) progress: Receiver,
}

/// The result that a command reports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CommandResult {
    pub(crate) event: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) permanent: bool,
}

/// How much of `OKT_RESULT` is read, in bytes.
const LONGEST_RESULT: u64 = 16 * 1024;

/// How much of a line of `OKT_PROGRESS` is read, in bytes.
const LONGEST_LINE: usize = 1024;

impl Scratch {
    /// Creates the directory for a command that runs as this user.
    pub(crate) fn make(under: &Path, task: &Task, person: Option<&Person>) -> io::Result<Self> {
        let directory = place(under, task.id().as_str(), task.attempt());
        shared(under)?;
        forget(&directory);
        fs::DirBuilder::new().mode(0o700).create(&directory)?;
        let input = serde_json::to_vec(task.input())?;
        fs::write(directory.join("input"), input)?;
        fs::write(directory.join("result"), b"")?;
        let progress = directory.join("progress");
        mknodat(CWD, &progress, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        for name in ["input", "result", "progress"] {
            let file = directory.join(name);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
            give(&file, person)?;
        }
        // Opened for reading and writing, the pipe never ends, and a writer that opens it does not block.
        let receiver = OpenOptions::new()
            .read_write(true)
            .open_receiver(&progress)?;
        give(&directory, person)?;
        Ok(Self {
            directory,
            progress: receiver,
        })
    }

    /// Returns the paths of the files, for the environment of commands.
    pub(crate) fn environment(&self) -> [(String, String); 3] {
        ["input", "result", "progress"].map(|file| {
            let path = self.directory.join(file).display().to_string();
            (format!("OKT_{}", file.to_uppercase()), path)
        })
    }

    /// Passes progress from `OKT_PROGRESS` to the task, forever.
    pub(crate) async fn follow(&self, task: &Task) -> Infallible {
        let mut line = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if self.progress.readable().await.is_err() {
                return std::future::pending().await;
            }
            let Ok(length) = self.progress.try_read(&mut buffer) else {
                continue;
            };
            for byte in &buffer[..length] {
                if *byte == b'\n' {
                    report(task, &line);
                    line.clear();
                } else if line.len() < LONGEST_LINE {
                    line.push(*byte);
                }
            }
            // Endless writing must not keep the thread from timers and cancellation.
            tokio::task::yield_now().await;
        }
    }

    /// Reads `OKT_RESULT`.
    pub(crate) fn result(&self) -> Result<CommandResult, String> {
        let mut text = Vec::new();
        let path = self.directory.join("result");
        // The owner of the file may have replaced it: follow no link and do not block.
        let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(careful.bits().cast_signed());
        let file = match options.open(&path) {
            Ok(file) if file.metadata().is_ok_and(|about| about.is_file()) => file,
            Ok(_) => return Err("OKT_RESULT is no file any more".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(CommandResult::default());
            }
            Err(error) => return Err(format!("cannot read OKT_RESULT: {error}")),
        };
        let read = file.take(LONGEST_RESULT).read_to_end(&mut text);
        read.map_err(|error| format!("cannot read OKT_RESULT: {error}"))?;
        parse(&String::from_utf8_lossy(&text))
    }
}

/// Creates or checks the parent directory of all attempts.
///
/// Users who may not list it can still pass through it to their own directory.
pub(crate) fn shared(under: &Path) -> io::Result<()> {
    private::directory(under, 0o711, private::sync)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", under.display())))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        forget(&self.directory);
    }
}

/// Returns the directory of an attempt.
pub(crate) fn place(under: &Path, id: &str, attempt: u32) -> PathBuf {
    under.join(format!("{id}.{attempt}"))
}

/// Removes a directory with all its content.
pub(crate) fn forget(directory: &Path) {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(directory = %directory.display(), %error, "cannot remove");
        }
        Ok(()) | Err(_) => {}
    }
}

fn give(path: &Path, person: Option<&Person>) -> io::Result<()> {
    match person {
        Some(person) if rustix::process::geteuid().is_root() => {
            chown(path, Some(person.uid), Some(person.gid))
        }
        Some(_) | None => Ok(()),
    }
}

/// Reports a line of progress: a percentage, a text, or both.
fn report(task: &Task, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let line = text.trim();
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match first.trim_end_matches('%').parse::<u8>() {
        Ok(percent) => task.progress(Some(percent), rest.trim()),
        Err(_) if line.is_empty() => {}
        Err(_) => task.progress(None, line),
    }
}

/// Parses the lines of `OKT_RESULT`.
pub(super) fn parse(text: &str) -> Result<CommandResult, String> {
    let mut result = CommandResult::default();
    let lines = (1..).zip(text.lines());
    for (n, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let at = format!("line {n} of OKT_RESULT");
        let Some((key, value)) = line.split_once(':') else {
            return Err(format!("{at} is not `key: text`"));
        };
        let value = value.trim().to_owned();
        match key.trim() {
            "event" if is_state(&value) => result.event = Some(value),
            "event" => return Err(format!("{at}: {value:?} is no state")),
            "reason" if is_state(&value) => result.reason = Some(value),
            "reason" => {
                let wanted = "a reason is one word such as DiskFull";
                return Err(format!("{at}: {value:?}: {wanted}"));
            }
            "message" => match &mut result.message {
                Some(message) => *message = format!("{message}\n{value}"),
                None => result.message = Some(value),
            },
            "permanent" => result.permanent = value == "true",
            key => {
                let known = "there are event, reason, message and permanent";
                return Err(format!("{at}: unknown key {key:?}, {known}"));
            }
        }
    }
    Ok(result)
}

impl CommandResult {
    /// Returns a success.
    pub(crate) fn done(self) -> Done {
        Done {
            event: self.event,
            message: self.message.unwrap_or_default(),
        }
    }

    /// Returns a failure, with the command's own words or else with these.
    pub(crate) fn fault(self, reason: &str, message: String) -> Fault {
        Fault {
            reason: self.reason.unwrap_or_else(|| reason.to_owned()),
            message: self.message.unwrap_or(message),
            permanent: self.permanent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_line_by_line() {
        let text = "event: Reviewing\n\nmessage: 3 of 4 files\nmessage: one was locked: x.wal\n";
        let expected = CommandResult {
            event: Some("Reviewing".to_owned()),
            message: Some("3 of 4 files\none was locked: x.wal".to_owned()),
            ..CommandResult::default()
        };
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn a_malformed_result_is_refused_with_its_line() {
        let error = |text| parse(text).expect_err("it is wrong");
        assert_eq!(error("done"), "line 1 of OKT_RESULT is not `key: text`");
        assert_eq!(
            error("\nevent: in review"),
            "line 2 of OKT_RESULT: \"in review\" is no state"
        );
        assert_eq!(
            error("evnt: Reviewing"),
            "line 1 of OKT_RESULT: unknown key \"evnt\", there are event, reason, message and permanent"
        );
    }
}
