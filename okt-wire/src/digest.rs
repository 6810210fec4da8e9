//! Hashes, as they stand in objects.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Returns a hash of the input of handlers.
pub fn revision(of: &impl Serialize) -> u64 {
    revision_hash(&serde_json::to_vec(of).unwrap_or_default())
}

/// Returns a hash of the input of handlers, as JSON.
pub fn revision_hash(text: &[u8]) -> u64 {
    let digest = Sha256::digest(text);
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the text of a revision in a status.
pub fn text(revision: u64) -> String {
    format!("{revision:016x}")
}

/// Returns the revision that a status has as this text.
pub fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Returns a digest as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.push_str(&format!("{byte:02x}"));
        text
    })
}
