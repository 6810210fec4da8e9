//! The server: passes connections from the listeners to the service, with a time limit each and a limit for their
//! number.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;

use super::connections::{ConnectionGuard, Connections};
use super::error::ServeError;
use super::listen::{Listen, ListenPlace, Listener};
use super::metrics::Metrics;
use super::service::{self, ServiceAccess};
use super::settings::AgentSettings;
use super::tls::Tls;
use super::token::TokenHash;
use super::{Agent, Started};
use crate::work::Work;

/// The interval of the checks whether the token or a certificate has changed.
const REFRESH: Duration = Duration::from_secs(1);

/// The time that connections get to finish after the agent has stopped.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// The limit for the head of a request, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;

/// An agent that listens. It answers after [`run`](Self::run) was called.
pub struct Bound<W> {
    agent: Agent<W>,
    token: Option<Arc<TokenHash>>,
    listeners: Vec<(Listener, Option<Arc<Tls>>)>,
    listens: Vec<Listen>,
}

impl<W: Work> Agent<W> {
    /// Serves on these listeners until `stop` returns, and then stops as [`Started::stop`] does.
    ///
    /// # Errors
    ///
    /// [`ServeError`]. No work was begun, except with [`ServeError::Ended`].
    pub async fn serve(
        self,
        listens: impl IntoIterator<Item = Listen>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        self.bind(listens).await?.run(stop).await
    }

    /// Opens these listeners. The agent starts with [`run`](Bound::run).
    ///
    /// # Errors
    ///
    /// [`ServeError`].
    pub async fn bind(
        self,
        listens: impl IntoIterator<Item = Listen>,
    ) -> Result<Bound<W>, ServeError> {
        // The files are read once, before the agent runs, so blocking is harmless.
        let token = self.token.as_deref().map(TokenHash::read).transpose()?;
        let mut listeners = Vec::new();
        let mut opened = Vec::new();
        for listen in listens {
            let tls = match &listen.0 {
                ListenPlace::Tcp { tls, .. } => {
                    tls.clone().map(Tls::read).transpose()?.map(Arc::new)
                }
                ListenPlace::Unix { .. } => None,
            };
            let asks_clients = tls.as_ref().is_some_and(|tls| tls.asks_clients());
            if listen.is_exposed() && token.is_none() && !asks_clients {
                return Err(ServeError::NoToken(listen.to_string()));
            }
            let (listener, listen) = Listener::open(&listen).await?;
            listeners.push((listener, tls));
            opened.push(listen);
        }
        if listeners.is_empty() {
            return Err(ServeError::Nowhere);
        }
        Ok(Bound {
            agent: self,
            token: token.map(Arc::new),
            listeners,
            listens: opened,
        })
    }
}

impl<W: Work> Bound<W> {
    /// Returns the listeners, with the port that was taken instead of port 0.
    pub fn listens(&self) -> &[Listen] {
        &self.listens
    }

    /// Returns the TCP addresses of the listeners.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listens.iter().filter_map(|listen| match &listen.0 {
            ListenPlace::Tcp { address, .. } => Some(*address),
            ListenPlace::Unix { .. } => None,
        })
    }

    /// Serves until `stop` returns, and then stops as [`Started::stop`] does. It answers requests until it has stopped.
    ///
    /// # Errors
    ///
    /// [`ServeError::Journal`] or [`ServeError::Ended`].
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self {
            agent,
            token,
            listeners,
            listens,
        } = self;
        let settings = Arc::new(agent.settings.clone());
        let started = agent.start().await?;
        let metrics = Arc::clone(&started.service.metrics);
        let connections = Connections::new(settings.connections, Arc::clone(&metrics));
        let closing = CancellationToken::new();
        let tls = listeners.iter().filter_map(|(_, tls)| tls.clone());
        let certificates = tls.collect();
        let _refreshing =
            AbortOnDropHandle::new(tokio::spawn(refresh(token.clone(), certificates)));
        let mut serving = JoinSet::new();
        for ((listener, tls), listen) in listeners.into_iter().zip(listens) {
            tracing::info!(place = %listen, tls = tls.is_some(), "listens");
            let asks_clients = tls.as_ref().is_some_and(|tls| tls.asks_clients());
            let access = match (&listener, &token) {
                (Listener::Tcp(_), Some(token)) => ServiceAccess::Token(Arc::clone(token)),
                (Listener::Tcp(_), None) if !asks_clients => ServiceAccess::ThisMachine,
                (Listener::Tcp(_) | Listener::Unix(..), _) => ServiceAccess::Open,
            };
            let service = Arc::clone(&started.service);
            let listener_service = ListenerService {
                router: service::router(service, access),
                tls,
                settings: Arc::clone(&settings),
                metrics: Arc::clone(&metrics),
                closing: closing.clone(),
            };
            serving.spawn(listener_service.serve(listener, Arc::clone(&connections)));
        }
        let ended = stopped(started, stop).await;
        closing.cancel();
        if timeout(CLOSE_LIMIT, async {
            while serving.join_next().await.is_some() {}
        })
        .await
        .is_err()
        {
            tracing::warn!("connections are cut off that did not end");
        }
        ended
    }
}

/// Runs an agent until it has stopped.
async fn stopped(mut started: Started, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
    tokio::select! {
        () = stop => {
            started.stop().await;
            Ok(())
        }
        _ = &mut started.actor => Err(ServeError::Ended),
    }
}

/// Reads the token and the certificates periodically.
async fn refresh(token: Option<Arc<TokenHash>>, certificates: Vec<Arc<Tls>>) {
    if token.is_none() && certificates.is_empty() {
        return;
    }
    let mut logged = Vec::new();
    loop {
        sleep(REFRESH).await;
        let token = token.clone();
        let certificates = certificates.clone();
        let read = tokio::task::spawn_blocking(move || {
            let token = token.and_then(|token| token.refresh().err());
            let certificates = certificates.iter().filter_map(|tls| tls.refresh().err());
            let mut troubles: Vec<_> = certificates.map(|error| error.to_string()).collect();
            troubles.extend(token.map(|error| error.to_string()));
            troubles
        });
        let troubles = read.await.unwrap_or_default();
        if troubles != logged {
            for trouble in &troubles {
                tracing::warn!(trouble, "a file that was read before cannot be read");
            }
            logged = troubles;
        }
    }
}

/// What a listener needs to serve its connections.
#[derive(Clone)]
struct ListenerService {
    router: Router,
    tls: Option<Arc<Tls>>,
    settings: Arc<AgentSettings>,
    metrics: Arc<Metrics>,
    closing: CancellationToken,
}

trait AgentStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> AgentStream for S {}

impl ListenerService {
    async fn serve(self, listener: Listener, connections: Arc<Connections>) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                accepted = accept(&listener) => match accepted {
                    Ok(stream) => {
                        if let Some(seat) = connections.admit() {
                            open.spawn(self.clone().connection(stream, seat));
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be taken");
                        // For example too many open files, which passes, but not at once.
                        sleep(Duration::from_millis(100)).await;
                    }
                },
                Some(_) = open.join_next() => {}
                () = self.closing.cancelled() => break,
            }
        }
        // Refuse new connections while the last ones are being answered.
        drop(listener);
        while open.join_next().await.is_some() {}
    }

    async fn connection(self, stream: Box<dyn AgentStream>, seat: Arc<ConnectionGuard>) {
        let closed = seat.closed.clone();
        let answered = async {
            match self.tls.clone() {
                None => self.answer(stream, seat).await,
                Some(tls) => {
                    let limit = self.settings.request_limit;
                    match timeout(limit, tls.acceptor().accept(stream)).await {
                        Ok(Ok(stream)) => self.answer(stream, seat).await,
                        Ok(Err(_)) => self.metrics.closed("handshake"),
                        Err(_) => self.metrics.closed("slow"),
                    }
                }
            }
        };
        tokio::select! {
            () = answered => {}
            () = closed.cancelled() => {}
        }
    }

    async fn answer(&self, stream: impl AgentStream + 'static, seat: Arc<ConnectionGuard>) {
        let limit = self.settings.request_limit;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limit));
        let router = self.router.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let busy = Arc::new(seat.busy());
            if request.body().is_end_stream() {
                busy.arrived();
            } else {
                // The reader of the body reports when it has arrived.
                request.extensions_mut().insert(Arc::clone(&busy));
            }
            let router = router.clone();
            async move {
                let answer = router.oneshot(request).await;
                drop(busy);
                answer
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limit)
            .max_buf_size(HEAD_LIMIT)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        tokio::pin!(connection);
        let result = tokio::select! {
            result = &mut connection => result,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            self.metrics
                .closed(if error.is_timeout() { "slow" } else { "broken" });
        }
    }
}

async fn accept(listener: &Listener) -> io::Result<Box<dyn AgentStream>> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            // Answers are short: send each at once.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Listener::Unix(listener, _) => Ok(Box::new(listener.accept().await?.0)),
    }
}
