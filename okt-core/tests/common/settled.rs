//! One reconciliation of an object that is at rest, by its machine.

use core::time::Duration;

use okt_core::backoff::Backoff;
use okt_core::machine::{
    ApplyResult, Decision, Effect, ExtraResult, Graphs, LastWrite, Machine, Object,
    ObservationResult, OperatorFacts, Requeue, ResourceStatus, Setup, StatusDiff, Time, Version,
};
use okt_core::{Graph, Recorded, StateId};

pub(crate) const OBSERVE_EVERY: Duration = Duration::from_secs(30);

/// An object that is at rest in this state, the operator's last write.
pub(crate) fn object(recorded: Recorded, revision: u64) -> (Machine, Object) {
    let version = Some(Version::Number(7));
    let machine = Machine::of(LastWrite {
        version,
        at: None,
        reported: true,
    });
    let object = Object {
        version,
        recorded,
        generation: 1,
        revision,
        finalizer: true,
        observe_every: OBSERVE_EVERY,
        ..Object::default()
    };
    (machine, object)
}

/// Reconciles an object: it is observed in its state, its resources are there and its status shows that.
pub(crate) fn reconcile(
    machine: &mut Machine,
    graph: &Graph<'_>,
    object: &Object,
    state: StateId,
) -> Requeue {
    let setup = Setup {
        graphs: Graphs {
            life: Some(graph),
            pass: None,
        },
        backoff: Backoff::default(),
        owns_kinds: false,
    };
    let leader = OperatorFacts {
        may_act: true,
        draining: false,
    };
    let now = Time::after_origin(Duration::from_mins(1));
    machine.read(object, now);
    loop {
        match machine.decide(&setup, leader, now) {
            Decision::Do(Effect::Observe(effect)) => {
                let observed = ObservationResult::In(state);
                machine.observed(effect, observed, Vec::new(), now);
            }
            Decision::Do(Effect::Apply(effect)) => {
                let applied = ApplyResult::Applied {
                    status: ResourceStatus::AsDeclared,
                    due: None,
                    outdated: None,
                    content: Some(0),
                };
                machine.applied(effect, applied, now);
            }
            Decision::Do(Effect::Render(effect)) => {
                let (same, asked) = (StatusDiff::None, ExtraResult::NotAsked);
                machine.rendered(effect, same, || 0, asked, &setup, now);
            }
            Decision::Do(effect) => panic!("an object at rest needs no {effect:?}"),
            Decision::Rest(requeue) => {
                machine.end();
                return requeue;
            }
        }
    }
}
