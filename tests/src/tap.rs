//! A record of the requests of an operator to any server, which can delay watches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use kube::Client;
use kube::client::Body;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::time::Instant;

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;

/// One answered request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tapped {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
}

impl Tapped {
    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        self.method != Method::GET
    }
}

/// Records the requests of one client; clones share the record.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    seen: Vec<Tapped>,
    lag: Option<Lag>,
}

/// The delay of watches: each piece of an answer is delayed by a random time, in order.
#[derive(Clone, Copy, Debug)]
struct Lag {
    most: Duration,
    dice: u64,
}

impl Lag {
    /// Returns the next delay (xorshift64*, Vigna 2016).
    fn next(&mut self) -> Duration {
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        let drawn = self.dice.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        let most = u64::try_from(self.most.as_micros()).expect("a short lag");
        Duration::from_micros((drawn * (most + 1)) >> 32)
    }
}

impl Tap {
    /// Returns a client whose requests are recorded.
    pub fn on(&self, client: &Client) -> Client {
        let (tap, client, namespace) = (
            self.clone(),
            client.clone(),
            client.default_namespace().to_owned(),
        );
        let service = tower::service_fn(move |request: Request<Body>| {
            let (tap, client) = (tap.clone(), client.clone());
            async move { tap.send(&client, request).await }
        });
        Client::new(service, namespace)
    }

    /// Delays every new watch by up to this time, drawn from a seed that is not zero.
    pub fn lag(&self, most: Duration, seed: u64) {
        self.state().lag = Some(Lag { most, dice: seed });
    }

    /// Returns the requests, in the order of their answers.
    pub fn seen(&self) -> Vec<Tapped> {
        self.state().seen.clone()
    }

    /// Returns the writes, without those of Kubernetes Events, which only tell what happened.
    pub fn writes(&self) -> Vec<Tapped> {
        let mut seen = self.seen();
        seen.retain(|tapped| tapped.is_write() && !tapped.path.ends_with("/events"));
        seen
    }

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.state().seen.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    async fn send(&self, client: &Client, request: Request<Body>) -> Result<Answer, kube::Error> {
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|part| part == "watch=true");
        let response = client.send(request).await?;
        let status = response.status().as_u16();
        self.state().seen.push(Tapped {
            method,
            path,
            status,
        });
        Ok(if watches && self.state().lag.is_some() {
            self.held_up(response)
        } else {
            response.map(BodyExt::boxed_unsync)
        })
    }

    /// Delays each piece of the answer.
    fn held_up(&self, response: Response<Body>) -> Answer {
        let tap = self.clone();
        let (sender, mut pieces) = mpsc::unbounded_channel();
        response.map(|body| {
            tokio::spawn(async move {
                let mut body = body.into_data_stream();
                loop {
                    let piece = tokio::select! {
                        piece = body.next() => piece,
                        () = sender.closed() => return,
                    };
                    let late = tap.state().lag.as_mut().map_or(Duration::ZERO, Lag::next);
                    let Some(piece) = piece else { return };
                    if sender.send((Instant::now() + late, piece)).is_err() {
                        return;
                    }
                }
            });
            let arrivals = futures::stream::poll_fn(move |cx| pieces.poll_recv(cx));
            let late = arrivals.then(|(due, piece)| async move {
                tokio::time::sleep_until(due).await;
                piece.map(http_body::Frame::data)
            });
            StreamBody::new(late).boxed_unsync()
        })
    }
}
