//! The standard output.

use std::io::{Write, stdout};

/// Prints a text.
///
/// An error is ignored: the reader may have seen enough (`| head`), and a command does its work without a reader.
pub(crate) fn print(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}
