//! The metrics and the health of a process, for programs with a `main` of their own as well.

use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use prometheus_client::registry::Registry;

use super::metrics::Metrics;
use super::metrics::controller::Controller;
use super::metrics::lifecycle::LifecycleMetrics;
use super::metrics::requests::CountRequests;
use super::operators::{Inspected, Operators, Tally};

/// The metrics and the health of a process; clones share them.
///
/// [`Program`](https://docs.rs/okt/latest/okt/struct.Program.html) serves them (`run --metrics-address --health-address`). If you have a `main` of your own,
/// give them to your operators, and serve the texts:
///
/// ```
/// # use okt::{Application, Monitoring, Operator};
/// # fn example<A: Application>(config: kube::Config, application: A) -> kube::Result<Operator<A>> {
/// let monitoring = Monitoring::new();
/// let client = kube::client::ClientBuilder::try_from(config.clone())?
///     .with_layer(&monitoring.requests(&config))
///     .build();
/// let operator = Operator::new(client, application).monitoring(&monitoring);
/// // For `GET /metrics` and `GET /readyz`:
/// let (metrics, is_ready) = (monitoring.metrics(), monitoring.readiness().is_ok());
/// # Ok(operator)
/// # }
/// ```
///
/// `docs/monitoring.md` lists all metrics.
#[derive(Clone)]
pub struct Monitoring {
    operators: Operators,
    metrics: Metrics,
}

impl Monitoring {
    /// Creates the metrics of a process.
    #[must_use]
    pub fn new() -> Self {
        let operators = Operators::default();
        Self {
            metrics: Metrics::new(&operators),
            operators,
        }
    }

    /// Adds metrics of your own, with [`prometheus_client`].
    ///
    /// ```
    /// use okt::prometheus_client::metrics::counter::Counter;
    ///
    /// let monitoring = okt::Monitoring::new();
    /// let backups = Counter::<u64>::default();
    /// monitoring.register(|registry| registry.register("backups", "Backups taken", backups.clone()));
    /// backups.inc();
    /// assert!(monitoring.metrics().contains("backups_total 1"));
    /// ```
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.metrics.registry());
    }

    /// Returns a layer that counts the requests of a client (`rest_client_*`).
    pub fn requests(&self, config: &Config) -> CountRequests {
        CountRequests::new(&self.metrics.requests, config)
    }

    /// Returns all metrics in the text format of `OpenMetrics`: `application/openmetrics-text; version=1.0.0`.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }

    /// Returns whether all operators are ready, with a line for each: their CRDs fit, and their caches are filled.
    ///
    /// A replica on standby is ready too.
    ///
    /// # Errors
    ///
    /// The same lines, if an operator is not ready, or none runs yet.
    pub fn readiness(&self) -> Result<String, String> {
        let running = self.operators.running();
        let expected = self.operators.expected().into_iter();
        let absent: Vec<_> = expected.filter(|it| !running.contains_key(it)).collect();
        let (mut lines, mut is_ready) = (String::new(), !running.is_empty() && absent.is_empty());
        if running.is_empty() && absent.is_empty() {
            lines.push_str("[-] no operator runs yet\n");
        }
        for controller in absent {
            lines.push_str(&format!("[-] {controller}: it does not run yet\n"));
        }
        for (controller, parts) in &running {
            let unready = parts.iter().find_map(|part| part.unready());
            is_ready &= unready.is_none();
            let line = match unready {
                Some(why) => format!("[-] {controller}: {why}\n"),
                None => format!("[+] {controller}: ready{}\n", standing(parts)),
            };
            lines.push_str(&line);
        }
        if is_ready { Ok(lines) } else { Err(lines) }
    }

    /// Returns a page for people: the operators, their objects by state, what has stalled, the queue, the replica.
    pub fn status(&self) -> String {
        let mut page = self.readiness().unwrap_or_else(|lines| lines);
        for (controller, parts) in self.operators.running() {
            let mut tally = Tally::default();
            for part in &parts {
                part.tally(&mut tally);
            }
            page.push_str(&format!("\n{controller}\n"));
            for (state, (objects, longest)) in &tally.states {
                if *objects > 0 {
                    let longest = Duration::from_secs(longest.as_secs());
                    page.push_str(&format!("  {objects:>8}  {state} (longest {longest:?})\n"));
                }
            }
            for (what, reasons) in [
                ("stalled", &tally.stalled),
                ("on their way", &tally.reconciling),
            ] {
                for (reason, objects) in &reasons.0 {
                    page.push_str(&format!("  {objects:>8}  {what}: {reason}\n"));
                }
            }
            let due: usize = parts.iter().flat_map(|part| part.queue().due).sum();
            page.push_str(&format!("  {due:>8}  due\n"));
        }
        page
    }

    /// Notes that an operator of this name is to run: until then the process is not ready.
    #[doc(hidden)]
    pub fn expect(&self, controller: String) {
        self.operators.expect(controller);
    }

    /// Returns the metrics of the operator of this name, which reconciles so many objects at the same time.
    #[doc(hidden)]
    pub fn of(&self, controller: &str, workers: usize) -> Measured {
        Measured {
            name: controller.to_owned(),
            controller: Arc::new(self.metrics.controllers.of(controller, workers)),
            monitoring: self.clone(),
        }
    }
}

impl Default for Monitoring {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns what a replica does in its group, for the line of its operator.
fn standing(parts: &[Arc<dyn Inspected>]) -> String {
    match parts.first().and_then(|part| part.replica()) {
        None => String::new(),
        Some(replica) if replica.ranges == 0 => ", standby".to_owned(),
        Some(replica) if replica.ranges == replica.of => {
            format!(", leader, epoch {}", replica.epoch)
        }
        Some(replica) => format!(
            ", acts on {} of {} ranges, epoch {}",
            replica.ranges, replica.of, replica.epoch
        ),
    }
}

/// The monitoring of one operator; clones share it.
#[derive(Clone)]
pub struct Measured {
    /// The name of the controller.
    pub name: String,
    /// Its metrics.
    pub controller: Arc<Controller>,
    monitoring: Monitoring,
}

impl Measured {
    /// Returns the metrics of the lifecycle, which has these states.
    pub fn lifecycle(&self, states: Vec<&'static str>) -> LifecycleMetrics {
        self.monitoring.metrics.lifecycles.of(&self.name, states)
    }

    /// Monitors the operator, or its part in one namespace, for as long as it exists.
    pub fn inspect(&self, part: &Arc<impl Inspected + 'static>) {
        let part: Arc<dyn Inspected> = Arc::clone(part) as _;
        self.monitoring.operators.add(Arc::downgrade(&part));
    }
}
