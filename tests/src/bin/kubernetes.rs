//! This program holds a real Kubernetes API server until it is killed, and prints where it is.

use std::future::pending;

use okt_testing::{Kubernetes, KubernetesError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), KubernetesError> {
    let Some(kubernetes) = Kubernetes::start_or_skip("a server to look at").await? else {
        return Ok(());
    };
    println!("{}", kubernetes.kubeconfig().display());
    pending().await
}
