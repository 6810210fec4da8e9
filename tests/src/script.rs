//! A script of the results and the declared objects of a pass's steps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use okt::{ConditionStatus, Declared, Failure, LifecycleObject, Pass, Results, Step};
use parking_lot::Mutex;

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Scripted {
    /// Done.
    Done,
    /// Done, with a text.
    Text(&'static str),
    /// Done, with a requeue after this time.
    RequeueAfter(Duration),
    /// Done, with a condition of its own.
    Condition(ConditionStatus, &'static str, &'static str),
    /// Waits for this time.
    Wait(&'static str, Duration, &'static str),
    /// Retries with backoff.
    Retry(&'static str, &'static str),
    /// Gives up.
    GiveUp(&'static str),
    /// Fails.
    Fail(Failure),
    /// Commits its declared objects.
    Commit,
    /// Panics.
    Panic,
    /// Never ends.
    Hang,
}

/// The objects that a step declares for the object with a name.
type Puts = Arc<dyn Fn(&str) -> Vec<Declared> + Send + Sync>;

/// A script of steps; clones share it.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    scripted: HashMap<&'static str, Scripted>,
    puts: HashMap<&'static str, Puts>,
    keeps: Vec<&'static str>,
    taken: Vec<&'static str>,
    worked: Vec<&'static str>,
    times: HashMap<&'static str, Duration>,
    results: Option<Results>,
}

impl Script {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock())
    }

    /// Sets the result of a step.
    pub fn set(&self, step: &'static str, result: Scripted) {
        self.memory(|memory| memory.scripted.insert(step, result));
    }

    /// Sets the objects that a step declares.
    pub fn put(&self, step: &'static str, all: impl IntoIterator<Item = Declared>) {
        let all: Vec<_> = all.into_iter().collect();
        self.put_named(step, move |_| all.clone());
    }

    /// Sets the objects that a step declares, by the name of its object.
    pub fn put_named(
        &self,
        step: &'static str,
        all: impl Fn(&str) -> Vec<Declared> + Send + Sync + 'static,
    ) {
        self.memory(|memory| memory.puts.insert(step, Arc::new(all)));
    }

    /// Returns the steps taken since the last call, in order.
    pub fn taken(&self) -> Vec<&'static str> {
        self.memory(|memory| std::mem::take(&mut memory.taken))
    }

    /// Returns the states of a lifecycle that have run their work, in order.
    pub fn worked(&self) -> Vec<&'static str> {
        self.memory(|memory| memory.worked.clone())
    }

    /// Sets the duration of the work of a state.
    pub fn work_takes(&self, state: &'static str, time: Duration) {
        self.memory(|memory| memory.times.insert(state, time));
    }

    /// Runs the work of a state.
    pub(crate) async fn work(&self, state: &'static str) {
        let time = self.memory(|memory| {
            memory.worked.push(state);
            memory.times.get(state).copied()
        });
        if let Some(time) = time {
            tokio::time::sleep(time).await;
        }
    }

    /// Makes every step keep the `ConfigMap`s with these names.
    pub fn keep(&self, names: impl IntoIterator<Item = &'static str>) {
        self.memory(|memory| memory.keeps = names.into_iter().collect());
    }

    /// Returns the results that the last step saw at its end.
    pub fn results(&self) -> Option<Results> {
        self.memory(|memory| memory.results.clone())
    }

    /// Returns the objects that this step declares for the object with this name.
    pub(crate) fn puts(&self, step: &'static str, name: &str) -> Vec<Declared> {
        let puts = self.memory(|memory| memory.puts.get(step).cloned());
        puts.map_or_else(Vec::new, |puts| puts(name))
    }

    /// Runs a step of an object: declares its objects and returns its scripted result, which leads to `next`.
    pub(crate) async fn take<K: LifecycleObject, S>(
        &self,
        cx: &Pass<K>,
        step: &'static str,
        next: S,
    ) -> Result<Step<S>, Failure> {
        let commits = self.begin(step);
        for declared in self.puts(step, &cx.object().name_any()) {
            cx.declare(declared);
        }
        for name in self.memory(|memory| memory.keeps.clone()) {
            cx.keep::<ConfigMap>(name);
        }
        let committed = if commits { cx.commit().await } else { Ok(()) };
        self.memory(|memory| memory.results = Some(cx.results()));
        committed?;
        self.end(step, next).await
    }

    /// Records a step; returns whether it commits.
    fn begin(&self, step: &'static str) -> bool {
        self.memory(|memory| {
            memory.taken.push(step);
            memory.scripted.get(step) == Some(&Scripted::Commit)
        })
    }

    /// Returns the scripted result of a step, which leads to `next`.
    async fn end<S>(&self, step: &'static str, next: S) -> Result<Step<S>, Failure> {
        let result = self.memory(|memory| memory.scripted.get(step).cloned());
        Ok(match result {
            None | Some(Scripted::Done | Scripted::Commit) => Step::done(next),
            Some(Scripted::Text(text)) => Step::done(next).text(text),
            Some(Scripted::RequeueAfter(time)) => Step::done(next).requeue_after(time),
            Some(Scripted::Condition(status, reason, text)) => {
                Step::done(next).condition(status, reason, text)
            }
            Some(Scripted::Wait(reason, time, text)) => Step::wait(reason, time).text(text),
            Some(Scripted::Retry(reason, text)) => Step::retry(reason).text(text),
            Some(Scripted::GiveUp(text)) => Step::give_up().text(text),
            Some(Scripted::Fail(failure)) => return Err(failure),
            Some(Scripted::Panic) => panic!("the step panics"),
            Some(Scripted::Hang) => std::future::pending().await,
        })
    }
}

/// Writes the handlers of a pass whose steps take their results from the script.
macro_rules! steps {
    ($kind:ident: $($step:ident $name:literal $after:ty,)*) => {$(
        async fn $step(&self, cx: &okt::Pass<$kind>) -> Result<okt::Step<$after>, okt::Failure> {
            self.script.take(cx, $name, <$after>::Next).await
        }
    )*};
}

pub(crate) use steps;
