//! The standard output.

use std::io::{ErrorKind, Write, stdout};

/// Prints a text. A reader that has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot print: {error}"))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
