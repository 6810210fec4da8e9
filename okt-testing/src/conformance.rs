//! The behaviours of the Kubernetes API that operators rely on, checked against any server.
//!
//! The suite needs only a `kube::Client`, so it runs against a real kube-apiserver, the
//! [`ApiServer`](crate::ApiServer) of this crate, or a fake of your own.
//! Each [`Behaviour`] is one claim, and its name states the claim; the 45 behaviours that operators
//! cannot do without have numbers.
//!
//! # Flow
//! [`Suite::start`] creates a CRD in a group that only this suite uses, and waits until it is
//! served. [`Suite::check`] gives each behaviour its own namespace, so behaviours may run at the
//! same time. [`Suite::finish`] deletes everything that the suite created, without waiting.
//!
//! # Assumptions
//! The user of the client may do everything. The cluster collects garbage and empties namespaces: a
//! bare kube-apiserver needs the garbage collector and the namespace controller of the controller
//! manager. Nothing else may work on the namespaces of the suite.
//! The client does not retry (`default_retry` of its `kube::Config` is off): some responses are
//! refusals that a retrying client would wait through.
//!
//! # Example
//! Run the whole suite, under paused tokio time. For another server, pass its client.
//! ```
//! use okt_testing::{ApiServer, conformance};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), conformance::Failure> {
//! let report = conformance::run(ApiServer::new().client()).await?;
//! println!("{report}"); // 45 of 45, further ...
//! assert_eq!(report.failures().count(), 0, "{report}");
//! # Ok(())
//! # }
//! ```

mod report;
mod suite;

#[macro_use]
mod claim;
mod behaviour;
mod reply;
mod world;

mod release;
mod widgets;

mod apply;
mod bodies;
mod builtin;
mod crds;
mod deletion;
mod discovery;
mod leases;
mod lists;
mod managers;
mod merging;
mod objects;
mod options;
mod patches;
mod rules;
mod runtime;
mod schema;
mod shards;
mod status;
mod types;
mod upgrades;
mod versioned;
mod versions;
mod watch;
mod writes;

use futures::{StreamExt, stream};
use kube::Client;

pub use behaviour::Behaviour;
pub use claim::Failure;
pub use report::Report;
pub use suite::Suite;

use crate::FeatureGate;

/// The number of behaviours that [`run`] checks at the same time.
const AT_ONCE: usize = 8;

/// Returns all behaviours of a server with the default feature gates, by theme.
///
/// # Example
/// ```
/// let behaviours = okt_testing::conformance::behaviours();
/// assert_eq!(behaviours.iter().filter(|behaviour| behaviour.number().is_some()).count(), 45);
/// ```
pub fn behaviours() -> Vec<Behaviour> {
    [
        objects::BEHAVIOURS,
        patches::BEHAVIOURS,
        lists::BEHAVIOURS,
        types::BEHAVIOURS,
        watch::BEHAVIOURS,
        status::BEHAVIOURS,
        apply::BEHAVIOURS,
        merging::BEHAVIOURS,
        managers::BEHAVIOURS,
        bodies::BEHAVIOURS,
        schema::BEHAVIOURS,
        rules::BEHAVIOURS,
        deletion::BEHAVIOURS,
        options::BEHAVIOURS,
        crds::BEHAVIOURS,
        versions::BEHAVIOURS,
        upgrades::BEHAVIOURS,
        builtin::BEHAVIOURS,
        leases::BEHAVIOURS,
        discovery::BEHAVIOURS,
        writes::BEHAVIOURS,
        runtime::BEHAVIOURS,
    ]
    .concat()
}

/// Returns the behaviours of a server with a feature gate that is off by default; they are not among
/// [`behaviours`].
///
/// # Example
/// ```
/// use okt_testing::{ApiServer, FeatureGate, conformance};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), conformance::Failure> {
/// let gate = FeatureGate::ShardedListAndWatch;
/// let server = ApiServer::new();
/// server.set_feature_gate(gate, true);
/// let suite = conformance::Suite::start(server.client()).await?;
/// for behaviour in conformance::gated_behaviours(gate) {
///     suite.check(&behaviour).await?;
/// }
/// # Ok(())
/// # }
/// ```
pub fn gated_behaviours(gate: FeatureGate) -> Vec<Behaviour> {
    match gate {
        FeatureGate::ShardedListAndWatch => shards::BEHAVIOURS.to_vec(),
    }
}

/// Checks all behaviours, some at the same time.
///
/// # Errors
/// The suite cannot start: the server does not accept a CRD or does not serve it. The report
/// contains the failed behaviours, and whether something could not be deleted.
pub async fn run(client: Client) -> Result<Report, Failure> {
    let suite = Suite::start(client).await?;
    let results: Vec<_> = stream::iter(behaviours())
        .map(async |behaviour| (behaviour, suite.check(&behaviour).await))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let mut report: Report = results.into_iter().collect();
    if let Err(why) = suite.finish().await {
        report.leave(why);
    }
    Ok(report)
}

impl Behaviour {
    /// Checks this behaviour alone; for several, a [`Suite`] creates its CRD once.
    ///
    /// # Errors
    /// The server behaves differently, or cannot be reached. A retry helps if it was too slow.
    ///
    /// # Example
    /// ```
    /// use okt_testing::{ApiServer, conformance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), conformance::Failure> {
    /// let client = ApiServer::new().client();
    /// let behaviours = conformance::behaviours();
    /// let stale = behaviours.iter().find(|behaviour| behaviour.number() == Some(7)).expect("it is there");
    /// stale.run(client).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run(&self, client: Client) -> Result<(), Failure> {
        let suite = Suite::start(client).await?;
        let outcome = suite.check(self).await;
        outcome.and(suite.finish().await)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_of_the_45_numbers_is_used_once() {
        let mut numbers: Vec<_> = behaviours().iter().filter_map(Behaviour::number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=45).collect::<Vec<_>>());
    }

    #[test]
    fn no_two_behaviours_share_a_name() {
        let gated = gated_behaviours(FeatureGate::ShardedListAndWatch);
        let all = [behaviours(), gated].concat();
        let names: BTreeSet<_> = all.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), all.len());
    }
}
