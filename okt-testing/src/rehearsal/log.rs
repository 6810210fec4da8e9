//! The log of a single run, with its virtual time.

use std::fmt;
use std::io::IsTerminal;

use tokio::time::Instant;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// The lines that are shown unless `RUST_LOG` chooses others.
const USUAL: &str = "info,okt_reach=debug,okt_runtime=debug,okt_sharding=debug,okt_telemetry=debug";

/// Writes the log of this thread to standard error until the guard is dropped.
pub(super) fn to_stderr() -> DefaultGuard {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_timer(Virtual::default())
        .with_writer(std::io::stderr)
        .finish();
    tracing::subscriber::set_default(log)
}

/// The time since the first line, on tokio's clock.
#[derive(Default)]
struct Virtual(std::sync::OnceLock<Instant>);

impl FormatTime for Virtual {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = Instant::now();
        let since = now.duration_since(*self.0.get_or_init(|| now));
        write!(writer, "{:9.3} s", since.as_secs_f64())
    }
}
