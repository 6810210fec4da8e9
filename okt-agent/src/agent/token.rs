//! The bearer token of requests over TCP: from a file that is read again when it changes.

use std::fs;
use std::path::{Path, PathBuf};

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use parking_lot::RwLock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The limit for a token, in bytes.
const LIMIT: u64 = 4096;

/// The hash of a token.
#[derive(Debug)]
pub(super) struct TokenHash {
    file: PathBuf,
    /// `None` while the file holds no token.
    digest: RwLock<Option<[u8; 32]>>,
}

/// The token cannot be used. A retry helps after the file is fixed.
#[derive(Debug, thiserror::Error)]
#[error("read the token {}: {why}", .file.display())]
pub struct TokenError {
    file: PathBuf,
    why: String,
}

impl TokenHash {
    /// Reads the token from this file.
    pub(super) fn read(file: &Path) -> Result<Self, TokenError> {
        Ok(Self {
            file: file.to_owned(),
            digest: RwLock::new(Some(read(file)?)),
        })
    }

    /// Reads the file again. Without a token every request is refused, so removing the file revokes the token.
    ///
    /// # Errors
    ///
    /// The file holds no token now. A retry may help later.
    pub(super) fn refresh(&self) -> Result<(), TokenError> {
        let read = read(&self.file);
        let digest = read.as_ref().ok().copied();
        *self.digest.write() = digest;
        read.map(drop)
    }

    /// Returns whether a request carries the token. The comparison takes constant time.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(given), None) = (given.next(), given.next()) else {
            return false;
        };
        let bytes = given.as_bytes();
        let Some((scheme, token)) = bytes.split_at_checked("Bearer ".len()) else {
            return false;
        };
        let Some(digest) = *self.digest.read() else {
            return false;
        };
        let is_same = digest.as_slice().ct_eq(Sha256::digest(token).as_slice());
        scheme.eq_ignore_ascii_case(b"Bearer ") && is_same.into()
    }
}

fn read(file: &Path) -> Result<[u8; 32], TokenError> {
    let failed = |why: String| TokenError {
        file: file.to_owned(),
        why,
    };
    let length = fs::metadata(file).map_err(|error| failed(error.to_string()))?;
    if length.len() > LIMIT {
        return Err(failed(format!("it is longer than {LIMIT} bytes")));
    }
    let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(failed("it is empty".to_owned()));
    }
    if token.bytes().any(|byte| !byte.is_ascii_graphic()) {
        let why = "it has characters that no header carries";
        return Err(failed(why.to_owned()));
    }
    Ok(Sha256::digest(token.as_bytes()).into())
}
