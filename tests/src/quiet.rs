//! Waiting until nothing is asked of a server any more, for benchmarks.

use std::time::{Duration, Instant};

use okt_testing::ApiServer;

/// How long nothing must be asked until all is at rest.
const QUIET: Duration = Duration::from_secs(2);

/// Waits until nothing was asked for a while; how long something was.
pub async fn rest(server: &ApiServer, since: Instant) -> Duration {
    let mut last = (0, since.elapsed());
    loop {
        let asked = server.requests().len();
        if asked != last.0 {
            last = (asked, since.elapsed());
        }
        if since.elapsed() > last.1 + QUIET {
            return last.1;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
