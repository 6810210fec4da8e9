//! One controller in its own process, so that its memory and its CPU time are measured alone.

use std::error::Error;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use okt::{CloudEvents, Group, Membership, Monitoring, Operator, Shards};
use okt_tests::measured::{Process, Tally, counted};

use crate::with_okt::Parcels;
use crate::{by_hand, sinks};

/// The first argument of a child process.
pub(crate) const CHILD: &str = "controller";

/// The implementation of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    ByHand,
    WithOkt,
    /// OKT with handlers that never end; each start of a handler counts as a reconciliation.
    AtWork,
    /// OKT as one of the replicas of a group.
    Replica,
    /// OKT with metrics.
    Measured,
    /// OKT with metrics, logs, traces, `CloudEvents` and a sink of its own.
    Telling,
    /// The same, with the `CloudEvents` that wait for a request sent together.
    TellingInBatches,
}

impl Way {
    /// The order in which they alternate.
    pub(crate) const BOTH: [Self; 2] = [Self::ByHand, Self::WithOkt];

    /// The titles in tables, the measured one first.
    pub(crate) const TITLES: [&'static str; 2] = [Self::WithOkt.title(), Self::ByHand.title()];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ByHand => "by-hand",
            Self::WithOkt => "with-okt",
            Self::AtWork => "at-work",
            Self::Replica => "replica",
            Self::Measured => "measured",
            Self::Telling => "telling",
            Self::TellingInBatches => "telling-in-batches",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ByHand => "by hand",
            Self::AtWork => "OKT at work",
            Self::Replica => "OKT replica",
            Self::WithOkt => "OKT",
            Self::Measured => "OKT with metrics",
            Self::Telling => "OKT with all sinks",
            Self::TellingInBatches => "OKT with all sinks, in batches",
        }
    }

    /// Starts a controller that reports when it has done this number of reconciliations.
    pub(crate) fn start(
        self,
        kubeconfig: &Path,
        namespace: &str,
        expected: usize,
    ) -> io::Result<Process> {
        self.start_in(kubeconfig, namespace, expected, "alone")
    }

    /// Starts a controller as one of the replicas of a group, or one that sends what happens to a URL.
    pub(crate) fn start_in(
        self,
        kubeconfig: &Path,
        namespace: &str,
        expected: usize,
        place: &str,
    ) -> io::Result<Process> {
        self.start_of(None, kubeconfig, namespace, expected, place)
    }

    /// Starts a controller of another build of this program, or of this one.
    fn start_of(
        self,
        program: Option<&Path>,
        kubeconfig: &Path,
        namespace: &str,
        expected: usize,
        place: &str,
    ) -> io::Result<Process> {
        let program = program.map_or_else(env::current_exe, |other| Ok(other.into()))?;
        Process::start(
            Command::new(program)
                .args([CHILD, self.name()])
                .arg(kubeconfig)
                .args([namespace, &expected.to_string(), place]),
        )
    }
}

/// One of two controllers that are compared.
pub(crate) struct Side {
    pub(crate) title: &'static str,
    /// What its namespaces are called.
    pub(crate) name: &'static str,
    way: Way,
    /// The program that has it; none for this one.
    program: Option<PathBuf>,
}

impl Side {
    /// OKT, and the same by hand.
    pub(crate) fn with_and_by_hand() -> [Self; 2] {
        [Way::WithOkt, Way::ByHand].map(|way| Self {
            title: way.title(),
            name: way.name(),
            way,
            program: None,
        })
    }

    /// OKT, and the OKT of another build of this benchmark.
    pub(crate) fn now_and_before(program: PathBuf) -> [Self; 2] {
        let side = |title, name, program| Self {
            title,
            name,
            way: Way::WithOkt,
            program,
        };
        [
            side("now", "now", None),
            side("before", "before", Some(program)),
        ]
    }

    /// Starts the controller.
    pub(crate) fn start(&self, kubeconfig: &Path, namespace: &str) -> io::Result<Process> {
        let program = self.program.as_deref();
        (self.way).start_of(program, kubeconfig, namespace, 0, "alone")
    }
}

/// The main function of the child: runs a controller and prints its figures for each line of input.
pub(crate) fn main(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [way, kubeconfig, namespace, expected, place] = arguments else {
        let why =
            "a controller wants its way, a kubeconfig, a namespace, a number and a group or URL";
        return Err(why.into());
    };
    let is = |other: Way| way == other.name();
    let tally = Arc::new(Tally::expecting(expected.parse()?));
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = counted(Path::new(kubeconfig), &tally).await?;
        if is(Way::ByHand) {
            by_hand::run(client, namespace, tally).await;
            return Ok(());
        }
        let mut parcels = Parcels::new(tally);
        parcels.at_work = is(Way::AtWork);
        if is(Way::Replica) {
            // Replicas are compared by what their objects cause, and not by how long a run takes.
            parcels.observe_every = Duration::from_hours(5);
        }
        let mut operator = Operator::new(client.clone(), parcels).namespaces([namespace]);
        // It ends with the process.
        let membership;
        if is(Way::Replica) {
            let group = Group::new(place, "default").shards(Shards::Auto);
            membership = Membership::join(client, group);
            operator = operator.replicas(&membership);
        } else if is(Way::Measured) {
            operator = operator.monitoring(&Monitoring::new());
        } else if is(Way::Telling) {
            operator = sinks::all(operator, client, place, |events| events)?;
        } else if is(Way::TellingInBatches) {
            operator = sinks::all(operator, client, place, CloudEvents::batched)?;
        }
        Ok(operator.run(pending()).await?)
    })
}
