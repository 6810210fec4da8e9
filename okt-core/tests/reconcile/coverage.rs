//! The decisions that were taken: a rule about a decision that is never taken proves nothing.

use std::collections::BTreeSet;
use std::fmt;

use crate::machine::{Decision, Effect};
use crate::world::World;

/// The decisions that were taken, without their numbers.
#[derive(Default)]
pub(crate) struct Coverage(BTreeSet<String>);

impl Coverage {
    /// Records the next decision, if there is one.
    pub(crate) fn note(&mut self, world: &World) {
        if !world.process.is_active() {
            return;
        }
        match world.clone().next_decision() {
            Decision::Rest(next) => {
                let why = match next.wait() {
                    Some(_) => "for a time",
                    None if next.is_settled() => "settled",
                    None => "others act",
                };
                self.0.insert(format!("rest: {why}"));
            }
            Decision::Do(Effect::Render(render)) => {
                let draft = &render.draft;
                self.insert("step", &draft.step);
                self.insert("not ready", &draft.not_ready);
                self.insert("work", &draft.work);
            }
            Decision::Do(effect) => self.insert("effect", &effect),
        }
    }

    fn insert(&mut self, what: &str, decided: &dyn fmt::Debug) {
        let decided = format!("{decided:?}");
        // A draft has parts of its own, and of a transition it matters that it is one.
        let parts = ["draft: ", "Transition ", "asked: "];
        let end = parts.iter().filter_map(|part| decided.find(part)).min();
        let words = decided[..end.unwrap_or(decided.len())].split(|it: char| !it.is_alphabetic());
        let mut words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.dedup();
        self.0.insert(format!("{what}: {}", words.join(" ")));
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|taken| writeln!(f, "{taken}"))
    }
}
