//! Ids of traces, and references to objects: what events, deliveries and spans have in common.

use std::fmt::{self, Display, Formatter, Write as _};
use std::io::Write;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};
use sha2::{Digest, Sha256};

use okt_wire::object::LifecycleObject;

/// An id of this many bytes, written in hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Id<const BYTES: usize>(pub(crate) [u8; BYTES]);

impl<const BYTES: usize> Id<BYTES> {
    /// Returns the first bytes of a hash.
    fn first_of(hash: &[u8]) -> Self {
        let mut id = [0; BYTES];
        id.copy_from_slice(&hash[..BYTES]);
        Self(id)
    }
}

impl<const BYTES: usize> Display for Id<BYTES> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const BYTES: usize> EncodeLabelValue for Id<BYTES> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        write!(encoder, "{self}")
    }
}

/// Returns the id of the trace that a generation of an object's spec is, and the id of its first span: the hash of
/// `<uid>/<generation>`.
pub(crate) fn trace_ids(uid: &str, generation: i64) -> (Id<16>, Id<8>) {
    // Each sample of a metric has it: nothing is allocated.
    let mut digits = [0; 20];
    let mut rest = &mut digits[..];
    // The digits of any i64 fit.
    let _ = write!(rest, "{generation}");
    let unused = rest.len();
    let hash = Sha256::new()
        .chain_update(uid)
        .chain_update("/")
        .chain_update(&digits[..digits.len().saturating_sub(unused)])
        .finalize();
    (Id::first_of(&hash), Id::first_of(&hash[16..]))
}

/// Returns the id of a piece of work.
pub(crate) fn span_id(piece: &str) -> Id<8> {
    Id::first_of(&Sha256::digest(piece))
}

/// Returns a full reference to an object.
pub(crate) fn reference<K: LifecycleObject>(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}
