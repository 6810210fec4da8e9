//! This file tells what a fault did, and ends it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    sync::watch,
    time::{self, Instant},
};

/// Something that went wrong because a fault or a chaos said so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strike {
    /// When, on tokio's clock.
    pub at: Instant,
    /// What went wrong (e.g. `409 Conflict`, `a dropped event`).
    pub fault: String,
    /// What it struck (e.g. `apply databases/status shop/orders of operator`).
    pub on: String,
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.on, self.fault)
    }
}

/// A fault or a chaos that is at work; clones are the same one.
///
/// It goes on when this is dropped; [`end`](Self::end) ends it.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use kube::{Api, api::ListParams};
/// use okt_testing::{ApiServer, Fault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ApiServer::new();
/// let outage = server.inject(Fault::unavailable().resource("secrets"));
///
/// let secrets: Api<Secret> = Api::all(server.client());
/// assert!(secrets.list(&ListParams::default()).await.is_err());
/// outage.struck_at_least(1).await; // at once, as it has struck
/// assert_eq!(outage.strikes()[0].to_string(), "list secrets: 503 ServiceUnavailable");
///
/// outage.end();
/// assert!(secrets.list(&ListParams::default()).await.is_ok());
/// # }
/// ```
#[derive(Clone)]
pub struct Injected(pub(super) Arc<Tally>);

/// The strikes of all faults of a server, in order.
pub(super) type Log = Arc<Mutex<Vec<Strike>>>;

/// What is known of one fault.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
    news: watch::Sender<News>,
    log: Log,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) matched: u64,
    /// Strikes that are settled, whether they happened yet or not.
    pub(super) settled: u64,
    pub(super) strikes: Vec<Strike>,
}

#[derive(Clone, Copy, Debug, Default)]
struct News {
    struck: u64,
    ended: bool,
}

impl Injected {
    /// How often it struck.
    pub fn struck(&self) -> u64 {
        self.0.news.borrow().struck
    }

    /// How many requests or events its limits let in, whether it struck them or not, while it
    /// was at work.
    ///
    /// With [`times(0)`](crate::Fault::times) this counts and does nothing else.
    pub fn matched(&self) -> u64 {
        self.0.counts().matched
    }

    /// What it struck, in order.
    pub fn strikes(&self) -> Vec<Strike> {
        self.0.counts().strikes.clone()
    }

    /// Waits until it has struck so often; without end if it does not.
    ///
    /// A strike is told when it happens: one after the commit when the write is done.
    pub async fn struck_at_least(&self, times: u64) {
        let mut news = self.0.news.subscribe();
        // The sender lives as long as this.
        let _ = news.wait_for(|news| news.struck >= times).await;
    }

    /// Ends it: nothing more is struck, and what it held back is let go.
    pub fn end(&self) {
        self.0.end();
    }
}

impl fmt::Debug for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injected")
            .field("matched", &self.matched())
            .field("struck", &self.struck())
            .finish_non_exhaustive()
    }
}

impl Tally {
    pub(super) fn new(log: &Log) -> Arc<Self> {
        Arc::new(Self {
            counts: Mutex::default(),
            news: watch::Sender::default(),
            log: Arc::clone(log),
        })
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        lock(&self.counts)
    }

    /// Settles a strike, which is to happen.
    pub(super) fn settle(self: &Arc<Self>, fault: String, on: String) -> Due {
        let tally = Arc::clone(self);
        Due { tally, fault, on }
    }

    fn strike(&self, fault: String, on: String) {
        let at = Instant::now();
        let strike = Strike { at, fault, on };
        self.counts().strikes.push(strike.clone());
        lock(&self.log).push(strike);
        self.news.send_modify(|news| news.struck += 1);
    }

    pub(super) fn end(&self) {
        self.news.send_modify(|news| news.ended = true);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.news.borrow().ended
    }

    /// Waits until somebody ends it.
    async fn ended(&self) {
        let mut news = self.news.subscribe();
        // The sender lives as long as this.
        let _ = news.wait_for(|news| news.ended).await;
    }
}

/// A strike that is settled and has not happened yet; it never does where the client gives up
/// before.
#[derive(Debug)]
pub(crate) struct Due {
    tally: Arc<Tally>,
    fault: String,
    on: String,
}

impl Due {
    /// What goes wrong, in words.
    pub(crate) fn fault(&self) -> &str {
        &self.fault
    }

    /// It happens now.
    pub(crate) fn happens(self) {
        self.tally.strike(self.fault, self.on);
    }
}

/// What holds an event back.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(super) tally: Arc<Tally>,
    /// When it ends by itself.
    pub(super) until: Option<Instant>,
}

impl Hold {
    /// Waits until it lets go.
    pub(crate) async fn ended(&self) {
        let by_itself = async {
            match self.until {
                Some(until) => time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.tally.ended() => {}
            () = by_itself => {}
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it holds is complete before the lock is released.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
