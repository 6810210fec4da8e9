//! What running work says of itself: the newest text, and a way to have it shown.

use std::sync::{Arc, Mutex, PoisonError};

use crate::schema::PROGRESS_LIMIT;

/// The newest text of one action, shared between its handler and the turns.
#[derive(Clone)]
pub(crate) struct Progress {
    text: Arc<Mutex<String>>,
    show: Arc<dyn Fn() + Send + Sync>,
}

impl Progress {
    /// `show` is called when there is something new.
    pub(crate) fn new(show: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            text: Arc::default(),
            show: Arc::new(show),
        }
    }

    pub(crate) fn say(&self, mut text: String) {
        if text.len() > PROGRESS_LIMIT {
            text.truncate(text.floor_char_boundary(PROGRESS_LIMIT));
        }
        let mut shown = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown != text {
            *shown = text;
            drop(shown);
            (self.show)();
        }
    }

    pub(crate) fn text(&self) -> String {
        self.text
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
