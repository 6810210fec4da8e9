//! Runs the plans of a rehearsal, several at once.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use kube::Resource;
use okt_runtime::{Application, Lifecycle, StateOf};
use parking_lot::Mutex;

use super::plan::{CHOSEN, RehearsalPlan};
use super::stage::{self, EndedRun, RehearsalStage};
use super::{Rehearsal, Report, judge, log};

/// The number of failed runs after which the remaining runs are left out.
const ENOUGH: usize = 10;

/// How often a plan is run whose fault strikes nothing.
const TRIES: usize = 20;

/// How often progress is printed.
const PROGRESS: Duration = Duration::from_secs(5);

impl<A: Application + Clone> Rehearsal<A> {
    /// Runs every plan, as many at once as the machine has processors, and returns a report; after ten failed runs it
    /// leaves out the rest. A rehearsal of more than five seconds prints its progress to standard error.
    ///
    /// If `OKT_REHEARSAL` is set in the environment, it runs only the plan of this name (`undisturbed` is one) and
    /// prints the log of the run with its virtual time. If there is no such plan, it runs the plans whose names contain
    /// the text. A part of all plans, such as `1/4`, is for [`check`](Self::check) only: who looks at a report may look
    /// for a run that another part has.
    ///
    /// # Panics
    ///
    /// If called within a tokio runtime: each run has its own, so the test must be a plain `#[test]`. Also if the CRD
    /// of the application's kind cannot be created.
    pub fn run(&self) -> Report {
        let chosen = std::env::var(CHOSEN).ok();
        self.run_chosen(chosen.as_deref().filter(|chosen| part(chosen).is_none()))
    }

    fn run_chosen(&self, chosen: Option<&str>) -> Report {
        assert!(
            tokio::runtime::Handle::try_current().is_err(),
            "a rehearsal makes a runtime for each of its runs: call it from a plain #[test]"
        );
        let alone = RehearsalPlan::Undisturbed.to_string();
        let undisturbed = {
            let _log = (chosen == Some(&alone)).then(log::to_stderr);
            self.stage(RehearsalPlan::Undisturbed, None)
        };
        let mut report = Report::new(undisturbed.course.clone());
        let mut broken: Vec<String> = self.wrong_end(&undisturbed).into_iter().collect();
        broken.extend(undisturbed.broken.iter().cloned());
        let is_comparable = broken.is_empty();
        report.note(&RehearsalPlan::Undisturbed, broken);
        if chosen == Some(&alone) || !is_comparable {
            report.lists_writes = true;
            report.is_whole = false;
            return report;
        }
        let all = RehearsalPlan::all(&undisturbed.course);
        let plans = match chosen {
            None => all,
            Some(chosen) => {
                report.is_whole = false;
                let plans = named(all, chosen);
                if plans.is_empty() {
                    report.miss(chosen);
                }
                plans
            }
        };
        if let (Some(_), [plan]) = (chosen, &*plans) {
            let _log = log::to_stderr();
            let ended = self.stage(plan.clone(), Some(&undisturbed));
            report.note(plan, ended.broken);
            return report;
        }
        self.run_all(&plans, &undisturbed, &mut report);
        report
    }

    /// Runs plans in as many threads as the machine has processors.
    fn run_all(&self, plans: &[RehearsalPlan], undisturbed: &EndedRun, report: &mut Report) {
        let (next, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done: Mutex<BTreeMap<usize, Vec<String>>> = Mutex::default();
        let entered = Mutex::new(judge::entered(undisturbed));
        let reported = Mutex::new(Instant::now());
        let work = || {
            while wrong.load(Ordering::Relaxed) < ENOUGH {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = plans.get(number) else {
                    return;
                };
                let ended = self.stage(plan.clone(), Some(undisturbed));
                entered.lock().extend(judge::entered(&ended));
                let broken = ended.broken;
                if !broken.is_empty() {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                let mut done = done.lock();
                done.insert(number, broken);
                let mut reported = reported.lock();
                if reported.elapsed() >= PROGRESS {
                    *reported = Instant::now();
                    // The undisturbed run is the first.
                    let (runs, all) = (done.len() + 1, plans.len() + 1);
                    let kind = A::Resource::kind(&());
                    let wrong = wrong.load(Ordering::Relaxed);
                    let line =
                        format!("rehearsal of {kind}: {runs} of {all} runs, {wrong} wrong\n");
                    // Not `eprint!`, which a test shows only if it fails.
                    let _ = std::io::stderr().write_all(line.as_bytes());
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let done = done.into_inner();
        if done.len() < plans.len() {
            report.is_whole = false;
        }
        for (number, broken) in done {
            report.note(&plans[number], broken);
        }
        let entered = entered.into_inner();
        let states = StateOf::<A>::GRAPH.states.iter().map(|state| state.name);
        report.never_entered = states.filter(|it| !entered.contains(*it)).collect();
    }

    /// Returns why the undisturbed run ended in another way than the rehearsal expects.
    fn wrong_end(&self, undisturbed: &EndedRun) -> Option<String> {
        let there = undisturbed.last_state.as_deref().unwrap_or("no state");
        match self.end {
            // An object with a pass alone has no states.
            None if StateOf::<A>::GRAPH.states.is_empty() => None,
            None => Some(format!(
                "it ended in {there}: name where it must end, e.g. `.ends_in({}::{there})`",
                StateOf::<A>::GRAPH.name
            )),
            Some(end) if end.name() == there => None,
            Some(end) => Some(format!("it ended in {there}, not in {}", end.name())),
        }
    }

    /// Runs every plan, and prints the number of runs of each sort. With `OKT_REHEARSAL=1/4` in the environment, it runs
    /// the first of four parts.
    ///
    /// # Panics
    ///
    /// If a run failed; the message lists the failures and how to repeat them.
    pub fn check(&self) {
        let report = self.run_chosen(std::env::var(CHOSEN).ok().as_deref());
        assert!(report.is_good(), "{report}");
        println!("{report}");
    }

    /// Runs a plan, and repeats it if the planned fault did not happen: tasks that wake up at the same moment run in
    /// any order, so one run may have one write more than another.
    fn stage(&self, plan: RehearsalPlan, undisturbed: Option<&EndedRun>) -> EndedRun {
        for _ in 1..TRIES {
            let ended = self.stage_once(plan.clone(), undisturbed);
            if !ended.broken.iter().any(|it| it.starts_with(stage::DIFFERS)) {
                return ended;
            }
        }
        self.stage_once(plan, undisturbed)
    }

    /// Runs a plan once, on a runtime of its own.
    fn stage_once(&self, plan: RehearsalPlan, undisturbed: Option<&EndedRun>) -> EndedRun {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime needs nothing but memory");
        runtime.block_on(async {
            let stage = RehearsalStage::set(self, plan).await;
            let ended = stage.play().await;
            judge::judge(self, ended, undisturbed)
        })
    }
}

/// Returns a part of the plans (`2/4` is every fourth from the second on), the plan with this name, or the plans whose
/// names contain it.
fn named(all: Vec<RehearsalPlan>, chosen: &str) -> Vec<RehearsalPlan> {
    if let Some((first, every)) = part(chosen) {
        return all.into_iter().skip(first).step_by(every).collect();
    }
    if let Some(plan) = all.iter().find(|plan| plan.to_string() == chosen) {
        return vec![plan.clone()];
    }
    let contains = |plan: &RehearsalPlan| plan.to_string().contains(chosen);
    all.into_iter().filter(contains).collect()
}

/// Returns the index of the first plan of a part, and the step from each to the next.
fn part(chosen: &str) -> Option<(usize, usize)> {
    let (part, of) = chosen.split_once('/')?;
    let (part, of): (usize, usize) = (part.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&part).then(|| (part - 1, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_rehearsal_are_all_of_it() {
        let all: Vec<RehearsalPlan> = (1..=10).map(|at| RehearsalPlan::Deletion { at }).collect();
        let parts: Vec<RehearsalPlan> = ["1/3", "2/3", "3/3"]
            .into_iter()
            .flat_map(|part| named(all.clone(), part))
            .collect();
        assert_eq!(parts.len(), all.len());
        assert!(all.iter().all(|plan| parts.contains(plan)));
        for text in ["0/3", "4/3", "1/0", "a/3", "/"] {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
