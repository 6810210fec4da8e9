//! Limits the connections of a server, so that nobody who reaches it can keep others away or fill the process.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a reader may take nothing of what is written to it.
const WRITE: Duration = Duration::from_secs(20);

/// Accepts connections; one beyond the limit takes the place of the one that has been still for longest, of whichever
/// address has most.
#[derive(Clone)]
pub struct Connections {
    limit: usize,
    open: Arc<Mutex<AdmittedConnections>>,
}

#[derive(Default)]
struct AdmittedConnections {
    /// The number of the next connection.
    next: u64,
    all: HashMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: IpAddr,
    last: Instant,
    closing: CancellationToken,
}

impl Connections {
    /// Accepts at most this many connections at the same time.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            open: Arc::default(),
        }
    }

    /// Takes a connection of this address in.
    fn admit<S>(&self, stream: S, peer: IpAddr) -> ServedConnection<S> {
        let closing = CancellationToken::new();
        let mut open = self.open.lock();
        if open.all.len() >= self.limit
            && let Some(stillest) = open.stillest()
            && let Some(entry) = open.all.remove(&stillest)
        {
            entry.closing.cancel();
        }
        let number = open.next;
        open.next = number.wrapping_add(1);
        let entry = OpenConnection {
            peer,
            last: Instant::now(),
            closing: closing.clone(),
        };
        open.all.insert(number, entry);
        ServedConnection {
            stream,
            number,
            closed: Box::pin(closing.cancelled_owned()),
            blocked: None,
            connections: self.clone(),
        }
    }
}

impl AdmittedConnections {
    /// Returns the connection that has been still for longest, of the address that has most.
    fn stillest(&self) -> Option<u64> {
        let mut peers: HashMap<IpAddr, usize> = HashMap::new();
        for entry in self.all.values() {
            let number = peers.entry(entry.peer).or_default();
            *number = number.saturating_add(1);
        }
        let most = peers.values().copied().max()?;
        let of_most = self
            .all
            .iter()
            .filter(|(_, entry)| peers[&entry.peer] == most);
        of_most
            .min_by_key(|(number, entry)| (entry.last, **number))
            .map(|(number, _)| *number)
    }
}

impl<S> Accept<TcpStream, S> for Connections {
    type Stream = ServedConnection<TcpStream>;
    type Service = S;
    type Future = std::future::Ready<io::Result<(Self::Stream, S)>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        // Who is gone already has no address.
        let peer = stream
            .peer_addr()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |it| it.ip());
        std::future::ready(Ok((self.admit(stream, peer.to_canonical()), service)))
    }
}

/// An open connection: an error once it has lost its place, or when its reader takes nothing for too long.
pub struct ServedConnection<S> {
    stream: S,
    number: u64,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    /// When a write that waits has waited for too long.
    blocked: Option<Pin<Box<Sleep>>>,
    connections: Connections,
}

impl<S> ServedConnection<S> {
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.closed.as_mut().poll(cx) {
            Poll::Pending => Ok(()),
            Poll::Ready(()) => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "another connection has taken its place",
            )),
        }
    }

    /// Notes that bytes have come or gone.
    fn note_activity(&self) {
        if let Some(entry) = self.connections.open.lock().all.get_mut(&self.number) {
            entry.last = Instant::now();
        }
    }

    /// Returns the result of a write, or an error if it has waited for too long.
    fn in_time<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.blocked = None;
            self.note_activity();
            return written;
        }
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(sleep(WRITE)));
        match blocked.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<S> Drop for ServedConnection<S> {
    fn drop(&mut self) {
        self.connections.open.lock().all.remove(&self.number);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ServedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_closed(cx)?;
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.note_activity();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ServedConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_closed(cx)?;
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_closed(cx)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_closed(cx)?;
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        // Nothing to flush is no sign of a reader.
        if flushed.is_ready() {
            self.blocked = None;
            return flushed;
        }
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_closed(cx)?;
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.in_time(cx, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: usize = 16;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, last).into()
    }

    #[tokio::test(start_paused = true)]
    async fn beyond_the_limit_the_stillest_connection_of_the_address_with_most_goes() {
        let connections = Connections::new(LIMIT);
        let (stream, mut seldom_client) = duplex(64);
        let mut seldom = connections.admit(stream, address(1));
        let mut many = Vec::new();
        for _ in 1..LIMIT {
            tokio::time::advance(Duration::from_secs(1)).await;
            let (stream, client) = duplex(64);
            many.push((connections.admit(stream, address(2)), client));
        }
        // The first of the many sends something.
        many[0].1.write_all(b"a").await.expect("it is open");
        let mut byte = [0];
        many[0].0.read_exact(&mut byte).await.expect("it is open");
        for _ in 0..2 {
            let (stream, client) = duplex(64);
            many.push((connections.admit(stream, address(2)), client));
        }
        assert_eq!(connections.open.lock().all.len(), LIMIT);
        for gone in [1, 2] {
            let read = many[gone]
                .0
                .read(&mut byte)
                .await
                .expect_err("it lost its place");
            assert_eq!(read.kind(), io::ErrorKind::ConnectionAborted);
        }
        seldom_client.write_all(b"b").await.expect("it is open");
        seldom
            .read_exact(&mut byte)
            .await
            .expect("another address has most");
        drop(many);
        assert_eq!(connections.open.lock().all.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_reader_takes_nothing_ends_and_a_slow_one_does_not() {
        let connections = Connections::new(LIMIT);
        let (stream, _stalled) = duplex(64);
        let mut connection = connections.admit(stream, address(1));
        let begun = Instant::now();
        let written = connection
            .write_all(&[0; 1024])
            .await
            .expect_err("nobody reads");
        assert_eq!(
            (written.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, WRITE)
        );
        let (stream, mut slow) = duplex(64);
        let mut connection = connections.admit(stream, address(1));
        let reading = async {
            let (mut buffer, mut read) = ([0; 64], 0);
            while read < 1024 {
                sleep(WRITE / 2).await;
                read += slow.read(&mut buffer).await.expect("bytes");
            }
        };
        let (written, ()) = tokio::join!(connection.write_all(&[0; 1024]), reading);
        written.expect("the reader is slow, and reads");
    }
}
