//! A real Kubernetes API server by hand: the program prints the path of its kubeconfig and the words of its kubectl, and
//! keeps it running until it is killed.
//!
//! With the argument `killed` it kills the server first, with `gated` it needs a feature gate.

use std::env;
use std::future::pending;

use okt_testing::{FeatureGate, Kubernetes, KubernetesError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), KubernetesError> {
    let argument = env::args().nth(1);
    let mut options = Kubernetes::options();
    if argument.as_deref() == Some("gated") {
        options = options.feature_gate(FeatureGate::ShardedListAndWatch, true);
    }
    let Some(mut kubernetes) = options.start_or_skip("a server to look at").await? else {
        return Ok(());
    };
    if argument.as_deref() == Some("killed") {
        kubernetes.kill()?;
    }
    println!("{}", kubernetes.kubeconfig().display());
    if let Some(kubectl) = kubernetes.kubectl() {
        let words = [kubectl.get_program()]
            .into_iter()
            .chain(kubectl.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        println!("{}", words.join(" "));
    }
    pending().await
}
