//! A real agent that listens on TCP with a token, with TLS, or on a socket, and can be killed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use okt_agent::client::Endpoint;
use okt_agent::{Agent, Bound, JournalError, Listen, ServeError};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

use crate::real::Application;

/// The token of every agent here.
const TOKEN: &str = "conformance-conformance";

/// The kind of listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListenerKind {
    Tcp,
    Tls,
    Unix,
}

/// An agent that listens; clones share it.
#[derive(Clone)]
pub(crate) struct Served(Arc<Inner>);

struct Inner {
    kind: ListenerKind,
    disk: TempDir,
    address: Mutex<SocketAddr>,
    running: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Served {
    pub(crate) async fn at(kind: ListenerKind) -> Self {
        let served = Self(Arc::new(Inner {
            kind,
            disk: tempfile::tempdir().expect("a directory"),
            address: Mutex::new(([127, 0, 0, 1], 0).into()),
            running: Mutex::default(),
        }));
        std::fs::write(served.file("token"), TOKEN).expect("a token");
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = signed.expect("a certificate");
        std::fs::write(served.file("tls.crt"), made.cert.pem()).expect("a certificate");
        let key = made.signing_key.serialize_pem();
        std::fs::write(served.file("tls.key"), key).expect("a key");
        served.restart().await;
        served
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.disk.path().join(name)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let port = self.address().port();
        match self.0.kind {
            ListenerKind::Tcp => {
                Endpoint::parse(&format!("http://127.0.0.1:{port}")).expect("a URL")
            }
            ListenerKind::Tls => Endpoint::parse(&format!("https://localhost:{port}"))
                .expect("a URL")
                .ca_file(self.file("tls.crt")),
            ListenerKind::Unix => return Endpoint::unix(self.file("agent.sock")),
        }
        .token_file(self.file("token"))
    }

    fn address(&self) -> SocketAddr {
        *self.0.address.lock()
    }

    fn listen(&self) -> Listen {
        match self.0.kind {
            ListenerKind::Tcp => Listen::tcp(self.address()),
            ListenerKind::Tls => {
                Listen::tcp(self.address()).tls(self.file("tls.crt"), self.file("tls.key"))
            }
            ListenerKind::Unix => Listen::unix(self.file("agent.sock")),
        }
    }

    async fn bind(&self) -> Bound<Application> {
        let agent = Agent::new(Application, self.file("journal"))
            .graph("sha256:conformance")
            .token_file(self.file("token"))
            .observe_every(Duration::from_millis(200));
        agent.bind([self.listen()]).await.expect("it listens")
    }

    /// Kills the agent, and starts it again on the same listener.
    pub(crate) async fn restart(&self) {
        let inner = &self.0;
        let lock = || inner.running.lock();
        let killed = lock().take();
        if let Some(killed) = killed {
            killed.abort();
            let _ = killed.await;
        }
        let bound = self.bind().await;
        if let Some(address) = bound.addresses().next() {
            *inner.address.lock() = address;
        }
        // Use a weak reference, because the task's guard is inside of the value that the task would keep alive.
        let served = Arc::downgrade(&self.0);
        let running = tokio::spawn(async move {
            let mut bound = bound;
            loop {
                match bound.run(std::future::pending()).await {
                    // The killed agent releases the lock when its threads have ended.
                    Err(ServeError::Journal(JournalError::Locked(_))) => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    other => panic!("the agent ended: {other:?}"),
                }
                let Some(served) = served.upgrade().map(Self) else {
                    return;
                };
                bound = served.bind().await;
            }
        });
        *lock() = Some(AbortOnDropHandle::new(running));
    }
}
