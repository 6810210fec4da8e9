//! One connection to a port of a pod, forwarded by the API server.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Portforwarder;
use kube::{Api, Client};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::error::ReachError;
use super::target::{LIMIT, ReachTarget};

/// One forwarded connection; dropping it ends it.
pub(super) struct Forwarded {
    stream: DuplexStream,
    /// Resolves to an error from the node, or to none when the connection ends.
    trouble: Option<BoxFuture<'static, Option<String>>>,
    forwarder: Portforwarder,
}

impl Forwarded {
    /// Opens a connection to the pod that serves the target now.
    pub(super) async fn open(client: &Client, target: &ReachTarget) -> Result<Self, ReachError> {
        // Boxed because it is large and becomes part of the future of every handler that connects.
        let opening = Box::pin(Self::open_now(client, target));
        ReachError::within(LIMIT, target.what(), opening).await
    }

    async fn open_now(client: &Client, target: &ReachTarget) -> Result<Self, ReachError> {
        let there = target.pod_port(client).await?;
        let pods: Api<Pod> = Api::namespaced(client.clone(), target.namespace());
        let mut forwarder = match pods.portforward(&there.pod, &[there.port]).await {
            Ok(forwarder) => forwarder,
            Err(error) => {
                let error = ReachError::of(&target.what(), error);
                return Err(target.explained(client, &there.pod, error).await);
            }
        };
        let Some(stream) = forwarder.take_stream(there.port) else {
            forwarder.abort();
            return Err(ReachError::ConnectionLost {
                what: target.what(),
                why: "the port was not forwarded".to_owned(),
            });
        };
        Ok(Self {
            stream,
            trouble: forwarder.take_error(there.port).map(FutureExt::boxed),
            forwarder,
        })
    }

    /// Returns the error from the node, if it has sent one.
    fn poll_trouble(&mut self, cx: &mut Context<'_>) -> Option<io::Error> {
        let trouble = match self.trouble.as_mut()?.poll_unpin(cx) {
            Poll::Ready(trouble) => trouble,
            Poll::Pending => return None,
        };
        self.trouble = None;
        trouble.map(|trouble| io::Error::new(io::ErrorKind::ConnectionAborted, trouble))
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // Without this, a server that does not answer the close would keep the task alive.
        self.forwarder.abort();
    }
}

impl AsyncRead for Forwarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        // Bytes from the pod come first, then the error that ended them.
        if read.is_ready() && buffer.filled().len() > before {
            return read;
        }
        match self.poll_trouble(cx) {
            Some(error) => Poll::Ready(Err(error)),
            None => read,
        }
    }
}

impl AsyncWrite for Forwarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buffer));
        Poll::Ready(written.map_err(|error| self.poll_trouble(cx).unwrap_or(error)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Does nothing: the protocol cannot close one direction, and kube would close both.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
