//! This file is the side of OKT as a process of its own.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, io};

use okt_tests::measured::{Host, Process, Tally, counted};

use crate::with_okt;

/// The word before the arguments of a child.
pub(crate) const CHILD: &str = "operator";

/// What is done for a chart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Job {
    /// Three states, each with its condition.
    Plain,
    /// The same, and a map.
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

    /// How many maps an object has.
    pub(crate) fn maps(self) -> usize {
        match self {
            Self::Plain => 0,
            Self::Map => 1,
        }
    }
}

/// Starts the operator on the charts of a namespace.
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

/// What the child does: runs the operator, and says what it has done whenever a line comes in.
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
