//! Waiting until nothing is asked of a server any more, for benchmarks.

use std::time::{Duration, Instant};

use okt_testing::ApiServer;

/// How long nothing must be asked until all is at rest.
const QUIET: Duration = Duration::from_secs(2);

/// Waits until nothing was asked for a while; how long something was.
pub async fn rest(server: &ApiServer, since: Instant) -> Duration {
    // A mark costs nothing; to ask for all requests again and again would slow down what is timed.
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
