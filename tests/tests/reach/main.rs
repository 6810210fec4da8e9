//! The way to the application: commands, HTTP and ports, against a node and an application that do what a test says.

mod application;
mod exec;
mod http;
mod node;
mod real;
mod route;

use std::time::Duration;

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for something that must come.
async fn soon<T>(what: &str, it: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, it).await;
    waited.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}
