//! [`Injected`]: the handle that counts the strikes of a fault and ends it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{self, Instant};

use super::rule::Rule;

/// A strike: one occurrence of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Strike {
    /// The time of the strike, on tokio's clock.
    pub at: Instant,
    /// The fault (e.g. `409 Conflict`, `a dropped event`).
    pub fault: String,
    /// The request or event that it struck (e.g. `apply databases/status shop/orders of operator`).
    pub on: String,
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.on, self.fault)
    }
}

/// The handle of an injected fault or chaos; clones refer to the same one.
///
/// Dropping the handle does not end the fault; [`end`](Self::end) does.
///
/// # Example
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use kube::{Api, api::ListParams};
/// use okt_apiserver::{ApiServer, Fault};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ApiServer::new();
/// let outage = server.inject(Fault::unavailable().resource("secrets"));
///
/// let secrets: Api<Secret> = Api::all(server.client());
/// assert!(secrets.list(&ListParams::default()).await.is_err());
/// outage.struck_at_least(1).await; // returns at once, because it has struck
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

/// The counts and the state of one fault.
#[derive(Debug)]
pub(crate) struct Tally {
    number: u64,
    /// What goes wrong, in words.
    fault: String,
    counts: Mutex<Counts>,
    news: watch::Sender<News>,
    log: Log,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) matched: u64,
    /// The number of strikes that are settled, whether they happened yet or not.
    pub(super) settled: u64,
    pub(super) strikes: Vec<Strike>,
}

#[derive(Clone, Copy, Debug, Default)]
struct News {
    struck: u64,
    ended: bool,
    /// Only its handle tells what it did.
    forgotten: bool,
}

impl Injected {
    /// Returns the number of strikes.
    pub fn struck(&self) -> u64 {
        self.0.news.borrow().struck
    }

    /// Returns the number of requests or events that matched its limits until it ended, struck or
    /// not.
    ///
    /// With [`times(0)`](crate::Fault::times) a fault counts its matches and does nothing else.
    pub fn matched(&self) -> u64 {
        self.0.counts().matched
    }

    /// Returns its strikes, in order.
    pub fn strikes(&self) -> Vec<Strike> {
        self.0.counts().strikes.clone()
    }

    /// Waits until the fault has struck this often; waits forever if it does not.
    ///
    /// A strike counts when it happens: a strike after the commit counts when the write is done.
    pub async fn struck_at_least(&self, times: u64) {
        let mut news = self.0.news.subscribe();
        // The sender lives as long as this.
        let _ = news.wait_for(|news| news.struck >= times).await;
    }

    /// Shows the fault to tests in other languages.
    pub(crate) fn show(&self) -> Value {
        self.0.show()
    }

    /// Ends the fault: it strikes nothing more, and events that it held back are sent.
    pub fn end(&self) {
        self.0.news.send_modify(|news| news.forgotten = true);
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
    pub(super) fn new(number: u64, fault: String, log: &Log) -> Arc<Self> {
        Arc::new(Self {
            number,
            fault,
            counts: Mutex::default(),
            news: watch::Sender::default(),
            log: Arc::clone(log),
        })
    }

    /// Shows the fault to tests in other languages.
    pub(super) fn show(&self) -> Value {
        let struck = self.news.borrow().struck;
        let counts = self.counts();
        let strikes: Vec<_> = counts.strikes.iter().map(Strike::to_string).collect();
        json!({
            "id": self.number,
            "fault": self.fault,
            "matched": counts.matched,
            "struck": struck,
            "strikes": strikes,
        })
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock()
    }

    /// Settles a strike that is to happen later.
    pub(super) fn settle(self: &Arc<Self>, fault: String, on: String) -> Due {
        let tally = Arc::clone(self);
        Due { tally, fault, on }
    }

    /// Holds an event back until the fault ends, or until this moment.
    pub(super) fn hold(self: &Arc<Self>, until: Option<Instant>) -> Hold {
        let tally = Arc::clone(self);
        Hold { tally, until }
    }

    fn strike(&self, fault: String, on: String) {
        let at = Instant::now();
        let strike = Strike { at, fault, on };
        self.counts().strikes.push(strike.clone());
        self.log.lock().push(strike);
        self.news.send_modify(|news| news.struck += 1);
    }

    pub(super) fn end(&self) {
        self.news.send_modify(|news| news.ended = true);
    }

    pub(super) fn is_ended(&self) -> bool {
        self.news.borrow().ended
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.news.borrow().forgotten
    }

    /// Waits until the fault is ended.
    async fn ended(&self) {
        let mut news = self.news.subscribe();
        // The sender lives as long as this.
        let _ = news.wait_for(|news| news.ended).await;
    }
}

/// A strike that is settled and has not happened yet; it never happens if the client gives up
/// before.
#[derive(Debug)]
pub(crate) struct Due {
    tally: Arc<Tally>,
    fault: String,
    on: String,
}

impl Due {
    /// Returns the fault, in words.
    pub(crate) fn fault(&self) -> &str {
        &self.fault
    }

    /// Records that the strike happens now.
    pub(crate) fn happens(self) {
        self.tally.strike(self.fault, self.on);
    }
}

/// A hold that keeps an event back.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(super) tally: Arc<Tally>,
    /// The time at which it ends by itself.
    pub(super) until: Option<Instant>,
}

impl Hold {
    /// Waits until the hold ends.
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

/// A strike of a rule that is about to happen.
#[derive(Debug)]
pub(super) struct Struck {
    pub(super) rule: Arc<Rule>,
    /// The time that it takes.
    pub(super) time: Duration,
    pub(super) due: Due,
    /// How long it holds an event.
    pub(super) hold: Hold,
}
