//! This file says what keeps a real API server from running.

use std::{error::Error, fmt, io};

/// Why there is no real API server.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// Nothing that could be run was found. A retry does not help.
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
    #[error("cannot build the API server from tests/kubernetes:\n{0}")]
    Build(String),
    /// A server from `KUBECONFIG` is to be killed or started again. A retry does not help.
    #[error("this server was not started here, so it is not killed: leave KUBECONFIG unset")]
    NotOurs,
    /// A program does not start, or ended too early. A retry seldom helps.
    #[error("{program} ended ({status}); it printed last:\n{log}")]
    Ended {
        /// Which program it is (e.g. `kube-apiserver`).
        program: String,
        /// How it ended.
        status: String,
        /// The end of its output.
        log: String,
    },
    /// It does not work in time. A retry helps if the machine was busy.
    #[error("{what} within {seconds} s; the server printed last:\n{log}")]
    Late {
        /// What did not happen.
        what: String,
        /// How long it was waited for, in seconds.
        seconds: u64,
        /// The end of the server's output.
        log: String,
    },
    /// A request to the server that must succeed did not. A retry seldom helps.
    #[error("the API server refuses the administrator")]
    Request(#[from] kube::Error),
    /// Files or processes cannot be made. A retry seldom helps.
    #[error("cannot run the API server")]
    Io(#[from] io::Error),
}

impl KubernetesError {
    /// Whether there is nothing to run, which a test may take as a reason not to run.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }
}

/// For people: a test that unwraps it must show the log as lines.
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
