//! The requests of an operator, with its writes checked against the rules.

use kube::Client;
use okt_testing::rehearsal::Rules;
use okt_testing::{ApiServer, Mark, RequestRecord, Verb};
use parking_lot::Mutex;
use serde_json::Value;

/// The client name of operators; faults use it to affect only operators.
pub const OPERATOR: &str = "operator";

/// The requests of operators to a server.
pub struct Wire {
    server: ApiServer,
    since: Mutex<Mark>,
}

impl Wire {
    /// Creates the view of a server's requests.
    pub(crate) fn to(server: &ApiServer) -> Self {
        Self {
            server: server.clone(),
            since: Mutex::new(server.mark()),
        }
    }

    /// Returns a client for an operator.
    pub(crate) fn client(&self) -> Client {
        self.server.client_named(OPERATOR)
    }

    /// Returns every write of the operator, as `PATCH /path`; Kubernetes Events are not among them.
    pub fn writes(&self) -> Vec<String> {
        let since = *self.since.lock();
        self.server
            .requests_since(since)
            .into_iter()
            .filter(|request| request.client == OPERATOR && request.resource != "events")
            .filter_map(|request| Some(format!("{} {}", written_by(&request)?, request.path)))
            .collect()
    }

    /// Forgets the writes so far.
    pub fn clear(&self) {
        *self.since.lock() = self.server.mark();
    }

    /// Returns the rules that a status of this kind, written by the operator, has broken.
    pub(crate) fn broken_rules(&self, resource: &str, rules: &Rules) -> Vec<String> {
        let all = rules
            .broken_by(&self.server, OPERATOR, resource)
            .into_iter();
        let own = all.filter(|(version, _)| !is_inherited(&version.object()["status"]));
        let found = own.flat_map(|(version, broken)| {
            let status = &version.object()["status"];
            let status = serde_json::to_string_pretty(status).unwrap_or_default();
            broken
                .into_iter()
                .map(move |rule| format!("{rule}, in {status}"))
        });
        found.collect()
    }
}

/// Returns whether a status is still the one of an earlier controller: before its own first status, the operator removes
/// conditions from it.
fn is_inherited(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut own = conditions.filter(|it| it["type"] == "Deleting" || it["type"] == "Paused");
    status["lifecycle"].is_null() && own.next().is_none()
}

/// Returns the method of a request that may write.
fn written_by(request: &RequestRecord) -> Option<&'static str> {
    match request.verb {
        Verb::Create => Some("POST"),
        Verb::Update => Some("PUT"),
        Verb::Patch | Verb::Apply => Some("PATCH"),
        Verb::Delete | Verb::DeleteCollection => Some("DELETE"),
        _ => None,
    }
}
