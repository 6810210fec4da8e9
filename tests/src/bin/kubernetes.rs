//! This program holds a real Kubernetes API server until it is killed, and prints where it is.
//!
//! With the argument `killed` it holds one that it has killed.

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
