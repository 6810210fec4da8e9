//! The wire between an operator and the API: what went over it, and whether the rules allow it.

use std::sync::{Mutex, PoisonError};

use kube::Client;
use okt_testing::rehearsal::Rules;
use okt_testing::{ApiServer, Mark, RequestRecord, Verb};

/// The name by which the server knows operators: faults that are to strike them alone name it.
pub const OPERATOR: &str = "operator";

/// The wire between operators and a server.
pub struct Wire {
    server: ApiServer,
    since: Mutex<Mark>,
}

impl Wire {
    /// The wire to a server.
    pub(crate) fn to(server: &ApiServer) -> Self {
        Self {
            server: server.clone(),
            since: Mutex::new(server.mark()),
        }
    }

    /// An operator's client.
    pub(crate) fn client(&self) -> Client {
        self.server.client_named(OPERATOR)
    }

    /// Every write of the operator, as `PATCH /path`.
    pub fn writes(&self) -> Vec<String> {
        let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
        (self.server.requests_since(since).into_iter())
            .filter(|request| request.client == OPERATOR)
            .filter_map(|request| Some(format!("{} {}", written_by(&request)?, request.path)))
            .collect()
    }

    /// Forgets the writes so far.
    pub fn clear(&self) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = self.server.mark();
    }

    /// The rules that a status which the operator wrote of this kind has broken.
    pub(crate) fn broken_rules(&self, resource: &str, rules: &Rules) -> Vec<String> {
        let all = rules
            .broken_by(&self.server, OPERATOR, resource)
            .into_iter();
        let told = all.flat_map(|(version, broken)| {
            let status = &version.object()["status"];
            let status = serde_json::to_string_pretty(status).unwrap_or_default();
            broken
                .into_iter()
                .map(move |rule| format!("{rule}, in {status}"))
        });
        told.collect()
    }
}

/// The method of a request that may write.
fn written_by(request: &RequestRecord) -> Option<&'static str> {
    match request.verb {
        Verb::Create => Some("POST"),
        Verb::Update => Some("PUT"),
        Verb::Patch | Verb::Apply => Some("PATCH"),
        Verb::Delete | Verb::DeleteCollection => Some("DELETE"),
        _ => None,
    }
}
