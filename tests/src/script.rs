//! What the steps of a scripted pass say, and what they put.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use okt_runtime::{ConditionStatus, Declared, Failure, LifecycleObject, Pass, Results, Step};

/// What a step says.
#[derive(Clone, Debug, PartialEq)]
pub enum Say {
    /// Done.
    Done,
    /// Done, with a text.
    Text(&'static str),
    /// Done, and to be walked again.
    RequeueAfter(Duration),
    /// Done, with a condition of its own.
    Condition(ConditionStatus, &'static str, &'static str),
    /// It waits.
    Wait(&'static str, Duration, &'static str),
    /// It waits longer and longer.
    Retry(&'static str, &'static str),
    /// It gives up.
    GiveUp(&'static str),
    /// It fails.
    Fail(Failure),
    /// It brings about what it has put.
    Commit,
    /// It panics.
    Panic,
    /// It never ends.
    Hang,
}

/// What a step puts for the object of a name.
type Puts = Arc<dyn Fn(&str) -> Vec<Declared> + Send + Sync>;

/// A script of steps; clones are the same one.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Memory>>);

#[derive(Default)]
struct Memory {
    says: HashMap<&'static str, Say>,
    puts: HashMap<&'static str, Puts>,
    keeps: Vec<&'static str>,
    taken: Vec<&'static str>,
    worked: Vec<&'static str>,
    times: HashMap<&'static str, Duration>,
    results: Option<Results>,
}

impl Script {
    fn memory<T>(&self, of: impl FnOnce(&mut Memory) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on this step says so.
    pub fn say(&self, step: &'static str, say: Say) {
        self.memory(|memory| memory.says.insert(step, say));
    }

    /// From now on this step puts these.
    pub fn put(&self, step: &'static str, all: impl IntoIterator<Item = Declared>) {
        let all: Vec<_> = all.into_iter().collect();
        self.put_named(step, move |_| all.clone());
    }

    /// From now on this step puts these for the object of a name.
    pub fn put_named(
        &self,
        step: &'static str,
        all: impl Fn(&str) -> Vec<Declared> + Send + Sync + 'static,
    ) {
        self.memory(|memory| memory.puts.insert(step, Arc::new(all)));
    }

    /// The steps that were taken since this was asked last, in order.
    pub fn taken(&self) -> Vec<&'static str> {
        self.memory(|memory| std::mem::take(&mut memory.taken))
    }

    /// The states of a lifecycle that did their work, in order.
    pub fn worked(&self) -> Vec<&'static str> {
        self.memory(|memory| memory.worked.clone())
    }

    /// From now on the work of this state of a lifecycle takes so long.
    pub fn work_takes(&self, state: &'static str, time: Duration) {
        self.memory(|memory| memory.times.insert(state, time));
    }

    /// A state of a lifecycle does its work.
    pub(crate) async fn work(&self, state: &'static str) {
        let time = self.memory(|memory| {
            memory.worked.push(state);
            memory.times.get(state).copied()
        });
        if let Some(time) = time {
            tokio::time::sleep(time).await;
        }
    }

    /// From now on every step keeps the maps of these names.
    pub fn keep(&self, names: impl IntoIterator<Item = &'static str>) {
        self.memory(|memory| memory.keeps = names.into_iter().collect());
    }

    /// What the last step saw of the results so far, at its end.
    pub fn results(&self) -> Option<Results> {
        self.memory(|memory| memory.results.clone())
    }

    /// What this step puts for the object of this name.
    pub(crate) fn puts(&self, step: &'static str, name: &str) -> Vec<Declared> {
        let puts = self.memory(|memory| memory.puts.get(step).cloned());
        puts.map_or_else(Vec::new, |puts| puts(name))
    }

    /// Takes a step of an object, which puts and says what it should, and leads on to `next`.
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

    /// Takes a step; whether it commits.
    fn begin(&self, step: &'static str) -> bool {
        self.memory(|memory| {
            memory.taken.push(step);
            memory.says.get(step) == Some(&Say::Commit)
        })
    }

    /// What this step says, where it leads on to `next`.
    async fn end<S>(&self, step: &'static str, next: S) -> Result<Step<S>, Failure> {
        let say = self.memory(|memory| memory.says.get(step).cloned());
        Ok(match say {
            None | Some(Say::Done | Say::Commit) => Step::done(next),
            Some(Say::Text(text)) => Step::done(next).text(text),
            Some(Say::RequeueAfter(time)) => Step::done(next).requeue_after(time),
            Some(Say::Condition(status, reason, text)) => {
                Step::done(next).condition(status, reason, text)
            }
            Some(Say::Wait(reason, time, text)) => Step::wait(reason, time).text(text),
            Some(Say::Retry(reason, text)) => Step::retry(reason).text(text),
            Some(Say::GiveUp(text)) => Step::give_up().text(text),
            Some(Say::Fail(failure)) => return Err(failure),
            Some(Say::Panic) => panic!("the step panics"),
            Some(Say::Hang) => std::future::pending().await,
        })
    }
}
