//! A trace as text, so that a person can follow it.

use okt_core::StateId;
use okt_core::decide::Verdict;
use okt_core::record::Recorded;

use crate::event::Event;
use crate::machine::{Decision, Draft, Effect};
use crate::world::World;

/// Prints every event with its number, every decision, and what comes of them.
pub(crate) fn write(mut world: World, events: &[Event]) -> String {
    let mut text = String::new();
    for (number, event) in events.iter().enumerate() {
        let decision = match event {
            Event::Decides(_) => world.decision_in_words(),
            _ => String::new(),
        };
        text.push_str(&format!("{number:>5}  {event:?}{decision}\n"));
        world = world.after(*event);
        if world.broken.is_some() {
            break;
        }
    }
    let World {
        stored,
        presence,
        cluster,
        permits,
        process,
        ..
    } = world;
    text + &format!("{presence:?} {cluster:?} {permits:?}\nstored: {stored:#?}\n{process:#?}\n")
}

impl World {
    fn decision_in_words(&self) -> String {
        match self.clone().next_decision() {
            Decision::Do(Effect::Render(it)) => self.draft_in_words("renders", &it.draft),
            Decision::Do(Effect::Commit(it)) => self.draft_in_words("writes", &it.draft),
            Decision::Do(Effect::ChangeWork(it)) => self.draft_in_words("works", &it.draft),
            decision => format!(": {decision:?}"),
        }
    }

    fn draft_in_words(&self, verb: &str, draft: &Draft) -> String {
        let life = self.case.life;
        let name = |id: StateId| life.map_or("an unknown state", |life| life.name_of(id));
        let record = match &draft.record {
            Recorded::Nothing => "no record".to_owned(),
            Recorded::At(at) => format!("{} ({}, {:?})", name(at.state), at.transition, at.action),
        };
        let step = match draft.step {
            Verdict::Go(go) => format!("to {} by {:?} for {:?}", name(go.to), go.by, go.why),
            step => format!("{step:?}"),
        };
        let Draft {
            not_ready, work, ..
        } = draft;
        format!(": {verb} {record}; step {step}; not ready {not_ready:?}; work {work:?}")
    }
}
