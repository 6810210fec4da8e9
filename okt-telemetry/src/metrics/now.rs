//! Gauges that are computed when the metrics are read: queues, objects, replicas.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use okt_wire::watch::longest;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::operators::{Gates, Inspected, Operators, QueueState, Reasons, Replica, Tally};

/// The priorities of the urgencies of the queue: controller-runtime gives -100 to what was listed, and 0 to the rest.
const PRIORITIES: [&str; 4] = ["-100", "-50", "0", "50"];

/// The gauges of all operators.
pub(super) struct Now(pub(super) Operators);

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Now")
    }
}

/// An operator at this moment.
struct Snapshot {
    controller: String,
    queue: QueueState,
    tally: Tally,
    silences: BTreeMap<String, Duration>,
    pending: Option<usize>,
}

impl Snapshot {
    fn of((controller, parts): (String, Vec<Arc<dyn Inspected>>)) -> Self {
        let (mut queue, mut tally) = (QueueState::default(), Tally::default());
        // All parts of an operator have one outbox.
        let pending = parts.first().and_then(|part| part.pending());
        for part in &parts {
            queue.add(part.queue());
            part.tally(&mut tally);
        }
        Self {
            controller,
            queue,
            tally,
            silences: longest(parts.iter().flat_map(|part| part.silences())),
            pending,
        }
    }
}

impl Collector for Now {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let running = self.0.running();
        let parts = running.values().flatten();
        let replicas: BTreeMap<String, Replica> = parts
            .filter_map(|part| part.replica())
            .map(|replica| (replica.group.clone(), replica))
            .collect();
        let all: Vec<Snapshot> = running.into_iter().map(Snapshot::of).collect();
        let mut gauges = Gauges(encoder);
        gauges.queues(&all)?;
        gauges.objects(&all)?;
        gauges.gates(&all)?;
        gauges.watches(&all)?;
        gauges.deliveries(&all)?;
        gauges.replicas(&replicas)
    }
}

struct Gauges<'a>(DescriptorEncoder<'a>);

impl Gauges<'_> {
    /// Encodes a metric with a series for each sample.
    fn gauge<L: EncodeLabelSet>(
        &mut self,
        (name, help): (&str, &str),
        samples: impl Iterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let encoder = &mut self.0;
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn queues(&mut self, all: &[Snapshot]) -> fmt::Result {
        let depths = all.iter().flat_map(|it| {
            let due = PRIORITIES.into_iter().zip(it.queue.due);
            due.map(|(priority, due)| {
                let name = &*it.controller;
                let labels = [("name", name), ("controller", name), ("priority", priority)];
                (labels, number(due))
            })
        });
        let named = (
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority",
        );
        self.gauge(named, depths)?;
        let active = all
            .iter()
            .map(|it| ([("controller", &*it.controller)], number(it.queue.active)));
        let named = (
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
        );
        self.gauge(named, active)?;
        let times = |of: fn(&QueueState) -> Duration| {
            all.iter().map(move |it| {
                let name = &*it.controller;
                let labels = [("name", name), ("controller", name)];
                (labels, of(&it.queue).as_secs_f64())
            })
        };
        let named = (
            "workqueue_unfinished_work_seconds",
            "How many seconds of work is in progress and not observed by work_duration yet",
        );
        self.gauge(named, times(|queue| queue.unfinished))?;
        let named = (
            "workqueue_longest_running_processor_seconds",
            "How many seconds the longest running reconciliation has been running",
        );
        self.gauge(named, times(|queue| queue.longest))
    }

    fn objects(&mut self, all: &[Snapshot]) -> fmt::Result {
        let by_state = |value: fn(&(usize, Duration)) -> f64| {
            all.iter().flat_map(move |it| {
                let controller = &*it.controller;
                let states = it.tally.states.iter();
                states.map(move |(state, counted)| {
                    (
                        [("controller", controller), ("state", *state)],
                        value(counted),
                    )
                })
            })
        };
        let named = (
            "okt_objects",
            "Objects that this replica acts on, by the state on record",
        );
        self.gauge(named, by_state(|(objects, _)| number(*objects)))?;
        let named = (
            "okt_longest_in_state_seconds",
            "How long the object that has been longest in a state has been there",
        );
        self.gauge(named, by_state(|(_, longest)| longest.as_secs_f64()))?;
        let by_reason = |of: fn(&Tally) -> &Reasons| {
            all.iter().flat_map(move |it| {
                let controller = &*it.controller;
                of(&it.tally).0.iter().map(move |(reason, objects)| {
                    (
                        [("controller", controller), ("reason", reason.as_str())],
                        number(*objects),
                    )
                })
            })
        };
        let named = (
            "okt_stalled_objects",
            "Objects that have stalled, by the reason of their condition",
        );
        self.gauge(named, by_reason(|tally| &tally.stalled))?;
        let named = (
            "okt_reconciling_objects",
            "Objects on their way, by the reason of their condition",
        );
        self.gauge(named, by_reason(|tally| &tally.reconciling))
    }

    fn gates(&mut self, all: &[Snapshot]) -> fmt::Result {
        let by_group = |of: fn(&Tally) -> &Gates| {
            all.iter().flat_map(move |it| {
                let gates = of(&it.tally).0.iter();
                let counted = gates.flat_map(|(gate, groups)| {
                    let none = groups.is_empty().then_some(("", &0));
                    let groups = groups
                        .iter()
                        .map(|(group, number)| (group.as_str(), number));
                    groups
                        .chain(none)
                        .map(move |(group, number)| (gate.as_str(), group, number))
                });
                counted.map(|(gate, group, objects)| {
                    let controller = &*it.controller;
                    let labels = [("controller", controller), ("gate", gate), ("group", group)];
                    (labels, number(*objects))
                })
            })
        };
        let named = (
            "okt_gate_waiting",
            "Objects that wait before a gate, by the group of its limit",
        );
        self.gauge(named, by_group(|tally| &tally.waiting))?;
        let named = (
            "okt_gate_inside",
            "Objects in the states of a gate, by the group of its limit",
        );
        self.gauge(named, by_group(|tally| &tally.inside))
    }

    fn watches(&mut self, all: &[Snapshot]) -> fmt::Result {
        let silences = all.iter().flat_map(|it| {
            let controller = &*it.controller;
            let of_kind = move |(kind, silence): (&'_ String, &Duration)| {
                let labels = [
                    ("controller", controller.to_owned()),
                    ("kind", kind.clone()),
                ];
                (labels, silence.as_secs_f64())
            };
            it.silences.iter().map(of_kind)
        });
        let named = (
            "okt_watch_silence_seconds",
            "How long ago the API server last served the watch of a kind; a quiet watch has a message about once a minute",
        );
        self.gauge(named, silences)
    }

    fn deliveries(&mut self, all: &[Snapshot]) -> fmt::Result {
        let pending = all
            .iter()
            .filter_map(|it| Some(([("controller", &*it.controller)], number(it.pending?))));
        let named = (
            "okt_deliveries_pending",
            "Transitions that are to be delivered (CloudEvents)",
        );
        self.gauge(named, pending)
    }

    fn replicas(&mut self, replicas: &BTreeMap<String, Replica>) -> fmt::Result {
        let of = |value: fn(&Replica) -> f64| {
            replicas
                .values()
                .map(move |it| ([("name", it.group.as_str())], value(it)))
        };
        let named = (
            "leader_election_master_status",
            "1 where this replica leads or acts on a part of the objects, 0 where it stands by",
        );
        self.gauge(named, of(|it| number(usize::from(it.ranges > 0))))?;
        let named = (
            "okt_ranges_held",
            "On how many of the 64 ranges of the objects this replica acts",
        );
        self.gauge(named, of(|it| number(it.ranges)))?;
        let named = (
            "okt_epoch",
            "The epoch of this replica: it grows whenever objects go to another replica",
        );
        self.gauge(named, of(|it| whole(it.epoch)))
    }
}

fn number(count: usize) -> f64 {
    whole(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Returns a number as a sample.
#[expect(clippy::cast_precision_loss, reason = "samples are 64-bit floats")]
pub(super) fn whole(number: u64) -> f64 {
    number as f64
}
