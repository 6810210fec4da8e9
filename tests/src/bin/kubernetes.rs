//! This program starts a real Kubernetes API server, prints the path of its kubeconfig, and keeps it running until the
//! program is killed.
//!
//! With the argument `killed` it kills the server first.

use std::env;
use std::future::pending;

use okt_testing::{Kubernetes, KubernetesError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), KubernetesError> {
    let Some(mut kubernetes) = Kubernetes::start_or_skip("a server to look at").await? else {
        return Ok(());
    };
    if env::args().nth(1).as_deref() == Some("killed") {
        kubernetes.kill()?;
    }
    println!("{}", kubernetes.kubeconfig().display());
    pending().await
}
