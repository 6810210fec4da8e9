//! [`Report`]: the result of a rehearsal.

use std::fmt;

use super::plan::{CHOSEN, Course, RehearsalPlan};

/// The number of failed runs that are shown in full.
const SHOWN: usize = 5;

/// The result of a rehearsal: the number of runs of each sort, and their failures.
#[derive(Clone, Debug)]
pub struct Report {
    course: Course,
    /// Whether all plans were run.
    pub(super) is_whole: bool,
    /// Whether the writes of the undisturbed run are listed.
    pub(super) lists_writes: bool,
    /// The states that the object was in in no run, if all plans were run.
    pub(super) never_entered: Vec<&'static str>,
    runs: Vec<(&'static str, usize)>,
    found: Vec<Found>,
}

/// The failures of a run.
#[derive(Clone, Debug)]
struct Found {
    plan: String,
    /// The name of the write that its fault struck.
    struck: Option<String>,
    broken: Vec<String>,
}

impl Report {
    pub(super) fn new(course: Course) -> Self {
        Self {
            course,
            is_whole: true,
            lists_writes: false,
            never_entered: Vec::new(),
            runs: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, plan: &RehearsalPlan, broken: Vec<String>) {
        match self.runs.iter_mut().find(|(sort, _)| *sort == plan.sort()) {
            Some((_, runs)) => *runs += 1,
            None => self.runs.push((plan.sort(), 1)),
        }
        if !broken.is_empty() {
            self.found.push(Found {
                plan: plan.to_string(),
                struck: self.struck(plan),
                broken,
            });
        }
    }

    /// Reports that no plan has this name or a name that contains it.
    pub(super) fn miss(&mut self, chosen: &str) {
        let what = vec!["there is no such plan".to_owned()];
        self.found.push(Found {
            plan: chosen.to_owned(),
            struck: None,
            broken: what,
        });
    }

    /// Returns the name of the write of the undisturbed run that the fault of a plan strikes.
    fn struck(&self, plan: &RehearsalPlan) -> Option<String> {
        let number = usize::try_from(plan.write()?).ok()?;
        let write = self.course.writes.get(number.checked_sub(1)?)?;
        Some(write.name.clone())
    }

    /// Returns whether no run failed.
    pub fn is_good(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.runs.iter().map(|(_, runs)| runs).sum()
    }

    /// Returns the plans whose runs failed, with the failures.
    pub fn found(&self) -> impl Iterator<Item = (&str, &[String])> {
        let found = self.found.iter();
        found.map(|found| (found.plan.as_str(), found.broken.as_slice()))
    }

    fn write_never_entered(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_whole || self.never_entered.is_empty() {
            return Ok(());
        }
        let states = self.never_entered.join(", ");
        writeln!(
            f,
            "never entered: {states}; a step or an event that leads there would rehearse it"
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Course {
            ref writes,
            events,
            attempts,
            ref changes,
            ..
        } = self.course;
        writeln!(
            f,
            "undisturbed: {} writes, {events} events, {attempts} attempts, {} changes of the object",
            writes.len(),
            changes.len()
        )?;
        if self.lists_writes {
            for (number, write) in (1..).zip(writes) {
                writeln!(f, "{number:6}  {write}")?;
            }
        }
        for (sort, runs) in &self.runs {
            writeln!(f, "{runs:6}  {sort}")?;
        }
        let wrong = self.found.len();
        let rest = if self.is_whole {
            ""
        } else {
            "; not all plans were run"
        };
        writeln!(f, "{:6}  runs, {wrong} of them wrong{rest}", self.runs())?;
        self.write_never_entered(f)?;
        for Found {
            plan,
            struck,
            broken,
        } in self.found.iter().take(SHOWN)
        {
            match struck {
                Some(write) => writeln!(f, "\n{plan} ({write})")?,
                None => writeln!(f, "\n{plan}")?,
            }
            for broken in broken {
                writeln!(f, "  {broken}")?;
            }
            writeln!(f, "  alone: {CHOSEN}='{plan}' cargo test")?;
        }
        if let Some(more) = self.found.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            writeln!(f, "\n.. and {more} more")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_no_run_entered_are_named_unless_runs_were_left_out() {
        let mut report = Report::new(Course::default());
        report.never_entered = vec!["Failed", "Restoring"];
        let line = "never entered: Failed, Restoring; ";
        assert!(report.to_string().contains(line), "{report}");
        report.is_whole = false;
        assert!(!report.to_string().contains(line), "{report}");
    }
}
