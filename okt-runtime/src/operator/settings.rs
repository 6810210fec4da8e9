//! The settings of one drive: its namespace, and how it is watched.

use kube::runtime::watcher;
use okt_telemetry::monitoring::Measured;
use tokio_util::sync::CancellationToken;

use crate::operator::news::Property;

/// The settings of one drive: its namespace, and how it is watched.
pub(crate) struct OperatorSettings<K> {
    pub(crate) namespace: Option<String>,
    pub(crate) concurrency: u16,
    pub(crate) watch: watcher::Config,
    pub(crate) property: Option<Property<K>>,
    pub(crate) metrics: Option<Measured>,
    pub(crate) stopping: CancellationToken,
}
