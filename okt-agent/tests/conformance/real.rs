//! A real agent in this process, with an application for the conformance test.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use okt_agent::conformance::States;
use okt_agent::wire::Sighting;
use okt_agent::{Agent, Done, Fault, JournalError, Offer, Started, Task, Work};
use parking_lot::Mutex;
use tempfile::TempDir;
use tower::ServiceExt;

/// Returns the states that the application has work for.
pub(crate) fn states() -> States {
    States {
        brief: "Start".to_owned(),
        failing: "Breaking".to_owned(),
        endless: "Servicing".to_owned(),
    }
}

/// A machine with an agent that can be killed and started again; clones share it.
#[derive(Clone)]
pub(crate) struct Machine(Arc<Inner>);

struct Inner {
    disk: Mutex<TempDir>,
    agent: Mutex<Option<Started>>,
    forgets: bool,
}

impl Machine {
    /// Returns a running machine. One that forgets has an empty disk after each restart.
    pub(crate) async fn new(forgets: bool) -> Self {
        let machine = Self(Arc::new(Inner {
            disk: Mutex::new(tempfile::tempdir().expect("a directory")),
            agent: Mutex::default(),
            forgets,
        }));
        machine.restart().await;
        machine
    }

    /// Kills the agent, and starts it again.
    pub(crate) async fn restart(&self) {
        let inner = &self.0;
        let killed = inner.agent.lock().take();
        drop(killed);
        let directory = {
            let mut disk = inner.disk.lock();
            if inner.forgets {
                *disk = tempfile::tempdir().expect("a directory");
            }
            disk.path().to_owned()
        };
        // The killed agent releases the lock when its threads have ended.
        let started = loop {
            let started = Agent::new(Application, directory.clone())
                .graph("sha256:conformance")
                .observe_every(Duration::from_millis(200))
                .start()
                .await;
            match started {
                Ok(started) => break started,
                Err(JournalError::Locked(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => panic!("the agent does not start: {error}"),
            }
        };
        *inner.agent.lock() = Some(started);
    }

    /// Returns a service that forwards each request to the agent that runs at that time.
    pub(crate) fn service(&self) -> Router {
        let machine = self.clone();
        Router::new().fallback(move |request: Request| {
            let agent = machine.0.agent.lock().as_ref().map(Started::router);
            async move {
                let router = agent.expect("there are no requests during a restart");
                router.oneshot(request).await
            }
        })
    }
}

/// An application with the states of the conformance test.
pub(crate) struct Application;

impl Work for Application {
    fn offers(&self) -> Vec<Offer> {
        let states = states();
        [states.brief, states.failing, states.endless]
            .map(|state| Offer {
                state,
                repeatable: false,
            })
            .into()
    }

    async fn observe(&self) -> Sighting {
        Sighting::in_state("Running")
    }

    async fn perform(&self, task: &Task) -> Result<Done, Fault> {
        match task.state() {
            "Servicing" => {
                task.cancelled().await;
                Err(Fault::retry("Cancelled", "it was cancelled"))
            }
            "Breaking" => Err(Fault::retry("OnPurpose", "it is there to fail")),
            _ => {
                task.print(b"a moment\n");
                tokio::time::sleep(Duration::from_millis(30)).await;
                Ok(Done::default())
            }
        }
    }
}
