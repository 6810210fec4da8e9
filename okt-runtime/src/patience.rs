//! How long the API server may take to answer, and how it is waited for at the start.
//!
//! kube waits for ever, and a turn that waits for an answer that was lost on the way would never end.

use std::future::Future;
use std::time::Duration;

use kube::Client;
use okt_core::backoff::Backoff;

use crate::texts::chain;

/// The longest wait for an answer; the API server itself gives up a request after a minute.
const PATIENCE: Duration = Duration::from_mins(1);

/// The waits between attempts to reach an API server that is away; a pod that ended instead would wait
/// up to five minutes for its restart.
const UNTIL_CONTACT: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(20));

/// Waits until the API server answers: it may be starting too.
///
/// # Errors
///
/// What waiting does not cure: the server refuses this client, or is none.
pub(crate) async fn contact(client: &Client) -> Result<(), kube::Error> {
    let mut attempts = 0_u32;
    loop {
        let error = match answer(client.apiserver_version()).await {
            Ok(_) => return Ok(()),
            // It answers; what may be read is said where it is read, and permissions come late at its own start.
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

/// Whether a request that failed may succeed later with nobody changing anything.
fn may_pass(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 408 | 429 | 500..),
        // No connection, a broken one, or no answer.
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}

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
