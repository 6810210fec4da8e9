//! Times the operations of clients, in the same way for any server.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::try_join_all;
use kube::api::{ListParams, WatchParams};
use kube::{Api, Client};

use crate::boiler::{self, Boiler};

/// The number of objects that are written in turn, and listed.
const OBJECTS: usize = 1_000;

/// The number of watches that receive each change.
const WATCHES: usize = 20;

/// The throughput of one server.
pub(crate) struct Figures {
    pub(crate) applies_alone: PerSecond,
    pub(crate) applies: PerSecond,
    pub(crate) creates: PerSecond,
    pub(crate) gets: PerSecond,
    pub(crate) lists: PerSecond,
    pub(crate) events: PerSecond,
}

/// A rate, in operations per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct PerSecond(pub(crate) f64);

impl PerSecond {
    fn of(count: usize, took: Duration) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "counts here are small")]
        let count = count as f64;
        Self(count / took.as_secs_f64())
    }

    fn faster(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Figures {
    /// Measures in several runs, of which the fastest counts, each with about `requests` requests of
    /// each sort.
    pub(crate) async fn of(client: &Client, runs: usize, requests: usize) -> kube::Result<Self> {
        boiler::declare(client).await?;
        let boilers: Api<Boiler> = Api::default_namespaced(client.clone());
        let names: Vec<_> = (0..OBJECTS).map(|n| format!("boiler-{n:04}")).collect();
        let begun = Instant::now();
        let made = at_once(&boilers, 16, names, |boilers, name| async move {
            boiler::create(&boilers, &name).await
        })
        .await?;
        let creates = PerSecond::of(OBJECTS, begun.elapsed());

        let mut figures = Self {
            applies_alone: PerSecond(0.0),
            applies: PerSecond(0.0),
            creates,
            gets: PerSecond(0.0),
            lists: PerSecond(0.0),
            events: PerSecond(0.0),
        };
        let mut boilers_now = made;
        for _ in 0..runs {
            let (alone, last) = applies(&boilers, 1, requests / 4, boilers_now).await?;
            let (together, last) = applies(&boilers, 16, requests, last).await?;
            let gets = gets(&boilers, requests).await?;
            let lists = lists(&boilers).await?;
            let (events, last) = events(&boilers, requests / 10, last).await?;
            figures.applies_alone = figures.applies_alone.faster(alone);
            figures.applies = figures.applies.faster(together);
            figures.gets = figures.gets.faster(gets);
            figures.lists = figures.lists.faster(lists);
            figures.events = figures.events.faster(events);
            boilers_now = last;
        }
        boiler::forget(client).await?;
        Ok(figures)
    }
}

/// Calls `each` for all items, on the given number of concurrent tasks.
async fn at_once<T, R, F>(
    boilers: &Api<Boiler>,
    tasks: usize,
    all: Vec<T>,
    each: impl Fn(Api<Boiler>, T) -> F + Copy + Send + 'static,
) -> kube::Result<Vec<R>>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Future<Output = kube::Result<R>> + Send,
{
    let mut shares: Vec<Vec<T>> = (0..tasks).map(|_| Vec::new()).collect();
    for (n, one) in all.into_iter().enumerate() {
        shares[n % tasks].push(one);
    }
    let tasks = shares.into_iter().map(|share| {
        let boilers = boilers.clone();
        tokio::spawn(async move {
            let mut done = Vec::with_capacity(share.len());
            for one in share {
                done.push(each(boilers.clone(), one).await?);
            }
            Ok(done)
        })
    });
    let done = try_join_all(tasks).await.expect("no task panics");
    let done: kube::Result<Vec<Vec<R>>> = done.into_iter().collect();
    Ok(done?.into_iter().flatten().collect())
}

/// Applies the next status to each object in turn, about `requests` times in total.
async fn applies(
    boilers: &Api<Boiler>,
    tasks: usize,
    requests: usize,
    now: Vec<Boiler>,
) -> kube::Result<(PerSecond, Vec<Boiler>)> {
    let turns = requests.div_ceil(now.len());
    let objects = requests.min(now.len());
    let mut now = now;
    let rest = now.split_off(objects);
    let begun = Instant::now();
    let mut next = at_once(boilers, tasks, now, move |boilers, mut boiler| async move {
        for _ in 0..turns {
            boiler = boiler::step(&boilers, &boiler).await?;
        }
        Ok(boiler)
    })
    .await?;
    let speed = PerSecond::of(turns * objects, begun.elapsed());
    next.extend(rest);
    Ok((speed, next))
}

async fn gets(boilers: &Api<Boiler>, requests: usize) -> kube::Result<PerSecond> {
    let names: Vec<_> = (0..requests)
        .map(|n| format!("boiler-{:04}", n % OBJECTS))
        .collect();
    let begun = Instant::now();
    at_once(boilers, 16, names, |boilers, name| async move {
        boilers.get(&name).await.map(drop)
    })
    .await?;
    Ok(PerSecond::of(requests, begun.elapsed()))
}

async fn lists(boilers: &Api<Boiler>) -> kube::Result<PerSecond> {
    let begun = Instant::now();
    let listed = boilers.list(&ListParams::default()).await?;
    assert_eq!(listed.items.len(), OBJECTS);
    Ok(PerSecond::of(1, begun.elapsed()))
}

/// Changes objects under many watches and measures the events that all watches receive together.
async fn events(
    boilers: &Api<Boiler>,
    changes: usize,
    now: Vec<Boiler>,
) -> kube::Result<(PerSecond, Vec<Boiler>)> {
    let listed = boilers.list(&ListParams::default().limit(1)).await?;
    let version = listed.metadata.resource_version.unwrap_or_default();
    let mut watches = Vec::new();
    for _ in 0..WATCHES {
        let stream = boilers.watch(&WatchParams::default(), &version).await?;
        watches.push(tokio::spawn(async move {
            let mut stream = stream.boxed();
            for _ in 0..changes {
                stream.next().await.transpose()?;
            }
            Ok::<_, kube::Error>(())
        }));
    }
    let begun = Instant::now();
    let (_, next) = applies(boilers, 16, changes, now).await?;
    for watch in try_join_all(watches).await.expect("no task panics") {
        watch?;
    }
    Ok((PerSecond::of(WATCHES * changes, begun.elapsed()), next))
}
