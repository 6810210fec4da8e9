//! Metrics in the format of Prometheus, under the names of controller-runtime where it has them.

pub mod controller;
pub(crate) mod lifecycle;
mod now;
mod process;
pub mod requests;

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use self::controller::Controllers;
use self::lifecycle::Lifecycles;
use self::now::Now;
use self::process::Process;
use self::requests::Requests;
use super::operators::Operators;

/// The metrics of a process; clones share them.
#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Arc<Mutex<Registry>>,
    pub(crate) controllers: Controllers,
    pub(crate) lifecycles: Lifecycles,
    pub(crate) requests: Requests,
}

impl Metrics {
    pub(crate) fn new(operators: &Operators) -> Self {
        let mut registry = Registry::default();
        let controllers = Controllers::register(&mut registry);
        let lifecycles = Lifecycles::register(&mut registry);
        let requests = Requests::register(&mut registry);
        registry.register_collector(Box::new(Now(operators.clone())));
        registry.register_collector(Box::new(Process));
        Self {
            registry: Arc::new(Mutex::new(registry)),
            controllers,
            lifecycles,
            requests,
        }
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut all = String::new();
        // Writing to a text does not fail.
        let _ = text::encode(&mut all, &self.registry());
        all
    }
}
