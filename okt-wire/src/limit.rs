//! Limits the rate of the requests of a client.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Returns a client that sends at most this many requests per second on average, and at most `burst` at once.
///
/// Requests above that wait, in order. Watches count when they begin.
/// The API server limits each client itself (API Priority and Fairness), so this is only for clusters that do not.
/// Give it to the operator and to your code; not to a [`Membership`](https://docs.rs/okt/latest/okt/struct.Membership.html), whose renewals must not wait.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// let limited = okt::limit_requests(&client, 50, 100);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn limit_requests(client: &Client, per_second: u32, burst: u32) -> Client {
    let namespace = client.default_namespace().to_owned();
    let pause = Duration::from_secs(1).checked_div(per_second.max(1));
    let rate = Arc::new(Rate::new(pause.unwrap_or_default(), burst));
    let client = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, turn) = (client.clone(), rate.turn());
        async move {
            sleep_until(turn).await;
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// An average rate with bursts.
#[derive(Debug)]
pub struct Rate {
    /// The time between two requests.
    pause: Duration,
    /// How far requests may be ahead of the average.
    ahead: Duration,
    /// When the next request would be due by the average alone.
    next: Mutex<Instant>,
}

impl Rate {
    /// Returns a rate that admits `burst` at once, and then one after each pause.
    pub fn new(pause: Duration, burst: u32) -> Self {
        Self {
            pause,
            ahead: pause.saturating_mul(burst.max(1).saturating_sub(1)),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Returns when the next request may be sent.
    fn turn(&self) -> Instant {
        let now = Instant::now();
        let mut next = self.next.lock();
        self.take(&mut next, now)
    }

    /// Returns whether a request may be sent now; if not, it takes no turn.
    pub fn is_now(&self) -> bool {
        let now = Instant::now();
        let mut next = self.next.lock();
        let before = *next;
        let is_now = self.take(&mut next, now) <= now;
        if !is_now {
            *next = before;
        }
        is_now
    }

    /// Returns whether a whole burst may be sent.
    pub fn is_rested(&self) -> bool {
        self.rests_at() <= Instant::now()
    }

    /// Returns when a whole burst may be sent, if nothing is sent before.
    pub fn rests_at(&self) -> Instant {
        *self.next.lock()
    }

    fn take(&self, next: &mut Instant, now: Instant) -> Instant {
        let due = (*next).max(now);
        *next = due.checked_add(self.pause).unwrap_or(due);
        let gap = due.saturating_duration_since(now);
        let wait = gap.saturating_sub(self.ahead);
        now.checked_add(wait).unwrap_or(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn requests_come_in_bursts_and_at_the_rate_after_that() {
        let rate = Rate::new(Duration::from_millis(100), 5);
        let begun = Instant::now();
        let waits: Vec<u128> = (0..8).map(|_| (rate.turn() - begun).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 100, 200, 300]);
        tokio::time::advance(Duration::from_secs(10)).await;
        let now = Instant::now();
        let waits: Vec<u128> = (0..6).map(|_| (rate.turn() - now).as_millis()).collect();
        assert_eq!(
            waits,
            [0, 0, 0, 0, 0, 100],
            "what was not used is no credit beyond the burst"
        );
    }
}
