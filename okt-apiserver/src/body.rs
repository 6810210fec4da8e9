//! Builds the bodies of answers, and the errors of connections that break.

use std::io;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

/// The body of an answer; it fails if its connection breaks.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Returns a body that is sent as a whole.
pub(crate) fn whole(body: Bytes) -> Body {
    Full::new(body)
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The error of a connection that ends before an answer.
pub(crate) fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
}

/// The error of a connection that ends within an answer, in the words of an HTTP client.
pub(crate) fn cut_off() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "unexpected EOF during chunk size line",
    )
}

/// Cuts the body off after a number of bytes, without a proper end.
pub(crate) fn cut(body: Body, bytes: usize) -> Body {
    let frames = stream::unfold(Some((body, bytes)), |state| async move {
        let (mut body, left) = state?;
        let next = if left == 0 { None } else { body.frame().await };
        let data = match next {
            None => {
                // The HTTP server flushes the data sent so far only while nothing more is ready.
                tokio::task::yield_now().await;
                return Some((Err(cut_off()), None));
            }
            Some(Err(error)) => return Some((Err(error), None)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let sent = data.slice(..data.len().min(left));
        let left = left - sent.len();
        Some((Ok(Frame::data(sent)), Some((body, left))))
    });
    StreamBody::new(frames).boxed_unsync()
}
