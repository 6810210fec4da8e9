//! The progress of running work: its newest text, and a request to write it to the status.

use std::sync::Arc;

use okt_wire::limits::PROGRESS_LIMIT;
use parking_lot::{Mutex, MutexGuard};

/// The newest text of one action, shared between its handler and the reconciliations.
#[derive(Clone)]
pub(crate) struct Progress {
    latest: Arc<Mutex<Text>>,
    show: Arc<dyn Fn() + Send + Sync>,
}

struct Text {
    text: String,
    /// A reconciliation was requested and has not written the text yet.
    announced: bool,
}

impl Progress {
    /// Begins with the text of the attempt before; `show` requests a reconciliation.
    pub(crate) fn new(text: String, show: impl Fn() + Send + Sync + 'static) -> Self {
        let announced = false;
        Self {
            latest: Arc::new(Mutex::new(Text { text, announced })),
            show: Arc::new(show),
        }
    }

    /// Sets the text. Until it is written, only one reconciliation is requested, however often the text changes.
    pub(crate) fn set(&self, mut text: String) {
        text.truncate(text.floor_char_boundary(PROGRESS_LIMIT));
        let mut latest = self.latest.lock();
        if latest.text != text {
            latest.text = text;
            self.announce(latest);
        }
    }

    pub(crate) fn text(&self) -> String {
        self.latest.lock().text.clone()
    }

    /// Notes that this text is in the status.
    pub(crate) fn shown(&self, text: &str) {
        let mut latest = self.latest.lock();
        latest.announced = false;
        if latest.text != text {
            self.announce(latest);
        }
    }

    fn announce(&self, mut latest: MutexGuard<'_, Text>) {
        if !std::mem::replace(&mut latest.announced, true) {
            drop(latest);
            (self.show)();
        }
    }
}
