//! The token of an agent: given, or in a file that may change.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;

use super::endpoint::{EndpointError, TokenSource};

/// The longest token that is read, in bytes.
const LIMIT: u64 = 16 * 1024;

/// The token of an agent, and what was last read of it.
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

    /// What stands in `Authorization`; none where there is no token.
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

    /// Reads the file again; whether there is another token in it.
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
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn keep(&self, header: &HeaderValue) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(header.clone());
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

/// Reads a token from a file, beside the threads that serve: a mounted one may hang.
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
