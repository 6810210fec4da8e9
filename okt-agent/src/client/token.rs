//! The token of an agent, from a text or from a file that may change.

use std::io::Read;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use parking_lot::Mutex;

use super::endpoint::{EndpointError, TokenSource};

/// The limit for a token, in bytes.
const LIMIT: u64 = 16 * 1024;

/// The source of a token, and the token that was last read.
#[derive(Debug)]
pub(super) struct Token {
    source: Option<TokenSource>,
    read: Mutex<Option<HeaderValue>>,
}

impl Token {
    pub(super) fn new(source: Option<TokenSource>) -> Self {
        Self {
            source,
            read: Mutex::default(),
        }
    }

    /// Returns the `Authorization` header, or `None` without a token.
    pub(super) async fn header(&self) -> Result<Option<HeaderValue>, EndpointError> {
        let Some(source) = &self.source else {
            return Ok(None);
        };
        let last = self.read.lock().clone();
        if last.is_some() {
            return Ok(last);
        }
        let header = match source {
            TokenSource::Text(token) => bearer(token)?,
            TokenSource::File(path) => read(path.clone()).await?,
        };
        *self.read.lock() = Some(header.clone());
        Ok(Some(header))
    }

    /// Reads the file again. Returns whether it holds another token.
    pub(super) async fn renew(&self) -> Result<bool, EndpointError> {
        let Some(TokenSource::File(path)) = &self.source else {
            return Ok(false);
        };
        let header = Some(read(path.clone()).await?);
        let last = std::mem::replace(&mut *self.read.lock(), header.clone());
        Ok(last != header)
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text(..)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// Reads a token from a file on a blocking thread, because a mounted file may hang.
async fn read(path: PathBuf) -> Result<HeaderValue, EndpointError> {
    let file = path.clone();
    let reading = tokio::task::spawn_blocking(move || text_of(&file));
    let header = match reading.await {
        Ok(Ok(text)) if text.trim().is_empty() => Err("there is no token in it".to_owned()),
        Ok(Ok(text)) => bearer(text.trim()).map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("reading it was broken off".to_owned()),
    };
    header.map_err(|why| EndpointError::File { path, why })
}

fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(LIMIT)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn bearer(token: &str) -> Result<HeaderValue, EndpointError> {
    let mut header =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| EndpointError::Token)?;
    header.set_sensitive(true);
    Ok(header)
}
