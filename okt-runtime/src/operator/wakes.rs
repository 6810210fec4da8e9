//! How often events of other objects bring one object forward: whoever may write those must not drive reconciliations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::clock::after;
use crate::resources::Name;

/// How long until an object may be woken once more, on average.
const PACE: Duration = Duration::from_secs(1);

/// By how much wakes may be ahead of that: ten at once.
const BURST: Duration = Duration::from_secs(10);

/// With how many objects those that were not woken of late are forgotten.
const MANY: usize = 1024;

/// Wakes objects; those that are named too often are woken once for all of it, later.
pub(crate) struct Wakes<W> {
    wake: W,
    objects: Mutex<HashMap<Name, Paced>>,
}

struct Paced {
    /// Until when the wakes so far are paid for.
    paid: Instant,
    /// One is to come.
    waits: bool,
}

impl<W: Fn(Name) + Send + Sync + 'static> Wakes<W> {
    /// Wakes by calling this.
    pub(crate) fn new(wake: W) -> Arc<Self> {
        Arc::new(Self {
            wake,
            objects: Mutex::default(),
        })
    }

    /// Something happened that concerns an object.
    pub(crate) fn wake(self: &Arc<Self>, name: Name) {
        let now = Instant::now();
        let mut objects = self.objects();
        if objects.len() >= MANY {
            objects.retain(|_, it| it.waits || it.paid > now);
        }
        let paced = objects.entry(name.clone()).or_insert(Paced {
            paid: now,
            waits: false,
        });
        if paced.waits {
            return;
        }
        let ahead = paced.paid.saturating_duration_since(now);
        paced.paid = after(ahead.saturating_add(PACE));
        if ahead < BURST {
            drop(objects);
            return (self.wake)(name);
        }
        paced.waits = true;
        let due = after(ahead.saturating_sub(BURST).max(PACE));
        drop(objects);
        let wakes = Arc::clone(self);
        tokio::spawn(async move {
            sleep_until(due).await;
            if let Some(paced) = wakes.objects().get_mut(&name) {
                paced.waits = false;
            }
            (wakes.wake)(name);
        });
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<Name, Paced>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_named_too_often_is_woken_once_a_second_and_none_is_lost() {
        let woken: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let wakes = Wakes::new({
            let woken = Arc::clone(&woken);
            move |_| woken.lock().expect("no panic").push(Instant::now())
        });
        let name = || (Some("default".to_owned()), "a".to_owned());
        for _ in 0..1000 {
            wakes.wake(name());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let last = Instant::now();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let woken = woken.lock().expect("no panic").clone();
        assert!((15..=25).contains(&woken.len()), "{}", woken.len());
        let final_one = woken.last().expect("a wake");
        assert!(
            *final_one + Duration::from_millis(20) >= last,
            "the last event is heeded"
        );
        // Another object does not wait.
        let before = wakes.objects().len();
        wakes.wake((None, "b".to_owned()));
        assert_eq!(wakes.objects().len(), before + 1);
    }
}
