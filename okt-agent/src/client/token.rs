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
        if let Some(header) = self.last() {
            return Ok(Some(header));
        }
        let header = match source {
            TokenSource::Text(token) => bearer(token)?,
            TokenSource::File(path) => read(path.clone()).await?,
        };
        self.keep(&header);
        Ok(Some(header))
    }

    /// Reads the file again. Returns whether it holds another token.
    pub(super) async fn renew(&self) -> Result<bool, EndpointError> {
        let Some(TokenSource::File(path)) = &self.source else {
            return Ok(false);
        };
        let header = read(path.clone()).await?;
        let is_new = self.last().as_ref() != Some(&header);
        self.keep(&header);
        Ok(is_new)
    }

    fn last(&self) -> Option<HeaderValue> {
        self.read.lock().clone()
    }

    fn keep(&self, header: &HeaderValue) {
        *self.read.lock() = Some(header.clone());
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
    let text = tokio::task::spawn_blocking(move || text_of(&file)).await;
    let wrong = |why: String| EndpointError::File {
        path: path.clone(),
        why,
    };
    let text = match text {
        Ok(text) => text.map_err(|error| wrong(error.to_string()))?,
        Err(_) => return Err(wrong("reading it was broken off".to_owned())),
    };
    if text.trim().is_empty() {
        return Err(wrong("there is no token in it".to_owned()));
    }
    bearer(text.trim()).map_err(|error| wrong(error.to_string()))
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
