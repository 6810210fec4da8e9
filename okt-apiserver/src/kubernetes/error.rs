//! [`KubernetesError`]: why a real API server does not run.

use std::error::Error;
use std::{fmt, io};

use crate::FeatureGate;

/// The error for a real API server that does not run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// There is no API server to run. A retry does not help.
    #[error(
        "there is no Kubernetes to test against: install Go, or set KUBEBUILDER_ASSETS, \
         or let KUBECONFIG lead to a cluster on this machine"
    )]
    Missing,
    /// `OKT_TEST_CONTEXT` names a context that `KUBECONFIG` does not have. A retry does not help.
    #[error("OKT_TEST_CONTEXT names the context {0:?}, which KUBECONFIG does not have")]
    Context(String),
    /// `KUBECONFIG` cannot be used. A retry does not help.
    #[error("cannot use KUBECONFIG")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// Go cannot build the server. A retry helps if Go could not download a module.
    #[error("cannot build the API server from okt-apiserver/kubernetes:\n{0}")]
    Build(String),
    /// A server from `KUBECONFIG` cannot be killed or restarted. A retry does not help.
    #[error("this server was not started here, so it is not killed: leave KUBECONFIG unset")]
    NotOurs,
    /// A server from `KUBECONFIG` has another feature gate than the test needs. A retry does not help.
    #[error(
        "the test needs the feature gate {gate}={on}, which the server of KUBECONFIG does not have: \
         set it there, or leave KUBECONFIG unset"
    )]
    FeatureGate {
        /// The gate.
        gate: FeatureGate,
        /// Whether the test needs it on.
        on: bool,
    },
    /// A program did not start, or ended too early. A retry seldom helps.
    #[error("{program} ended ({status}); it printed last:\n{log}")]
    Ended {
        /// The program (e.g. `kube-apiserver`).
        program: String,
        /// The exit status.
        status: String,
        /// The end of its output.
        log: String,
    },
    /// The server does not work in time. A retry helps if the machine was busy.
    #[error("{what} within {seconds} s; the server printed last:\n{log}")]
    Late {
        /// The event that did not happen.
        what: String,
        /// The time waited for it, in seconds.
        seconds: u64,
        /// The end of the server's output.
        log: String,
    },
    /// A request of the start failed. A retry seldom helps.
    #[error("the API server refuses the administrator")]
    Request(#[from] kube::Error),
    /// A file or process cannot be created. A retry seldom helps.
    #[error("cannot run the API server")]
    Io(#[from] io::Error),
}

impl KubernetesError {
    /// Returns whether there is no API server to run, so that a test may be skipped.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

/// Formats the error for people: a test that unwraps it must show the log as lines.
impl fmt::Debug for KubernetesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut source = self.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
