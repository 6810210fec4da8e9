//! This file is the operator of `Memcached` objects as a program: `run`, `crd`, `rbac` and `manifests`.
//!
//! Outside a cluster, with a kubeconfig:
//!
//! ```sh
//! cargo run --bin memcached -- crd | kubectl apply --server-side -f -
//! cargo run --bin memcached -- run
//! kubectl apply -f examples/memcached/cache.yaml
//! kubectl get memcached -w
//! kubectl scale memcached/cache --replicas=5
//! kubectl delete memcached/cache
//! ```
//!
//! Inside a cluster, with an image that has this program as its entry point:
//!
//! ```sh
//! cargo run --bin memcached -- manifests --image REGISTRY/memcached-operator:1 | kubectl apply --server-side -f -
//! ```
//!
//! Without a cluster: `cargo test -p okt-examples --test memcached`.

use std::future::ready;
use std::process::ExitCode;

use okt_examples::memcached::Memcacheds;

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| ready(Memcacheds::new())).await
}
