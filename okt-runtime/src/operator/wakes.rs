//! Limits how often events of other objects enqueue one object, so that their writers do not control the
//! reconciliations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use okt_wire::clock::after;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::resources::Name;

/// The minimum average time between two wake-ups of an object.
const PACE: Duration = Duration::from_secs(1);

/// How far wake-ups may be ahead of that average: ten at once.
const BURST: Duration = Duration::from_secs(10);

/// At this number of objects those that were not woken recently are forgotten.
const MANY: usize = 1024;

/// Wakes objects. An object that is named too often is woken once, later, for all these events.
pub(crate) struct Wakes {
    wake: Box<dyn Fn(Name) + Send + Sync>,
    objects: Mutex<HashMap<Name, Paced>>,
}

struct Paced {
    /// The time up to which the wake-ups so far have used the rate.
    paid: Instant,
    /// Whether a delayed wake-up is planned.
    waits: bool,
}

impl Wakes {
    /// Creates it; `wake` is called to wake an object.
    pub(crate) fn new(wake: impl Fn(Name) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            wake: Box::new(wake),
            objects: Mutex::default(),
        })
    }

    /// Wakes an object, at once or later, because an event concerns it.
    pub(crate) fn wake(self: &Arc<Self>, name: Name) {
        let now = Instant::now();
        let mut objects = self.objects.lock();
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
            if let Some(paced) = wakes.objects.lock().get_mut(&name) {
                paced.waits = false;
            }
            (wakes.wake)(name);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_object_with_too_many_requests_is_reconciled_once_a_second_and_none_is_lost() {
        let woken: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let wakes = Wakes::new({
            let woken = Arc::clone(&woken);
            move |_| woken.lock().push(Instant::now())
        });
        let name = || (Some("default".to_owned()), "a".to_owned());
        for _ in 0..1000 {
            wakes.wake(name());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let last = Instant::now();
        tokio::time::sleep(Duration::from_secs(5)).await;
        let woken = woken.lock().clone();
        assert!((15..=25).contains(&woken.len()), "{}", woken.len());
        let final_one = woken.last().expect("a wake");
        assert!(
            *final_one + Duration::from_millis(20) >= last,
            "an object is woken for the last event"
        );
        // Another object does not wait.
        let before = wakes.objects.lock().len();
        wakes.wake((None, "b".to_owned()));
        assert_eq!(wakes.objects.lock().len(), before + 1);
    }
}
