//! The output of a command: its whole standard output up to a limit, and the end of its standard error.

use std::borrow::Cow;
use std::fmt;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest end of the standard error that is kept, in bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// The longest quote of an output or a body in a message that you allow to have one, in bytes.
///
/// A status has room for half a kibibyte.
pub(super) const SHOWN: usize = 256;

/// The longest quote in the debug log, in bytes.
pub(super) const LOGGED: usize = 4096;

/// The output of a command; `Debug` shows its size, not its content.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// The whole standard output.
    pub stdout: Vec<u8>,
    /// The end of the standard error, 64 KiB at most.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Returns the standard output as text; replaces invalid UTF-8.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// Returns the end of the standard error as text; replaces invalid UTF-8.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// Returns the size of the output for a message.
    pub(super) fn size(&self) -> String {
        let (stdout, stderr) = (self.stdout.len(), self.stderr.len());
        format!("{stdout} bytes on its standard output, {stderr} on its standard error")
    }

    /// Returns the quote for a message that may have one.
    pub(super) fn shown(&self) -> String {
        self.last_words(SHOWN)
    }

    /// Returns the quote for the debug log.
    pub(super) fn logged(&self) -> String {
        self.last_words(LOGGED)
    }

    /// Returns the end of the standard error, or of the standard output if the standard error is empty.
    fn last_words(&self, limit: usize) -> String {
        let printed = match self.stderr_text().trim() {
            "" => self.stdout_text(),
            _ => self.stderr_text(),
        };
        let text = printed.trim();
        let from = text.len().saturating_sub(limit);
        let shown = &text[text.ceil_char_boundary(from)..];
        let cut = if from > 0 { "…" } else { "" };
        format!("{cut}{shown}")
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("stdout", &format_args!("{} bytes", self.stdout.len()))
            .field("stderr", &format_args!("{} bytes", self.stderr.len()))
            .finish()
    }
}

/// Reads the standard output; returns whether it exceeds `limit`, and then stops reading.
pub(super) async fn read_all(
    stream: Option<impl AsyncRead + Unpin>,
    read: &mut Vec<u8>,
    limit: usize,
) -> bool {
    let Some(stream) = stream else { return false };
    let more = u64::try_from(limit).map_or(u64::MAX, |limit| limit.saturating_add(1));
    // The stream is a pipe in this process: errors of its source are reported elsewhere.
    let _ = stream.take(more).read_to_end(read).await;
    read.len() > limit
}

/// Reads all of the standard error and keeps its end.
pub(super) async fn read_end(stream: Option<impl AsyncRead + Unpin>, read: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    // As in `read_all`.
    while matches!(stream.read_buf(read).await, Ok(1..)) {
        if read.len() > 2 * STDERR_LIMIT {
            keep_end(read);
        }
    }
    keep_end(read);
}

/// Drops everything before the last [`STDERR_LIMIT`] bytes.
fn keep_end(read: &mut Vec<u8>) {
    read.drain(..read.len().saturating_sub(STDERR_LIMIT));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_the_end_of_the_standard_error_cut_between_characters() {
        let stderr = |text: &str| Output {
            stderr: text.as_bytes().to_vec(),
            stdout: b"result".to_vec(),
        };
        assert_eq!(stderr("no such table\n").shown(), "no such table");
        assert_eq!(stderr(" \n").shown(), "result");
        assert_eq!(Output::default().shown(), "");
        let long = stderr(&"é".repeat(500)).shown();
        assert_eq!(long, format!("…{}", "é".repeat(128)));
        let odd = stderr(&format!("{}x", "é".repeat(500))).shown();
        assert_eq!(odd, format!("…{}x", "é".repeat(127)));
    }

    #[test]
    fn the_debug_text_does_not_contain_the_output() {
        let output = Output {
            stdout: b"hunter2".to_vec(),
            stderr: b"hunter3".to_vec(),
        };
        let text = format!("{output:?}");
        assert_eq!(text, "Output { stdout: 7 bytes, stderr: 7 bytes }");
    }

    #[tokio::test]
    async fn the_end_of_stderr_is_kept_and_stdout_is_read_whole_or_refused() {
        let mut text = vec![b'a'; 5 * STDERR_LIMIT + 7];
        text.extend_from_slice(b"the end");
        let mut read = Vec::new();
        read_end(Some(&text[..]), &mut read).await;
        assert_eq!(read.len(), STDERR_LIMIT);
        assert!(read.ends_with(b"the end"));
        for (limit, more) in [(3, true), (4, false), (usize::MAX, false)] {
            let mut read = Vec::new();
            assert_eq!(read_all(Some(&b"four"[..]), &mut read, limit).await, more);
        }
    }
}
