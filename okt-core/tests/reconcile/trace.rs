//! This file prints a trace in words, so that a person can follow it.

use okt_core::StateId;
use okt_core::decide::Verdict;
use okt_core::record::Recorded;

use crate::cases::Case;
use crate::event::{EffectOutcome, Event};
use crate::machine::{Decision, Draft, Effect, ObservationResult};
use crate::world::World;

/// Prints every event with its number, and every decision.
pub(crate) fn tell(mut world: World, events: &[Event]) -> String {
    let mut text = String::new();
    for (number, event) in events.iter().enumerate() {
        let line = match event {
            Event::Decides(outcome) => world.decision_in_words(*outcome),
            event => in_words(world.case, *event),
        };
        text.push_str(&format!("{number:>5}  {line}\n"));
        world = world.after(*event);
        if world.broken.is_some() {
            break;
        }
    }
    text.push_str(&world.in_words());
    text
}

impl World {
    fn decision_in_words(&self, outcome: EffectOutcome) -> String {
        let decision = match self.clone().next_decision() {
            Decision::Rest(next) => match next.wait() {
                Some(wait) => format!("rests for {wait:?}"),
                None if next.is_settled() => "rests, nothing is left".to_owned(),
                None => "rests, others act".to_owned(),
            },
            Decision::Do(Effect::Render(it)) => {
                format!("renders {}", self.draft_in_words(&it.draft))
            }
            Decision::Do(Effect::Commit(it)) => {
                format!("writes {}", self.draft_in_words(&it.draft))
            }
            Decision::Do(Effect::ChangeWork(it)) => {
                format!("changes the work: {}", self.draft_in_words(&it.draft))
            }
            Decision::Do(effect) => format!("performs {effect:?}"),
        };
        match outcome {
            EffectOutcome::Works => format!("    the operator {decision}"),
            outcome => format!("    the operator {decision}, which comes to {outcome:?}"),
        }
    }

    fn draft_in_words(&self, draft: &Draft) -> String {
        let step = match draft.step {
            Verdict::Go(go) => format!(
                "go to {} by {:?} for {:?}",
                name(self.case, go.to),
                go.by,
                go.why
            ),
            step => format!("{step:?}"),
        };
        let record = self.record_in_words(&draft.record);
        format!(
            "{record}; step {step}; not ready {:?}; work {:?}",
            draft.not_ready, draft.work
        )
    }

    fn record_in_words(&self, recorded: &Recorded) -> String {
        let Recorded::At(record) = recorded else {
            return "no record".to_owned();
        };
        let action = match record.action {
            Some(action) => format!("run {} {:?}", action.run, action.phase),
            None => "no action".to_owned(),
        };
        let state = name(self.case, record.state);
        format!("{state} (transition {}, {action})", record.transition)
    }

    fn in_words(&self) -> String {
        let stored = &self.stored;
        let at_hand = self.process.object();
        format!(
            "{:>5}  stored: {:?}, finalizer: {}, {}, {:?}\n\
             {:>5}  {:?}, reported: {:?}\n\
             {:>5}  the operator has {:?}, {}, leads: {}, draining: {}\n\
             {:>5}  {:?}\n\
             {:>5}  cluster: {:?}, permits: {:?}\n",
            "",
            stored.version,
            stored.finalizer,
            self.record_in_words(&stored.status.recorded),
            self.presence,
            "",
            stored.spec,
            stored.status.report,
            "",
            at_hand.version,
            self.record_in_words(&at_hand.status.recorded),
            self.process.leads,
            self.process.draining,
            "",
            self.process.machine,
            "",
            self.cluster,
            self.permits,
        )
    }
}

fn name(case: &Case, state: StateId) -> &'static str {
    let state = case.life.and_then(|life| life.get(state));
    state.map_or("an unknown state", |state| state.name)
}

fn in_words(case: &Case, event: Event) -> String {
    match event {
        Event::Decides(outcome) => format!("the operator decides, which comes to {outcome:?}"),
        Event::Deliver => "the cache gets the next version".to_owned(),
        Event::ActionEnds(said) => format!("the action ends: {said:?}"),
        Event::ActionIsLost => "the task of the action is lost".to_owned(),
        Event::CancelledTaskEnds => "the cancelled task has ended".to_owned(),
        Event::OwnedIsReady => "the owned object is ready".to_owned(),
        Event::PutIsGone => "the object that the pass put is gone".to_owned(),
        Event::PermitIsFree => "there is a permit for an action".to_owned(),
        Event::OthersLetGo => "the finalizers of others go".to_owned(),
        Event::TimePasses => "all waits are over".to_owned(),
        Event::Requeued => "the requeue comes, nothing else is due".to_owned(),
        Event::Restart(0) => "the operator restarts".to_owned(),
        Event::Restart(old) => format!("the operator restarts, its list is {old} versions old"),
        Event::LosesLead => "the operator loses leadership".to_owned(),
        Event::GetsLead => "the operator gets leadership back".to_owned(),
        Event::AnotherLeads { ends: true } => "another replica leads for a while".to_owned(),
        Event::AnotherLeads { ends: false } => {
            "another replica leads for a while; its action is lost with it".to_owned()
        }
        Event::Drain => "the operator begins a graceful shutdown".to_owned(),
        Event::DesiredState(state) => format!("the user asks for {}", name(case, state)),
        Event::Visit(state) => format!("the user asks for a visit of {}", name(case, state)),
        Event::Change => "the user changes the spec".to_owned(),
        Event::Delete => "the user deletes the object".to_owned(),
        Event::Pause => "the user pauses the object, or ends the pause".to_owned(),
        Event::Label => "the user changes a label".to_owned(),
        Event::Abandon => "the user abandons the object".to_owned(),
        Event::Garble => "the object becomes undecodable, or decodable again".to_owned(),
        Event::NewerMoves => "a newer operator moves the object".to_owned(),
        Event::NewerGoes => "the newer operator is removed".to_owned(),
        Event::Shows(ObservationResult::In(state)) => {
            format!("the application is in {} from now on", name(case, state))
        }
        Event::Shows(observed) => format!("the application is {observed:?} from now on"),
        Event::OthersWrite => "others write something into the status".to_owned(),
        Event::ExtraChanges => "the application's own fields change".to_owned(),
        Event::FailsForEver(write, fault) => {
            format!("every {write:?} write is {fault:?} from now on")
        }
        Event::Mends => "writes are carried out again".to_owned(),
        Event::FaultsStop => "-- from now on nothing unexpected happens --".to_owned(),
        Event::FaultsStopButOne => "-- from now on nothing else unexpected happens --".to_owned(),
        Event::ReconciledOnceMore => "-- the object is reconciled once more --".to_owned(),
    }
}
