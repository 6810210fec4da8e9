//! The time limit for answers of the API server, and the wait for the server at the start.
//!
//! kube waits without a limit: a reconciliation whose answer is lost on the way would never end.

use std::future::Future;
use std::time::Duration;

use kube::Client;
use okt_core::backoff::Backoff;

use crate::texts::chain;

/// The longest wait for an answer; the API server itself gives up a request after a minute.
const PATIENCE: Duration = Duration::from_mins(1);

/// The backoff between attempts to reach an unavailable API server. If the process ended instead, its pod would wait up
/// to five minutes for its restart.
const UNTIL_CONTACT: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(20));

/// Waits until the API server answers, because it may be starting too.
///
/// # Errors
///
/// If a retry does not help: the server refuses this client, or is no API server.
pub(crate) async fn contact(client: &Client) -> Result<(), kube::Error> {
    let mut attempts = 0_u32;
    loop {
        let error = match answer(client.apiserver_version()).await {
            Ok(_) => return Ok(()),
            // The server answers. The request that needs a permission reports that it is missing; a starting server
            // grants permissions late.
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(()),
            Err(error) if may_pass(&error) => error,
            Err(error) => return Err(error),
        };
        attempts = attempts.saturating_add(1);
        let wait = UNTIL_CONTACT.wait(attempts, std::process::id().into());
        tracing::warn!(?wait, "cannot reach the Kubernetes API: {}", chain(&error));
        tokio::time::sleep(wait).await;
    }
}

/// Returns whether a failed request may succeed later although nothing is changed.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500..),
        // No connection, a broken one, or no answer.
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}

/// Waits for an answer for at most a minute.
///
/// # Errors
///
/// Those of the request, and [`kube::Error::Service`] if no answer came. The request may have been carried out then;
/// the next version of the object shows it.
pub(crate) async fn answer<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(answer) => answer,
        Err(elapsed) => Err(kube::Error::Service(Box::new(elapsed))),
    }
}
