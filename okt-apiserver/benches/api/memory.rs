//! Measures the memory that a process needs for each object in its API.

use std::fs;

use kube::Api;
use okt_apiserver::ApiServer;

use crate::boiler::{self, Boiler};

const OBJECTS: usize = 10_000;

/// Bytes for each object.
pub(crate) struct PerObject {
    /// The size as compact JSON, including managed fields.
    pub(crate) json: usize,
    /// The growth of the process, including all indexes and the history.
    pub(crate) resident: usize,
}

/// Fills an API with objects that were created and had one status applied.
///
/// Returns `None` if the memory of the process cannot be measured.
pub(crate) async fn per_object() -> kube::Result<Option<PerObject>> {
    let server = ApiServer::new();
    let client = server.client();
    boiler::declare(&client).await?;
    let boilers: Api<Boiler> = Api::default_namespaced(client);
    let Some(before) = resident() else {
        return Ok(None);
    };
    let mut json = 0;
    for n in 0..OBJECTS {
        let made = boiler::create(&boilers, &format!("boiler-{n:05}")).await?;
        let shown = boiler::step(&boilers, &made).await?;
        json += serde_json::to_vec(&shown).map_or(0, |text| text.len());
        // Recorded requests are not part of the measurement.
        server.clear_requests();
    }
    let after = resident().unwrap_or(before);
    Ok(Some(PerObject {
        json: json / OBJECTS,
        resident: after.saturating_sub(before) / OBJECTS,
    }))
}

/// Returns the resident memory of this process in bytes, on Linux.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
