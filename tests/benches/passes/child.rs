//! The OKT side in its own process.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, io};

use okt_tests::measured::{Host, Process, Tally, counted};

use crate::with_okt;

/// The first argument of a child process.
pub(crate) const CHILD: &str = "operator";

/// The work for a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Three states, each with a condition.
    Plain,
    /// The same with a `ConfigMap`.
    Map,
}

impl Job {
    pub(crate) const ALL: [Self; 2] = [Self::Plain, Self::Map];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Map => "map",
        }
    }

    /// Returns the number of `ConfigMap`s of an object.
    pub(crate) fn maps(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Map => 1,
        }
    }
}

/// Starts the operator for the charts of a namespace.
pub(crate) fn start(
    job: Job,
    host: &Host,
    namespace: &str,
    expected: usize,
) -> io::Result<Process> {
    Process::start(
        Command::new(env::current_exe()?)
            .arg(CHILD)
            .arg(&host.kubeconfig)
            .args([namespace, &expected.to_string(), job.name()]),
    )
}

/// The main function of the child: runs the operator and prints its figures for each line of input.
pub(crate) fn main(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [kubeconfig, namespace, expected, job] = arguments else {
        return Err("an operator wants a kubeconfig, a namespace, a number and its job".into());
    };
    let tally = Arc::new(Tally::expecting(expected.parse()?));
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = counted(Path::new(kubeconfig), &tally).await?;
        if job == Job::Map.name() {
            with_okt::run::<true>(client, namespace, tally).await?;
        } else {
            with_okt::run::<false>(client, namespace, tally).await?;
        }
        Ok(())
    })
}
