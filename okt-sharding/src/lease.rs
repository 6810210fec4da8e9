//! Members and tables as leases of the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Stored;
use okt_wire::keys::{
    EPOCH_KEY, FORMAT_KEY, FORMATS_KEY, GROUP_LABEL, HASH_KEY, KINDS_KEY, LIMIT_KEY, RANGES_KEY,
    READY_KEY, ROWS_KEY, STOPPING_KEY, TABLE_KEY, VERSION_KEY,
};
use serde_json::{Value, json};

use super::protocol::{Lease, MemberState};
use super::ranges::RANGES;
use super::table::{FORMAT, Name, RangeTable};

/// The names of the CRDs of the operators of this process.
type Kinds = BTreeSet<&'static str>;

/// Objects belong to the range of their uid.
const BY_UID: &str = "uid";

/// Returns the name of the table of a group.
pub(crate) fn table_name(group: &str) -> Name {
    format!("{group}-ranges")
}

/// Returns the lease of a member, to be created.
pub(crate) fn member(
    group: &str,
    name: &str,
    replica: &str,
    lease: Duration,
    state: &MemberState,
    kinds: &Kinds,
) -> Value {
    let now = micro(Timestamp::now());
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "labels": { GROUP_LABEL: group }, "annotations": annotations(state, kinds) },
        "spec": {
            "holderIdentity": replica,
            "acquireTime": now,
            "renewTime": now,
            "leaseDurationSeconds": lease.as_secs().max(1),
        },
    })
}

/// Returns the merge patch that renews the lease of a member; it names the uid, so that it creates nothing (C8).
pub(crate) fn renewal(uid: &str, state: &MemberState, kinds: &Kinds) -> Value {
    json!({
        "metadata": { "uid": uid, "annotations": annotations(state, kinds) },
        "spec": { "renewTime": micro(Timestamp::now()) },
    })
}

fn annotations(state: &MemberState, kinds: &Kinds) -> Value {
    let annotations = json!({
        READY_KEY: state.ready.to_string(),
        STOPPING_KEY: state.stopping.to_string(),
        LIMIT_KEY: match state.limit {
            usize::MAX => "auto".to_owned(),
            limit => limit.to_string(),
        },
        FORMATS_KEY: FORMAT,
        TABLE_KEY: state.table.as_deref().unwrap_or_default(),
    });
    with_kinds(annotations, kinds)
}

/// Adds the kinds to annotations, once operators have named them: what another replica wrote before stays until then.
fn with_kinds(mut annotations: Value, kinds: &Kinds) -> Value {
    if !kinds.is_empty() {
        let kinds: Vec<_> = kinds.iter().copied().collect();
        annotations[KINDS_KEY] = json!(kinds.join(","));
    }
    annotations
}

/// Returns a new table, to be created.
pub(crate) fn table(group: &str, table: &RangeTable, kinds: &Kinds) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": table_name(group),
            "labels": { GROUP_LABEL: group },
            "annotations": rows(table, kinds),
        },
        "spec": {},
    })
}

/// Returns the merge patch that writes a table over the one of this version.
///
/// `holders` are the members that hold ranges, as people know them.
pub(crate) fn written(
    uid: &str,
    version: &str,
    table: &RangeTable,
    holders: &[&str],
    kinds: &Kinds,
) -> Value {
    let holders = match holders {
        [] => None,
        [leader] => Some((*leader).to_owned()),
        some => Some(format!("{} replicas", some.len())),
    };
    json!({
        "metadata": { "uid": uid, "resourceVersion": version, "annotations": rows(table, kinds) },
        "spec": { "holderIdentity": holders },
    })
}

fn rows(table: &RangeTable, kinds: &Kinds) -> Value {
    let rows = json!({
        FORMAT_KEY: FORMAT,
        RANGES_KEY: RANGES.to_string(),
        HASH_KEY: BY_UID,
        VERSION_KEY: table.version.to_string(),
        EPOCH_KEY: table.epoch.to_string(),
        ROWS_KEY: table.text(),
    });
    with_kinds(rows, kinds)
}

/// Reads a lease of a group, and who it belongs to, as people know it; none if it is no lease of this protocol.
pub(crate) fn read(group: &str, stored: &Stored) -> Option<(Lease, String)> {
    let meta = &stored.metadata;
    let (name, uid) = (meta.name.clone()?, meta.uid.clone()?);
    let version = meta.resource_version.clone()?;
    let none = BTreeMap::new();
    let annotations = meta.annotations.as_ref().unwrap_or(&none);
    let text = |key: &str| annotations.get(key).map(String::as_str);
    let spec = stored.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.unwrap_or_default();
    if name == table_name(group) {
        let table = read_table(text);
        if let Err(why) = &table {
            tracing::error!(
                lease = name,
                "cannot read the table of ranges: {why}; this replica acts on nothing. If somebody edited the lease, \
                 delete it; if a newer release wrote it, update this replica"
            );
        }
        return Some((
            Lease::Table {
                uid,
                version,
                table: table.ok(),
            },
            holder,
        ));
    }
    let joined = meta.creation_timestamp.as_ref()?.0.to_string();
    let formats = text(FORMATS_KEY).unwrap_or_default();
    let lease = Lease::Member {
        name,
        uid,
        version,
        joined,
        reads: formats.split(',').any(|format| format == FORMAT),
        length: seconds(spec.lease_duration_seconds),
        state: MemberState {
            ready: text(READY_KEY) == Some("true"),
            stopping: text(STOPPING_KEY) == Some("true"),
            // A limit that this release does not know is no limit.
            limit: text(LIMIT_KEY)
                .and_then(|limit| limit.parse().ok())
                .unwrap_or(usize::MAX),
            table: text(TABLE_KEY)
                .filter(|uid| !uid.is_empty())
                .map(str::to_owned),
        },
    };
    Some((lease, holder))
}

/// Returns when a lease was written, by the clock of the API server.
pub(crate) fn written_at(stored: &Stored) -> Option<Timestamp> {
    let managers = stored.metadata.managed_fields.iter().flatten();
    let writes = managers.filter_map(|entry| entry.time.as_ref());
    let times = writes.chain(&stored.metadata.creation_timestamp);
    times.map(|time| time.0).max()
}

/// Returns the length of a lease; the API server wants it positive.
fn seconds(length: Option<i32>) -> Duration {
    let seconds = length.and_then(|length| u64::try_from(length).ok());
    Duration::from_secs(seconds.unwrap_or_default())
}

fn read_table<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Result<RangeTable, String> {
    for (key, expected) in [(FORMAT_KEY, FORMAT), (RANGES_KEY, "64"), (HASH_KEY, BY_UID)] {
        let found = text(key).unwrap_or_default();
        if found != expected {
            return Err(format!("`{key}` is `{found}`, and not `{expected}`"));
        }
    }
    let number = |key: &str| {
        let found = text(key).unwrap_or_default();
        found
            .parse::<u64>()
            .map_err(|_| format!("`{key}` is `{found}`, and no number"))
    };
    RangeTable::read(
        number(VERSION_KEY)?,
        number(EPOCH_KEY)?,
        text(ROWS_KEY).unwrap_or_default(),
    )
}

/// Formats a time as the API server does in leases: with microseconds.
fn micro(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(mut object: Value, uid: &str) -> Stored {
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!("7");
        object["metadata"]["creationTimestamp"] = json!("2026-11-21T09:00:00Z");
        serde_json::from_value(object).expect("a lease")
    }

    #[test]
    fn members_and_tables_read_back() {
        let state = MemberState {
            ready: true,
            stopping: false,
            limit: usize::MAX,
            table: Some("t".to_owned()),
        };
        let object = member(
            "db",
            "db-1",
            "pod-1",
            Duration::from_secs(15),
            &state,
            &Kinds::new(),
        );
        let (lease, replica) = read("db", &stored(object, "u")).expect("a lease");
        assert_eq!(replica, "pod-1");
        let Lease::Member {
            name,
            reads,
            state: read_back,
            joined,
            length,
            ..
        } = lease
        else {
            panic!("a member");
        };
        assert_eq!((&*name, reads, read_back), ("db-1", true, state));
        assert_eq!(joined, "2026-11-21T09:00:00Z");
        assert_eq!(length, Duration::from_secs(15));

        let mut rows = RangeTable::new(Duration::from_secs(5));
        rows.rows[3].holder = Some("db-1".to_owned());
        let (lease, _) =
            read("db", &stored(table("db", &rows, &Kinds::new()), "t")).expect("a lease");
        let expected = Lease::Table {
            uid: "t".to_owned(),
            version: "7".to_owned(),
            table: Some(rows),
        };
        assert_eq!(lease, expected);
    }

    #[test]
    fn a_table_of_another_format_is_not_read() {
        let mut object = table("db", &RangeTable::new(Duration::ZERO), &Kinds::new());
        object["metadata"]["annotations"][FORMAT_KEY] = json!("2");
        let (lease, _) = read("db", &stored(object, "t")).expect("a lease");
        assert!(
            matches!(lease, Lease::Table { table: None, .. }),
            "{lease:?}"
        );
    }

    #[test]
    fn kinds_are_named_once_they_are_known() {
        let table_of = |kinds: &[&'static str]| {
            let kinds = kinds.iter().copied().collect();
            table("db", &RangeTable::new(Duration::ZERO), &kinds)["metadata"]["annotations"]
                [KINDS_KEY]
                .clone()
        };
        assert_eq!(table_of(&[]), Value::Null);
        assert_eq!(table_of(&["b.demo", "a.demo"]), json!("a.demo,b.demo"));
    }
}
