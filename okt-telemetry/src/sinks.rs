//! Delivers events to sinks, each by a task and a bounded queue of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use okt_wire::texts::panic_text;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::event::{LifecycleEvent, Occurrence};
use super::outbox::Outbox;

/// How many events wait for one sink at most. An event takes about 1 KB.
const CAPACITY: usize = 10_000;

/// Receives what happens to the objects of an operator: an audit log, a message queue, metrics of your own.
///
/// Add one with [`Operator::sink`](https://docs.rs/okt/latest/okt/struct.Operator.html#method.sink).
///
/// ```
/// use std::sync::Arc;
/// use okt::{LifecycleEvent, Occurrence, Sink};
///
/// struct AuditLog;
///
/// impl Sink for AuditLog {
///     async fn record(&self, event: Arc<LifecycleEvent>) {
///         if let Occurrence::Transition { transition, .. } = &event.occurrence {
///             let name = event.object.name.as_deref().unwrap_or_default();
///             println!("{} {name}: {} -> {}", event.at, transition.from, transition.to);
///         }
///     }
/// }
/// ```
///
/// # Guarantees
///
/// - A sink gets an event only after what it is about was recorded, and the events of an object in their order.
/// - A sink gets one event at a time. It slows neither reconciliations nor other sinks: up to 10,000 events wait for it,
///   then the operator drops new ones and logs how many.
/// - When the operator stops, it waits for the sinks as it waits for work
///   ([`Operator::shutdown_limit`](https://docs.rs/okt/latest/okt/struct.Operator.html#method.shutdown_limit)).
///
/// Events are not stored: those that a crash interrupts are lost. The history in the status keeps the transitions.
pub trait Sink: Send + Sync + 'static {
    /// Takes one event. If it panics, the operator logs the panic and goes on with the next event.
    fn record(&self, event: Arc<LifecycleEvent>) -> impl Future<Output = ()> + Send;

    /// Returns whether the sink wants an event about this; everything by default. It is called during a reconciliation,
    /// so it must be quick.
    fn wants(&self, occurrence: &Occurrence) -> bool {
        let _ = occurrence;
        true
    }
}

/// A sink of any type.
pub trait AnySink: Send + Sync {
    /// Takes an event, as [`Sink::record`] does.
    fn take(&self, event: Arc<LifecycleEvent>) -> BoxFuture<'_, ()>;
    /// Returns whether the sink wants such an event.
    fn wants(&self, occurrence: &Occurrence) -> bool;
}

impl<S: Sink> AnySink for S {
    fn take(&self, event: Arc<LifecycleEvent>) -> BoxFuture<'_, ()> {
        self.record(event).boxed()
    }

    fn wants(&self, occurrence: &Occurrence) -> bool {
        Sink::wants(self, occurrence)
    }
}

/// The queues of the sinks of one operator.
#[derive(Default)]
pub struct Sinks {
    queues: Vec<SinkQueue>,
}

struct SinkQueue {
    sink: Arc<dyn AnySink>,
    events: mpsc::Sender<Arc<LifecycleEvent>>,
    /// How many events were dropped since one was accepted last.
    dropped: AtomicU64,
}

/// The tasks that deliver to sinks. Dropping it aborts them.
pub struct Deliveries {
    tasks: JoinSet<()>,
    closing: CancellationToken,
}

impl Sinks {
    /// Starts to deliver to these sinks.
    pub fn start(sinks: Vec<Box<dyn AnySink>>) -> (Self, Deliveries) {
        let (mut tasks, closing) = (JoinSet::new(), CancellationToken::new());
        let each_queue = sinks.into_iter().map(|sink| {
            let (events, queue) = mpsc::channel(CAPACITY);
            let sink = Arc::<dyn AnySink>::from(sink);
            tasks.spawn(deliver(Arc::clone(&sink), queue, closing.clone()));
            SinkQueue {
                sink,
                events,
                dropped: AtomicU64::new(0),
            }
        });
        let queues = each_queue.collect();
        (Self { queues }, Deliveries { tasks, closing })
    }

    /// Returns whether a sink wants an event about this.
    pub(crate) fn want(&self, occurrence: &Occurrence) -> bool {
        self.queues.iter().any(|queue| queue.wants(occurrence))
    }

    /// Enqueues an event for every sink that wants it; it never waits.
    pub(crate) fn send(&self, event: &Arc<LifecycleEvent>) {
        for queue in &self.queues {
            if queue.wants(&event.occurrence) {
                queue.send(event);
            }
        }
    }
}

impl SinkQueue {
    /// Returns whether the sink wants an event about this; one that panics wants it.
    fn wants(&self, occurrence: &Occurrence) -> bool {
        let wants = AssertUnwindSafe(|| self.sink.wants(occurrence));
        std::panic::catch_unwind(wants).unwrap_or(true)
    }

    fn send(&self, event: &Arc<LifecycleEvent>) {
        match self.events.try_send(Arc::clone(event)) {
            Ok(()) => {
                let dropped = self.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    tracing::warn!(dropped, "a sink is too slow: it did not get these events");
                }
            }
            Err(_) => {
                if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::warn!(
                        "a sink is too slow: {CAPACITY} events wait for it, and new ones are dropped"
                    );
                }
            }
        }
    }
}

impl Deliveries {
    /// Starts to deliver transitions.
    pub fn deliver(&mut self, outbox: Arc<Outbox>) {
        let closing = self.closing.clone();
        self.tasks.spawn(async move { outbox.run(closing).await });
    }

    /// Accepts no more events, and waits until those that were accepted are delivered.
    pub async fn end(&mut self) {
        self.closing.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn deliver(
    sink: Arc<dyn AnySink>,
    mut queue: mpsc::Receiver<Arc<LifecycleEvent>>,
    closing: CancellationToken,
) {
    loop {
        let event = tokio::select! {
            event = queue.recv() => event,
            () = closing.cancelled(), if !queue.is_closed() => {
                queue.close();
                continue;
            }
        };
        let Some(event) = event else {
            return;
        };
        // Made within the future, so that a panic of the call itself is contained too.
        let taking = AssertUnwindSafe(async { sink.take(event).await });
        if let Err(panic) = taking.catch_unwind().await {
            tracing::error!("a sink failed: {}", panic_text(&*panic));
        }
    }
}
