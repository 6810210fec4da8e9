//! This crate holds operators written with OKT, and the applications they drive.

pub mod always;
pub mod claims;
pub mod desk;
pub mod dice;
pub mod fleet;
pub mod leaflets;
pub mod memcached;
pub mod notes;
pub mod notes_operator;
pub mod postgres;
pub mod processes;
pub mod queue;
pub mod screen;
pub mod tents;

/// Logs to standard error with the filter in `RUST_LOG`; by default from level `info`.
pub fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    // A test may have set up logging already.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
}

/// Completes at Ctrl-C or SIGTERM.
pub async fn shutdown_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = signal(SignalKind::interrupt());
    let terminate = signal(SignalKind::terminate());
    match (interrupt, terminate) {
        (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        },
        // Without signal handlers a demo ends on its own.
        (Err(_), _) | (_, Err(_)) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use okt::Lifecycle;
    use okt_testing::lock;

    #[test]
    fn the_graphs_are_those_of_the_lock_file() {
        let mut graphs = lock::versions::<crate::tents::v1::Tent>();
        graphs.extend([
            crate::notes_operator::NotesState::GRAPH.into(),
            crate::postgres::life::PostgresState::GRAPH.into(),
        ]);
        lock::check("lifecycle.lock", graphs);
    }
}
