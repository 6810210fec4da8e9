//! Runs the plans of a rehearsal.

use okt_runtime::Application;

use super::{
    Rehearsal, Report, judge,
    plan::{CHOSEN, Course, Plan},
    stage::{self, Ended, Stage},
};

/// The number of failed runs after which the remaining runs are left out.
const ENOUGH: usize = 10;

/// How often a plan is run whose fault strikes nothing.
const TRIES: usize = 20;

impl<A: Application + Clone> Rehearsal<A> {
    /// Runs every plan and returns a report; after ten failed runs it leaves out the rest.
    ///
    /// If `OKT_REHEARSAL` is set in the environment, it runs only the plan of this name. If there is none, it runs the
    /// plans whose names contain it.
    ///
    /// # Panics
    ///
    /// If called within a tokio runtime: each run has its own, so the test must be a plain `#[test]`. Also if the CRD
    /// of the application's kind cannot be created.
    pub fn run(&self) -> Report {
        assert!(
            tokio::runtime::Handle::try_current().is_err(),
            "a rehearsal makes a runtime for each of its runs: call it from a plain #[test]"
        );
        let undisturbed = self.stage(Plan::Undisturbed, None);
        let mut report = Report::new(undisturbed.course.clone());
        report.note(&Plan::Undisturbed, undisturbed.broken.clone());
        if !undisturbed.broken.is_empty() {
            // If the undisturbed run fails, the others cannot be compared with it.
            return report;
        }
        for plan in plans(&undisturbed.course, &mut report) {
            if report.found().count() == ENOUGH {
                report.is_whole = false;
                break;
            }
            let ended = self.stage(plan.clone(), Some(&undisturbed));
            report.note(&plan, ended.broken);
        }
        report
    }

    /// Runs every plan, and prints the number of runs of each sort.
    ///
    /// # Panics
    ///
    /// If a run failed; the message lists the failures and how to repeat them.
    pub fn check(&self) {
        let report = self.run();
        println!("{report}");
        assert!(report.is_good(), "{report}");
    }

    /// Runs a plan, and repeats it if the planned fault did not happen: tasks that wake up at the same moment run in
    /// any order, so one run may have one write more than another.
    fn stage(&self, plan: Plan, undisturbed: Option<&Ended>) -> Ended {
        for _ in 1..TRIES {
            let ended = self.stage_once(plan.clone(), undisturbed);
            if !ended.broken.iter().any(|it| it == stage::DIFFERS) {
                return ended;
            }
        }
        self.stage_once(plan, undisturbed)
    }

    /// Runs a plan once, on a runtime of its own.
    fn stage_once(&self, plan: Plan, undisturbed: Option<&Ended>) -> Ended {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime needs nothing but memory");
        runtime.block_on(async {
            let stage = Stage::set(self, plan).await;
            let ended = stage.play().await;
            judge::judge(self, ended, undisturbed)
        })
    }
}

/// Returns the plans to run.
fn plans(course: &Course, report: &mut Report) -> Vec<Plan> {
    let all = Plan::all(course);
    let Ok(chosen) = std::env::var(CHOSEN) else {
        return all;
    };
    report.is_whole = false;
    let named: Vec<_> = all
        .iter()
        .filter(|plan| plan.to_string() == chosen)
        .collect();
    let plans: Vec<_> = match named.as_slice() {
        [] => all
            .iter()
            .filter(|plan| plan.to_string().contains(&chosen))
            .collect(),
        named => named.to_vec(),
    };
    if plans.is_empty() {
        report.miss(&chosen);
    }
    plans.into_iter().cloned().collect()
}
