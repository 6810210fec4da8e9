//! The path of an object, as one bounded line in which loops are folded.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The longest trail, in bytes.
pub const LIMIT: usize = 512;

/// The states an object went through, oldest first.
///
/// Loops of any length are folded: two states as `(Running<<>>Servicing)x2`, more as `(A>B>C)x5`.
/// The current state always stands alone at the end, followed by `>` unless it is a leaf.
/// Beyond [`LIMIT`] bytes the oldest parts are dropped.
///
/// ```
/// use okt_core::trail::Trail;
///
/// let mut trail = Trail::default();
/// for state in ["Start", "Running", "Servicing", "Running", "Servicing", "Running"] {
///     trail.push(state);
/// }
/// assert_eq!(trail.to_string(), ">Start>(Running<<>>Servicing)x2>Running>");
/// assert_eq!(trail.to_string().parse(), Ok(trail));
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Trail {
    steps: Vec<TrailStep>,
    ended: bool,
}

/// A state, or a loop that repeated several times in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TrailStep {
    State(String),
    Loop { round: Vec<String>, times: u32 },
}

impl Trail {
    /// Adds the state that was entered.
    pub fn push(&mut self, state: &str) {
        self.ended = false;
        // Everything before the new state is history now, and may be folded.
        while fold(&mut self.steps) {}
        self.steps.push(TrailStep::State(state.to_string()));
        self.bound();
    }

    /// Ends the trail: the last state is a leaf.
    pub fn end(&mut self) {
        self.ended = true;
        self.bound();
    }

    /// Returns the last state, which is the current state of the object.
    pub fn last(&self) -> Option<&str> {
        match self.steps.last()? {
            TrailStep::State(name) => Some(name),
            TrailStep::Loop { round, .. } => round.last().map(String::as_str),
        }
    }

    /// Returns the trail with other names of its states.
    #[must_use]
    pub fn renamed(mut self, name: impl Fn(&str) -> String) -> Self {
        for step in &mut self.steps {
            match step {
                TrailStep::State(state) => *state = name(state),
                TrailStep::Loop { round, .. } => {
                    for state in round {
                        *state = name(state);
                    }
                }
            }
        }
        self.bound();
        self
    }

    fn bound(&mut self) {
        while self.steps.len() > 1 && self.to_string().len() > LIMIT {
            self.steps.remove(0);
        }
    }
}

/// Folds the last steps once; returns whether it did.
fn fold(steps: &mut Vec<TrailStep>) -> bool {
    let plain = steps
        .iter()
        .rev()
        .take_while(|step| matches!(step, TrailStep::State(_)))
        .count();
    for length in 2..=plain {
        let tail = steps.len() - length;
        let round: Vec<String> = steps[tail..]
            .iter()
            .filter_map(|step| match step {
                TrailStep::State(name) => Some(name.clone()),
                TrailStep::Loop { .. } => None,
            })
            .collect();
        if let Some(TrailStep::Loop {
            round: before,
            times,
        }) = tail.checked_sub(1).and_then(|index| steps.get_mut(index))
            && *before == round
        {
            *times = times.saturating_add(1);
            steps.truncate(tail);
            return true;
        }
        if plain >= 2 * length && steps[tail - length..tail] == steps[tail..] {
            steps.truncate(tail - length);
            steps.push(TrailStep::Loop { round, times: 2 });
            return true;
        }
    }
    false
}

impl fmt::Display for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                TrailStep::State(name) => write!(f, ">{name}")?,
                TrailStep::Loop { round, times } => {
                    let between = if round.len() == 2 { "<<>>" } else { ">" };
                    write!(f, ">({})x{times}", round.join(between))?;
                }
            }
        }
        if self.ended { Ok(()) } else { f.write_str(">") }
    }
}

/// The error for a text that is not a trail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoTrail;

impl fmt::Display for NoTrail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a trail")
    }
}

impl core::error::Error for NoTrail {}

impl FromStr for Trail {
    type Err = NoTrail;

    /// Parses a trail.
    ///
    /// # Errors
    ///
    /// [`NoTrail`] for any text that [`Display`](fmt::Display) does not write; a retry does not help.
    fn from_str(text: &str) -> Result<Self, NoTrail> {
        let mut rest = text.strip_prefix('>').ok_or(NoTrail)?;
        let mut trail = Self::default();
        while !rest.is_empty() {
            let step;
            (step, rest) = read_step(rest)?;
            trail.steps.push(step);
            match rest.strip_prefix('>') {
                Some(more) => rest = more,
                None if rest.is_empty() => trail.ended = true,
                None => return Err(NoTrail),
            }
        }
        if trail.to_string() == text {
            Ok(trail)
        } else {
            Err(NoTrail)
        }
    }
}

fn read_step(text: &str) -> Result<(TrailStep, &str), NoTrail> {
    let Some(inner) = text.strip_prefix('(') else {
        let (name, rest) = read_word(text)?;
        return Ok((TrailStep::State(name.to_string()), rest));
    };
    let (round, rest) = inner.split_once(")x").ok_or(NoTrail)?;
    let between = if round.contains("<<>>") { "<<>>" } else { ">" };
    let mut names = vec![];
    for name in round.split(between) {
        match read_word(name)? {
            (name, "") => names.push(name.to_string()),
            _ => return Err(NoTrail),
        }
    }
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (number, rest) = rest.split_at(digits);
    let times = number.parse().map_err(|_| NoTrail)?;
    Ok((
        TrailStep::Loop {
            round: names,
            times,
        },
        rest,
    ))
}

fn read_word(text: &str) -> Result<(&str, &str), NoTrail> {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    if end == 0 {
        return Err(NoTrail);
    }
    Ok(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn walked(states: &[&str]) -> Trail {
        let mut trail = Trail::default();
        for state in states {
            trail.push(state);
        }
        trail
    }

    #[test]
    fn two_states_fold_into_an_arrow_both_ways() {
        let mut walk = vec!["Start"];
        for _ in 0..3 {
            walk.extend(["Running", "Servicing"]);
        }
        assert_eq!(
            walked(&walk).to_string(),
            ">Start>(Running<<>>Servicing)x2>Running>Servicing>"
        );
        let mut trail = walked(&walk);
        trail.push("Stopping");
        trail.push("End");
        trail.end();
        assert_eq!(
            trail.to_string(),
            ">Start>(Running<<>>Servicing)x3>Stopping>End"
        );
    }

    #[test]
    fn longer_loops_fold_too() {
        let mut walk = Vec::new();
        for _ in 0..5 {
            walk.extend(["A", "B", "C"]);
        }
        walk.push("D");
        assert_eq!(walked(&walk).to_string(), ">(A>B>C)x5>D>");
    }

    #[test]
    fn adjoining_loops_stay_apart() {
        let walk = ["A", "B", "A", "B", "C", "B", "C", "Z"];
        // The ancestor printed `>(A>(B<<>>C)x2>Z` here.
        assert_eq!(walked(&walk).to_string(), ">(A<<>>B)x2>C>B>C>Z>");
    }

    #[test]
    fn a_leaf_ends_the_trail_and_a_reentry_continues_it() {
        let mut trail = walked(&["Start", "End"]);
        trail.end();
        assert_eq!(trail.to_string(), ">Start>End");
        trail.push("Start");
        assert_eq!(trail.to_string(), ">Start>End>Start>");
    }

    #[test]
    fn the_longest_names_still_fit() {
        let names: Vec<String> = (0..40).map(|i| "x".repeat(60) + &i.to_string()).collect();
        let mut trail = Trail::default();
        for name in &names {
            trail.push(name);
            assert!(trail.to_string().len() <= LIMIT);
            assert_eq!(trail.last(), Some(name.as_str()));
        }
    }

    proptest! {
        #[test]
        fn every_trail_is_bounded_ends_in_the_current_state_and_parses_back(
            walk in proptest::collection::vec(0usize..4, 1..200),
            leaf: bool,
        ) {
            let names = ["A", "Bb", "Ccc", "D_1"];
            let mut trail = Trail::default();
            let mut last = 4;
            for state in walk {
                if state == last { continue; }
                last = state;
                trail.push(names[state]);
                prop_assert_eq!(trail.last(), Some(names[state]));
                let text = trail.to_string();
                prop_assert!(text.len() <= LIMIT);
                prop_assert_eq!(text.parse::<Trail>(), Ok(trail.clone()));
                // The parsed trail equals the trail, so pushing onto it gives the same result.
            }
            if leaf { trail.end(); }
            prop_assert_eq!(trail.to_string().parse::<Trail>(), Ok(trail));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[>()x0-9<AB]{0,40}|\\PC{0,40}") {
            let _ = text.parse::<Trail>();
        }
    }
}
