//! Limits the time of what a real process or a real socket does, so that a test that waits in vain fails.

use std::time::Duration;

/// The limit; a busy machine may take minutes.
const LIMIT: Duration = Duration::from_mins(10);

/// Waits for something that runs in real time.
///
/// # Panics
/// It takes more than ten minutes.
pub async fn in_time<T>(what: &str, waited: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(LIMIT, waited).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until {what}"))
}

/// Waits until something is so, and fails if it takes too long.
pub async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    };
    in_time(what, waited).await;
}
