//! A wait until a server gets no more requests, for benchmarks.

use std::time::{Duration, Instant};

use okt_testing::ApiServer;

/// The time without requests after which all objects count as at rest.
const QUIET: Duration = Duration::from_secs(2);

/// Waits until the server got no requests for a while; returns the time of the last one.
pub async fn rest(server: &ApiServer, since: Instant) -> Duration {
    // A mark is cheap; a repeated read of all requests would slow down the measured program.
    let mut last = (server.mark(), since.elapsed());
    loop {
        let now = server.mark();
        if now != last.0 {
            last = (now, since.elapsed());
        }
        if since.elapsed() > last.1 + QUIET {
            return last.1;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
