//! This file weighs objects: what a process grows by for each that its API holds.

use std::fs;

use kube::Api;
use okt_testing::ApiServer;

use crate::boiler::{self, Boiler};

const OBJECTS: usize = 10_000;

/// Bytes for each object.
pub(crate) struct PerObject {
    /// As compact JSON, managed fields and all.
    pub(crate) json: usize,
    /// What the process grew by, all its indexes and its history included.
    pub(crate) resident: usize,
}

/// Fills an API with objects that were created and had one status applied.
///
/// `None` where the process cannot be weighed.
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
        // Requests are remembered until a test forgets them, which is not what is weighed here.
        server.clear_requests();
    }
    let after = resident().unwrap_or(before);
    Ok(Some(PerObject {
        json: json / OBJECTS,
        resident: after.saturating_sub(before) / OBJECTS,
    }))
}

/// The memory of this process in bytes, as Linux knows it.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}
