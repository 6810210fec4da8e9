//! This file is one controller in a process of its own, so that its memory and its time are nobody else's.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, io};

use okt_tests::measured::{Process, Tally, counted};

use crate::{by_hand, with_okt};

/// The word before the arguments of a child.
pub(crate) const CHILD: &str = "controller";

/// How a controller was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    ByHand,
    WithOkt,
    /// With OKT, and with handlers that never end; a turn is the begin of one.
    AtWork,
}

impl Way {
    /// In the order in which they take turns.
    pub(crate) const BOTH: [Self; 2] = [Self::ByHand, Self::WithOkt];

    /// As tables name them: the one that is judged first.
    pub(crate) const TITLES: [&'static str; 2] = [Self::WithOkt.title(), Self::ByHand.title()];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ByHand => "by-hand",
            Self::WithOkt => "with-okt",
            Self::AtWork => "at-work",
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ByHand => "by hand",
            Self::AtWork => "OKT at work",
            Self::WithOkt => "OKT",
        }
    }

    /// Starts a controller that is to say when it had so many turns.
    pub(crate) fn start(
        self,
        kubeconfig: &Path,
        namespace: &str,
        expected: usize,
    ) -> io::Result<Process> {
        Process::start(
            Command::new(env::current_exe()?)
                .args([CHILD, self.name()])
                .arg(kubeconfig)
                .args([namespace, &expected.to_string()]),
        )
    }
}

/// What the child does: runs a controller, and says what it has done whenever a line comes in.
pub(crate) fn main(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let [way, kubeconfig, namespace, expected] = arguments else {
        return Err("a controller wants its way, a kubeconfig, a namespace and a number".into());
    };
    let tally = Arc::new(Tally::expecting(expected.parse()?));
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = counted(Path::new(kubeconfig), &tally).await?;
        if way == Way::ByHand.name() {
            by_hand::run(client, namespace, tally).await;
        } else {
            let at_work = way == Way::AtWork.name();
            with_okt::run(client, namespace, tally, at_work).await?;
        }
        Ok(())
    })
}
