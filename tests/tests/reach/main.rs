//! These tests reach an application: with commands, HTTP and ports, against a scripted node and application.

mod application;
mod exec;
mod http;
mod node;
mod real;
mod route;

use std::time::Duration;

/// The maximum wait for an expected event.
const PATIENCE: Duration = Duration::from_mins(10);

/// Waits for an expected event.
async fn soon<T>(what: &str, it: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, it).await;
    waited.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
