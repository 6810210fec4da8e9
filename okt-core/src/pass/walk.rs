//! The walk through a pass graph: where it is, and what has come of it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::AddAssign;
use core::time::Duration;

use super::{End, Failed, Step};
use crate::graph::{Cause, ConditionStatus, Graph, Mark, StateId};
use crate::lifecycle::Answer;

/// What was done in the cluster for the steps so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Operations {
    /// How many objects were applied, because they were not as declared.
    pub applied: u32,
    /// How many were deleted, because they are declared no more.
    pub deleted: u32,
    /// How many of either could not be done.
    pub failed: u32,
}

impl Operations {
    /// Whether nothing was done, and nothing could not be.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl AddAssign for Operations {
    fn add_assign(&mut self, more: Self) {
        self.applied = self.applied.saturating_add(more.applied);
        self.deleted = self.deleted.saturating_add(more.deleted);
        self.failed = self.failed.saturating_add(more.failed);
    }
}

/// What the steps so far have come to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// How many steps were taken.
    pub steps: u32,
    /// How many of them failed.
    pub failures: u32,
    /// The first failure.
    pub failure: Option<Failed>,
    /// Somebody gave up, or a failure was for good: trying again is of no use.
    pub gave_up: bool,
    /// The soonest time after which a step asked for another walk.
    pub again: Option<Duration>,
    /// What was done in the cluster.
    pub operations: Operations,
}

/// How a walk ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// At a leaf; everything is as it was declared.
    Complete,
    /// At a leaf, but a step said of its condition (this one) that it is not as declared.
    Short {
        /// The type of the condition, or the state where it has none.
        what: String,
        /// One word.
        reason: String,
        /// For people.
        message: String,
    },
    /// A step waits.
    Waits {
        /// One word.
        reason: String,
        /// For people.
        message: String,
        /// Whether the waits grow.
        growing: bool,
    },
    /// A step failed, and nobody gave up: it is tried again.
    Failed(Failed),
    /// Nothing will happen until something changes: a failure for good, or somebody gave up.
    GaveUp {
        /// One word.
        reason: String,
        /// For people.
        message: String,
    },
}

/// A state that was gone through, and how its step ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Visited {
    /// The state.
    pub state: StateId,
    pub(crate) said: Said,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    /// Done; with words of its own where it had some.
    Done {
        own: Option<(ConditionStatus, String)>,
        text: Option<String>,
    },
    Waits {
        reason: String,
        message: String,
    },
    Failed(Failed),
    GaveUp {
        message: String,
    },
}

/// A walk through a pass graph, from its entry to a leaf.
///
/// Triggers by cause are tried in the order of their declaration, before what the handler says; `on_delete` first.
/// A step that failed, waits or gave up and has no trigger for it ends the walk.
#[derive(Clone, Debug)]
pub struct Walk<'g> {
    graph: &'g Graph<'g>,
    deleting: bool,
    finalizing: bool,
    at: Option<StateId>,
    /// The states whose steps are over, in order.
    visited: Vec<Visited>,
    results: Results,
    /// Reason and message of the first wait, and whether the waits grow.
    waits: Option<(String, String, bool)>,
    /// The message of the first give-up.
    gave_up: Option<String>,
    /// A leaf was reached.
    ended: bool,
}

impl<'g> Walk<'g> {
    /// At the entry of a pass, of an object that is being deleted or is not.
    pub fn begin(graph: &'g Graph<'g>, deleting: bool) -> Self {
        Self {
            graph,
            deleting,
            finalizing: false,
            at: graph.entry(),
            visited: Vec::new(),
            results: Results::default(),
            waits: None,
            gave_up: None,
            ended: false,
        }
    }

    /// Whether the pass has something to do for an object that is being deleted.
    pub fn finalizes(graph: &Graph<'_>) -> bool {
        let mut triggers = graph.states.iter().flat_map(|state| state.triggers);
        triggers.any(|trigger| trigger.cause == Cause::OnDelete)
    }

    /// The state whose step is to be taken; none when the walk is over.
    pub fn at(&self) -> Option<StateId> {
        self.at
    }

    /// The states whose steps are over, in order.
    pub fn visited(&self) -> &[Visited] {
        &self.visited
    }

    /// What the steps so far have come to.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Takes what the step of the state where the walk is has said.
    ///
    /// Nothing happens when the walk is over.
    pub fn take(&mut self, said: Result<Step<Answer>, Failed>) {
        let Some(here) = self.at.take() else {
            return;
        };
        self.results.steps += 1;
        let failed = said.is_err();
        let (said, named) = self.note(said);
        self.visited.push(Visited { state: here, said });
        let Some(state) = self.graph.get(here) else {
            return;
        };
        if self.deleting && !self.finalizing {
            let out = (state.triggers.iter()).find(|trigger| trigger.cause == Cause::OnDelete);
            if let Some(out) = out {
                // What came before must not keep an object that has to go.
                self.finalizing = true;
                self.forget();
                return self.go(out.to);
            }
        }
        let raised = state.triggers.iter().find(|trigger| match trigger.cause {
            Cause::OnError { .. } => failed,
            Cause::OnGiveUp => self.results.gave_up,
            Cause::Named | Cause::After(_) | Cause::OnDelete | Cause::OnChange => false,
        });
        if let Some(raised) = raised {
            return self.go(raised.to);
        }
        match named {
            Some(Answer::To(to)) => self.go(to),
            Some(Answer::Next | Answer::Stay | Answer::Wait(_)) => match state.children.last() {
                Some(next) => self.go(*next),
                None => self.ended = state.is(Mark::Leaf),
            },
            None => {}
        }
    }

    /// What the steps before the way out have said is no reason to keep an object.
    fn forget(&mut self) {
        self.waits = None;
        self.gave_up = None;
        self.results = Results {
            steps: self.results.steps,
            operations: self.results.operations,
            ..Results::default()
        };
    }

    fn note(&mut self, said: Result<Step<Answer>, Failed>) -> (Said, Option<Answer>) {
        let step = match said {
            Ok(step) => step,
            Err(failure) => {
                self.fail(&failure);
                return (Said::Failed(failure), None);
            }
        };
        if let Some(time) = step.again {
            let results = &mut self.results;
            results.again = Some(results.again.map_or(time, |before| before.min(time)));
        }
        let text = step.text;
        match step.end {
            End::Done(answer) => (
                Said::Done {
                    own: step.own,
                    text,
                },
                Some(answer),
            ),
            End::Wait { reason, growing } => {
                let message = text.unwrap_or_default();
                if self.waits.is_none() {
                    self.waits = Some((reason.clone(), message.clone(), growing));
                }
                (Said::Waits { reason, message }, None)
            }
            End::GiveUp => {
                let message = text.unwrap_or_default();
                self.results.gave_up = true;
                if self.gave_up.is_none() {
                    self.gave_up = Some(message.clone());
                }
                (Said::GaveUp { message }, None)
            }
        }
    }

    fn fail(&mut self, failure: &Failed) {
        self.results.failures += 1;
        if self.results.failure.is_none() {
            self.results.failure = Some(failure.clone());
        }
        if failure.permanent {
            self.results.gave_up = true;
        }
    }

    fn go(&mut self, to: StateId) {
        let idle_leaf = self
            .graph
            .get(to)
            .is_some_and(|state| state.is(Mark::Leaf) && state.is(Mark::Idle));
        if idle_leaf {
            self.visited.push(Visited {
                state: to,
                said: Said::Done {
                    own: None,
                    text: None,
                },
            });
            self.ended = true;
        } else {
            self.at = Some(to);
        }
    }

    /// Counts what was done in the cluster.
    pub fn count(&mut self, operations: Operations) {
        self.results.operations += operations;
    }

    /// What a state has put did not come about after its step was over.
    pub fn blame(&mut self, state: StateId, failure: &Failed) {
        let blamed = self.visited.iter_mut().find(|it| it.state == state);
        match blamed {
            // It is said to have failed already, and has failed once.
            Some(blamed) if matches!(blamed.said, Said::Failed(_)) => return,
            Some(blamed) => blamed.said = Said::Failed(failure.clone()),
            None => {}
        }
        self.fail(failure);
    }

    /// Something is not as it should be yet, although the steps are over.
    pub fn wait(&mut self, reason: &str, message: &str) {
        if self.waits.is_none() {
            self.waits = Some((reason.to_owned(), message.to_owned(), false));
        }
    }

    /// It is what this state has put.
    pub fn hold(&mut self, state: StateId, reason: &str, message: &str) {
        self.unless_said(state, reason, message);
    }

    /// The walk ended before what a state has put was applied.
    pub fn unapplied(&mut self, state: StateId) {
        let message = "the pass ended before what this step asks for was applied";
        self.unless_said(state, "NotApplied", message);
    }

    /// A step that was done says this instead; one that was not has said why.
    fn unless_said(&mut self, state: StateId, reason: &str, message: &str) {
        let visited = self.visited.iter_mut().find(|it| it.state == state);
        if let Some(Visited {
            said: said @ Said::Done { .. },
            ..
        }) = visited
        {
            *said = Said::Waits {
                reason: reason.to_owned(),
                message: message.to_owned(),
            };
        }
    }

    /// How the walk ended; a give-up overrides failures, and those override waits.
    pub fn outcome(&self) -> Outcome {
        let results = &self.results;
        if results.gave_up {
            // Somebody who gives up in view of a failure has seen it.
            return match (&results.failure, &self.gave_up) {
                (Some(failure), _) => Outcome::GaveUp {
                    reason: failure.reason.clone(),
                    message: failure.message.clone(),
                },
                (None, gave_up) => Outcome::GaveUp {
                    reason: "GaveUp".to_owned(),
                    message: gave_up.clone().unwrap_or_default(),
                },
            };
        }
        if let Some(failure) = &results.failure {
            return Outcome::Failed(failure.clone());
        }
        if let Some((reason, message, growing)) = &self.waits {
            return Outcome::Waits {
                reason: reason.clone(),
                message: message.clone(),
                growing: *growing,
            };
        }
        if self.deleting && !(self.ended && self.finalizing) {
            return Outcome::Failed(Failed::retry(
                "NotFinalized",
                "the pass ended before it came to its way for deletion",
            ));
        }
        if !self.deleting || !self.finalizing {
            if let Some(short) = self.short() {
                return short;
            }
        } else if results.again.is_some() {
            return Outcome::Waits {
                reason: "Finalizing".to_owned(),
                message: "a step of the deletion asked to be called again".to_owned(),
                growing: false,
            };
        }
        Outcome::Complete
    }

    /// What keeps the object from being ready, in the words of its condition; permanent where nothing will happen until
    /// something changes.
    pub fn in_the_way(&self) -> Option<Failed> {
        Some(match self.outcome() {
            Outcome::Complete => return None,
            Outcome::Failed(failed) => failed,
            Outcome::Waits {
                reason, message, ..
            } => Failed::retry(reason, message),
            Outcome::Short {
                what,
                reason,
                message,
            } => Failed::retry(reason, format!("{what}: {message}")),
            Outcome::GaveUp { reason, message } => Failed::permanent(reason, message),
        })
    }

    /// The first step that was done and said of its condition that it is not as declared.
    fn short(&self) -> Option<Outcome> {
        self.visited.iter().find_map(|visited| {
            let state = self.graph.get(visited.state)?;
            let Said::Done {
                own: Some((status, reason)),
                text,
            } = &visited.said
            else {
                return None;
            };
            let mut conditions = state.conditions.iter();
            let what = match conditions.find(|declared| declared.status != *status) {
                Some(declared) => Some(declared.name),
                None if state.conditions.is_empty() && *status != ConditionStatus::True => {
                    Some(state.name)
                }
                None => None,
            };
            what.map(|what| Outcome::Short {
                what: what.to_owned(),
                reason: reason.clone(),
                message: text.clone().unwrap_or_default(),
            })
        })
    }
}
