//! What a command printed: all of its standard output up to a limit, and the end of its standard error.

use std::borrow::Cow;
use std::fmt;

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of the standard error is kept, in bytes.
const STDERR_LIMIT: usize = 64 * 1024;

/// How much of what others said a message shows that is to have it, in bytes: a status has room for half a kibibyte.
pub(super) const SHOWN: usize = 256;

/// How much of it the debug log shows, in bytes.
pub(super) const LOGGED: usize = 4096;

/// What a command printed; `Debug` shows how much, not what.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// All that it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to its standard error, 64 KiB at most.
    pub stderr: Vec<u8>,
}

impl Output {
    /// The standard output as text; what is no UTF-8 is replaced.
    pub fn stdout_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stdout)
    }

    /// The end of the standard error as text; what is no UTF-8 is replaced.
    pub fn stderr_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// How much it is, for a message.
    pub(super) fn size(&self) -> String {
        let (stdout, stderr) = (self.stdout.len(), self.stderr.len());
        format!("{stdout} bytes on its standard output, {stderr} on its standard error")
    }

    /// The same as a message may show it that is to have it.
    pub(super) fn shown(&self) -> String {
        self.last_words(SHOWN)
    }

    /// The same as the debug log shows it.
    pub(super) fn logged(&self) -> String {
        self.last_words(LOGGED)
    }

    /// The end of the standard error; of a command that wrote nothing there, its standard output's.
    fn last_words(&self, limit: usize) -> String {
        let said = match self.stderr_text().trim() {
            "" => self.stdout_text(),
            _ => self.stderr_text(),
        };
        let said = said.trim();
        let from = said.len().saturating_sub(limit);
        let shown = &said[said.ceil_char_boundary(from)..];
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

/// Reads all of the standard output; says whether it was more than `limit`, and then reads no further.
pub(super) async fn read_all(
    stream: Option<impl AsyncRead + Unpin>,
    read: &mut Vec<u8>,
    limit: usize,
) -> bool {
    let Some(stream) = stream else { return false };
    let more = u64::try_from(limit).map_or(u64::MAX, |limit| limit.saturating_add(1));
    // The stream is a pipe in this process: what goes wrong with its source is told elsewhere.
    let _ = stream.take(more).read_to_end(read).await;
    read.len() > limit
}

/// Reads all of the standard error and keeps its end.
pub(super) async fn read_end(stream: Option<impl AsyncRead + Unpin>, read: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    // As above.
    while matches!(stream.read_buf(read).await, Ok(1..)) {
        if read.len() > 2 * STDERR_LIMIT {
            keep_end(read);
        }
    }
    keep_end(read);
}

/// Drops what is before the end that is kept.
fn keep_end(read: &mut Vec<u8>) {
    read.drain(..read.len().saturating_sub(STDERR_LIMIT));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_end_of_the_standard_error_cut_between_characters() {
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
    fn what_was_printed_is_not_in_the_debug_text() {
        let output = Output {
            stdout: b"hunter2".to_vec(),
            stderr: b"hunter3".to_vec(),
        };
        let text = format!("{output:?}");
        assert_eq!(text, "Output { stdout: 7 bytes, stderr: 7 bytes }");
    }

    #[tokio::test]
    async fn of_the_standard_error_the_end_is_kept_and_of_the_standard_output_all_or_nothing() {
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
