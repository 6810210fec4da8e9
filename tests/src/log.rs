//! What an operator logs.
#![expect(
    clippy::missing_panics_doc,
    reason = "what a test expects and does not find is a panic, everywhere here"
)]

use std::io::{self, Write};
use std::sync::Arc;

use okt::tracing::subscriber::{DefaultGuard, set_default};
use parking_lot::Mutex;

/// What this thread logs; clones share it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Takes the log of this thread until the guard is dropped.
    pub fn taken() -> (Self, DefaultGuard) {
        let log = Self::default();
        let into = log.clone();
        let logs = tracing_subscriber::fmt().with_writer(move || into.clone());
        (log, set_default(logs.finish()))
    }

    /// Returns the log so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).expect("text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = self.0.lock();
        text.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
