//! How long the API server may take to answer.
//!
//! kube waits for ever, and a turn that waits for an answer that was lost on the way would never end.

use std::future::Future;
use std::time::Duration;

/// The longest wait for an answer; the API server itself gives up a request after a minute.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for an answer, but not for ever.
///
/// # Errors
///
/// Those of the request, and [`kube::Error::Service`] where no answer came: then nobody knows whether it was
/// carried out, which the next look at the object tells.
pub(crate) async fn answer<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(Box::new(elapsed))),
    }
}
