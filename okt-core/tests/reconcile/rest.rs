//! The rule that the object comes to rest when faults stop.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use okt_core::{Cause, Trigger};

use crate::event::{EffectOutcome, Event, Write};
use crate::machine::{Facts, NotReadyReason, RunEnd};
use crate::object::{About, part};
use crate::world::{OwnedObject, Presence, World};

/// An object that needs more steps never comes to rest.
const STEPS: usize = 900;

/// An object that needs more waits never comes to rest.
const TIMES: usize = 25;

/// A settled object is reconciled with fewer decisions.
const DECISIONS: u32 = 60;

/// After each wait two writes may fail: the write itself, and the one that reports the failure.
const FAILURES: u32 = 2;

/// The worlds from which rest was checked, so that each is checked once.
#[derive(Default)]
pub(crate) struct Rests {
    /// Whether every order of events is tried, and not only three.
    in_every_order: bool,
    tried: HashSet<u64>,
    /// Worlds on the way to a rest, each with the order of events.
    known: HashSet<u64>,
    /// Worlds at rest that make no request.
    silent: HashSet<u64>,
}

/// A world that does not come to rest.
pub(crate) struct Unrest {
    pub(crate) why: String,
    /// The events until this was found.
    pub(crate) events: Vec<Event>,
}

/// The order in which possible events happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Order {
    OperatorFirst,
    SurroundingsFirst,
    /// One event of the surroundings, then two decisions.
    Alternating,
}

impl Order {
    const ALL: [Self; 3] = [
        Self::OperatorFirst,
        Self::SurroundingsFirst,
        Self::Alternating,
    ];

    /// Returns the part of the step number that the next event depends on.
    fn phase(self, step: usize) -> usize {
        match self {
            Self::OperatorFirst | Self::SurroundingsFirst => 0,
            Self::Alternating => step % 3,
        }
    }

    fn next(self, world: &World, step: usize) -> Option<Event> {
        let (decision, surroundings) = world.calm_events();
        let event = surroundings.first().copied();
        let is_operator_first = match self {
            Self::OperatorFirst => true,
            Self::SurroundingsFirst => false,
            Self::Alternating => self.phase(step) != 0,
        };
        if is_operator_first {
            decision.or(event)
        } else {
            event.or(decision)
        }
    }
}

impl Rests {
    /// Tries every order of events: for small cases.
    pub(crate) fn in_every_order() -> Self {
        Self {
            in_every_order: true,
            ..Self::default()
        }
    }

    /// Returns the number of worlds from which rest was checked.
    pub(crate) fn count(&self) -> usize {
        self.tried.len()
    }

    /// Checks that the object comes to rest when faults stop.
    ///
    /// If writes still fail, or the operator is shutting down, the object must reach something else; that is checked
    /// too.
    pub(crate) fn check(&mut self, world: &World) -> Result<(), Unrest> {
        let calm = world.calmed();
        if self.tried.insert(calm.fingerprint()) {
            if self.in_every_order {
                let rest = self.comes_to_rest_in_every_order(calm.clone());
                after(Event::FaultsStop, rest)?;
            }
            for order in Order::ALL {
                after(Event::FaultsStop, self.comes_to_rest(calm.clone(), order))?;
            }
        }
        if world.failing.is_none() && !world.process.draining {
            return Ok(());
        }
        let calm = world.calmed_but_for_one();
        if !self.tried.insert(calm.fingerprint()) {
            return Ok(());
        }
        let came = if calm.process.draining {
            comes_to_its_end(calm)
        } else {
            keeps_trying(calm)
        };
        after(Event::FaultsStopButOne, came)
    }

    fn comes_to_rest(&mut self, mut world: World, order: Order) -> Result<(), Unrest> {
        let mut way = Way::default();
        let mut passed = HashSet::new();
        let mut times = 0;
        for step in 0.. {
            let here = hash(&(world.fingerprint(), order, order.phase(step)));
            if self.known.contains(&here) {
                break;
            }
            if step > STEPS || !passed.insert(here) {
                return way.ends("goes on for ever");
            }
            if let Some(event) = order.next(&world, step) {
                world = way.goes(&world, event)?;
                continue;
            }
            let Some(why) = world.unrest() else {
                self.stays_silent(&world, &mut way)?;
                break;
            };
            times += 1;
            if !world.process.has_timer {
                return way.ends(format!("stands still without a timer: {why}"));
            }
            if times > TIMES {
                return way.ends(format!("does not come to rest: {why}"));
            }
            world = way.goes(&world, Event::TimePasses)?;
        }
        self.known.extend(passed);
        Ok(())
    }

    /// Goes through every order of events, depth first.
    fn comes_to_rest_in_every_order(&mut self, world: World) -> Result<(), Unrest> {
        let mut way = Way::default();
        let mut forks: Vec<Fork> = Vec::new();
        let mut next = Some(world);
        loop {
            if let Some(world) = next.take() {
                let here = hash(&(world.fingerprint(), "every order"));
                let is_circle = forks.iter().any(|fork| fork.hash == here);
                if is_circle || forks.len() > STEPS {
                    return way.ends("goes on for ever");
                }
                let events = if self.known.contains(&here) {
                    Vec::new()
                } else {
                    self.ways_on(&world, &mut way)?
                };
                forks.push(Fork {
                    hash: here,
                    world,
                    events,
                });
            }
            let Some(fork) = forks.last_mut() else {
                return Ok(());
            };
            if let Some(event) = fork.events.pop() {
                next = Some(way.goes(&fork.world, event)?);
            } else {
                self.known.insert(fork.hash);
                forks.pop();
                way.0.pop();
            }
        }
    }

    /// Returns every event that can come next, or none if the object is at rest.
    fn ways_on(&mut self, world: &World, way: &mut Way) -> Result<Vec<Event>, Unrest> {
        let (decision, surroundings) = world.calm_events();
        let events: Vec<Event> = decision.into_iter().chain(surroundings).collect();
        if !events.is_empty() {
            return Ok(events);
        }
        let Some(why) = world.unrest() else {
            let before = way.0.len();
            self.stays_silent(world, way)?;
            way.0.truncate(before);
            return Ok(Vec::new());
        };
        if world.process.has_timer {
            Ok(vec![Event::TimePasses])
        } else {
            way.ends(format!("stands still without a timer: {why}"))
                .map(|()| Vec::new())
        }
    }

    /// Checks that one more reconciliation of a settled object makes no request.
    fn stays_silent(&mut self, world: &World, way: &mut Way) -> Result<(), Unrest> {
        let is_over = world.presence == Presence::Forgotten;
        if is_over || world.is_given_up_for_now() || !self.silent.insert(world.fingerprint()) {
            return Ok(());
        }
        let mut again = way.goes(world, Event::ReconciledOnceMore)?;
        while again.process.is_active() {
            if again.tally.decisions > world.tally.decisions + DECISIONS {
                return way.ends("the reconciliation of a settled object does not end");
            }
            again = way.goes(&again, Event::Decides(EffectOutcome::Works))?;
        }
        if again.tally.requests == world.tally.requests {
            Ok(())
        } else {
            way.ends("a settled object makes a request")
        }
    }
}

/// A world from which not every order of events was tried yet.
struct Fork {
    hash: u64,
    world: World,
    /// The events that are still to be tried.
    events: Vec<Event>,
}

/// Checks that, while writes always fail, a later retry always has a time, each retry makes few requests, and the
/// conditions report the failure if they can.
fn keeps_trying(mut world: World) -> Result<(), Unrest> {
    let mut way = Way::default();
    // Until the cache has the newest version, each version is a reason for a retry.
    world = way.comes_to_a_stop(world)?;
    for _ in 0..6 {
        let before = world.tally.failures;
        world = way.comes_to_a_stop(world)?;
        if world.tally.failures > before + FAILURES {
            return way.ends("many requests at once, while writes fail");
        }
        if world.unrest().is_none() {
            return Ok(());
        }
        if !world.process.has_timer {
            return way.ends("writes fail, and there is no time for the next retry");
        }
        world = way.goes(&world, Event::TimePasses)?;
    }
    world = way.comes_to_a_stop(world)?;
    let waits = world.facts_as_stored(|facts| facts.writes.wait.is_some());
    let failing = world.failing;
    let can_report = failing.is_some_and(|(write, _)| write == Write::Finalizer);
    if waits && can_report && world.stored.status.report.about != About::FailedWrite {
        return way.ends("a write fails for ever, and no condition reports it");
    }
    Ok(())
}

/// Checks that an operator that shuts down comes to its end: it must wait for nothing that does not come.
fn comes_to_its_end(mut world: World) -> Result<(), Unrest> {
    let mut way = Way::default();
    for _ in 0..TIMES {
        world = way.comes_to_a_stop(world)?;
        if !world.process.is_under_way || world.presence == Presence::Forgotten {
            return Ok(());
        }
        if !world.process.has_timer {
            return way.ends("an operator that stops waits for something that does not come");
        }
        world = way.goes(&world, Event::TimePasses)?;
    }
    way.ends("an operator that stops waits for ever")
}

/// The events so far.
#[derive(Default)]
struct Way(Vec<Event>);

impl Way {
    fn goes(&mut self, world: &World, event: Event) -> Result<World, Unrest> {
        self.0.push(event);
        let next = world.after(event);
        match &next.broken {
            None => Ok(next),
            Some(rule) => self.ends(rule.clone()).map(|()| next),
        }
    }

    /// Goes on until nothing can happen except that time passes.
    fn comes_to_a_stop(&mut self, mut world: World) -> Result<World, Unrest> {
        for step in 0..STEPS {
            match Order::OperatorFirst.next(&world, step) {
                Some(event) => world = self.goes(&world, event)?,
                None => return Ok(world),
            }
        }
        self.ends("goes on for ever").map(|()| world)
    }

    fn ends(&mut self, why: impl Into<String>) -> Result<(), Unrest> {
        Err(Unrest {
            why: why.into(),
            events: std::mem::take(&mut self.0),
        })
    }
}

/// Puts an event before a result.
fn after(event: Event, result: Result<(), Unrest>) -> Result<(), Unrest> {
    result.map_err(|mut unrest| {
        unrest.events.insert(0, event);
        unrest
    })
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl World {
    /// Returns whether a trigger of the state names the part of the spec, and the last work that the trigger leads to, or
    /// that of the entry, acted upon another value of the part.
    fn part_waits(&self) -> bool {
        let Some(life) = self.case.life else {
            return false;
        };
        let spec = &self.stored.spec;
        let state = self.stored.status.recorded.at();
        let state = state.and_then(|record| life.get(record.state));
        let names = |it: &&Trigger| matches!(it.cause, Cause::OnChangeOf(parts) if parts.has(0));
        let Some(trigger) = state.and_then(|state| state.triggers.iter().find(names)) else {
            return false;
        };
        let mut latest = self.history.works.iter().rev();
        let acted = latest.find(|it| it.state == trigger.to || Some(it.state) == life.entry());
        let differs = acted.is_some_and(|work| part(work.revision) != part(spec.revision));
        differs && !spec.deleting && !self.stored.is_paused()
    }

    /// Returns why the object is not at rest, although nothing can happen except that time passes.
    pub(crate) fn unrest(&self) -> Option<String> {
        let object = &self.stored;
        let (spec, report) = (&object.spec, &object.status.report);
        let is_ahead = |left: Option<Duration>| left.is_some_and(|left| !left.is_zero());
        let is_cached = self.process.cache.version == object.version;
        // The object is no longer the operator's, or only another version changes it.
        let is_left_alone = object.status.newer
            || (spec.deleting && !object.finalizer)
            || (self.process.truth.vain == Some(object.version) && !object.status.has_leftovers);
        if self.presence == Presence::Forgotten || (is_cached && is_left_alone) {
            return None;
        }
        let why = if self.process.is_active() {
            "it is being reconciled"
        } else if !is_cached {
            "the cache is behind"
        } else if spec.garbled {
            if report.about == About::Garbled {
                return None;
            }
            "it is not reported to be undecodable"
        } else if self.facts_as_stored(|it| is_ahead(it.resources.due) || is_ahead(it.pass.due)) {
            "a time is ahead"
        } else if self.facts_as_stored(|facts| facts.writes.wait.is_some()) {
            "a write waits"
        } else if self.part_waits() {
            "a part of the spec has changed, and the edge for its change is not taken"
        } else if object.status.has_leftovers {
            "something that others left is to be removed"
        } else if object.is_paused() {
            if report.is_paused {
                return None;
            }
            "it is not reported to be paused"
        } else if report.about != About::Life {
            "its conditions are not about its life"
        } else if !report.is_ready && !report.is_stalled {
            return Some(format!(
                "its conditions report that it goes on: {:?}",
                report.not_ready
            ));
        } else if object.status.generation != spec.generation {
            "its conditions are of an older generation"
        } else if object.status.extra != self.extra {
            "the application's own fields are older"
        } else if self.cluster.is_outdated && !self.stored.spec.paused {
            "it rests although an object is outdated"
        } else if self.place.is_some() && !self.is_inside(&self.stored) {
            "it keeps a place in a limit and is outside"
        } else if let Some(why) = self.request_waits() {
            why
        } else if report.is_ready
            && self.declares_owned(&object.status.recorded)
            && self.cluster.owned != OwnedObject::Ready
        {
            "it is reported to be ready, and what it owns is not"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// Returns what is true of the facts of a reconciliation that would begin now, with the object as it is stored.
    fn facts_as_stored(&self, is: impl FnOnce(&Facts<'_>) -> bool) -> bool {
        let mut machine = self.process.machine.clone();
        machine.read(&self.read(&self.stored), self.now);
        let facts = machine.facts(&self.setup(), self.operator(), self.now);
        is(&facts)
    }

    /// Returns whether the object rests because a step gave up: without faults the next run of the pass succeeds.
    fn is_given_up_for_now(&self) -> bool {
        self.stored.status.report.not_ready == NotReadyReason::Pass(RunEnd::GaveUp)
    }
}
