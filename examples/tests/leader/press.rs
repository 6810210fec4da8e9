//! A press that does each job once, however often it is requested, and records all requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::{Json, Router, routing::put};
use okt_examples::leaflets::Job;
use parking_lot::{Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

/// A press that serves on loopback; clones share it.
#[derive(Clone)]
pub(crate) struct Press {
    pub(crate) address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    asked: Vec<Asked>,
    jobs: BTreeMap<String, watch::Receiver<bool>>,
    done: Vec<Done>,
    /// The leaflets under work, and how often two jobs of one leaflet ran at once.
    at_work: BTreeSet<String>,
    overlaps: usize,
}

/// A request for a job.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) job: Job,
    pub(crate) at: Instant,
}

/// A job that was done.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) id: String,
    pub(crate) job: Job,
}

impl Press {
    /// Starts a press whose jobs take between half a second and two seconds.
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let press = Self {
            address: listener.local_addr().unwrap(),
            book: Arc::default(),
        };
        let router = Router::new()
            .route("/jobs/{*id}", put(print))
            .with_state(press.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        press
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.book().asked.clone()
    }

    /// Returns the requests of a replica so far.
    pub(crate) fn asked_by(&self, replica: &str) -> Vec<Asked> {
        let mut asked = self.asked();
        asked.retain(|asked| asked.job.replica == replica);
        asked
    }

    /// Returns all finished jobs so far.
    pub(crate) fn done(&self) -> Vec<Done> {
        self.book().done.clone()
    }

    /// Returns how many jobs are under way.
    pub(crate) fn at_work(&self) -> usize {
        self.book().at_work.len()
    }

    /// Returns how often two jobs of one leaflet ran at once.
    pub(crate) fn overlaps(&self) -> usize {
        self.book().overlaps
    }

    /// Begins a job unless it began before; returns a channel that reports its end.
    fn begin(&self, id: &str, job: &Job) -> watch::Receiver<bool> {
        let mut book = self.book();
        book.asked.push(Asked {
            id: id.to_owned(),
            job: job.clone(),
            at: Instant::now(),
        });
        if let Some(done) = book.jobs.get(id) {
            return done.clone();
        }
        let (end, done) = watch::channel(false);
        book.jobs.insert(id.to_owned(), done.clone());
        if !book.at_work.insert(job.leaflet.clone()) {
            book.overlaps += 1;
        }
        let (press, id, job) = (self.clone(), id.to_owned(), job.clone());
        tokio::spawn(async move {
            tokio::time::sleep(takes(&job)).await;
            let mut book = press.book();
            book.at_work.remove(&job.leaflet);
            book.done.push(Done { id, job });
            end.send_replace(true);
        });
        done
    }
}

/// Returns how long a job takes; jobs differ, so that at any time some are under way.
fn takes(job: &Job) -> Duration {
    let sum = job.leaflet.bytes().chain(job.work.bytes()).map(u64::from);
    Duration::from_millis(500 + sum.sum::<u64>() * 173 % 1500)
}

async fn print(State(press): State<Press>, Path(id): Path<String>, Json(job): Json<Job>) {
    let mut done = press.begin(&id, &job);
    // The sender is dropped only after it has sent.
    let _ = done.wait_for(|done| *done).await;
}
