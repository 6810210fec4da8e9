//! This file speaks to the one process that wrote `notes.json`, and to no other.

use std::path::Path;
use std::time::Duration;

use reqwest::{RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;

use super::error::Error;
use super::files::ANNOUNCEMENT;
use super::wire::{Announcement, BOOT_HEADER, Count, Document, NewDocument, Problem};

/// The time limit of one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A client of one process.
#[derive(Clone, Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    announcement: Announcement,
}

/// Returns an HTTP client that ignores proxies in the environment.
pub(super) fn http() -> Result<reqwest::Client, Error> {
    reqwest::Client::builder()
        .no_proxy()
        .timeout(ANSWER_LIMIT)
        .build()
        .map_err(|source| Error::Request {
            action: "make HTTP client",
            source,
        })
}

impl Client {
    /// Reads the address of the process of a directory; returns `None` if no process has announced one.
    pub(super) async fn find(http: &reqwest::Client, data: &Path) -> Result<Option<Self>, Error> {
        let path = data.join(ANNOUNCEMENT);
        let read = tokio::task::spawn_blocking({
            let path = path.clone();
            move || std::fs::read(path)
        });
        let content = match read.await.map_err(std::io::Error::other).flatten() {
            Ok(content) => content,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        // A rename creates the file, so a file without an announcement is not from a server.
        let announcement = serde_json::from_slice(&content)
            .map_err(|error| Error::file("read", &path)(error.into()))?;
        Ok(Some(Self {
            http: http.clone(),
            announcement,
        }))
    }

    pub(super) async fn add(&self, title: &str, body: &str) -> Result<Document, Error> {
        let document = NewDocument {
            title: title.into(),
            body: body.into(),
        };
        self.ask(
            "add document",
            self.http.post(self.url(&["documents"])).json(&document),
        )
        .await
    }

    pub(super) async fn count(&self) -> Result<u64, Error> {
        let Count { documents } = self
            .ask(
                "count documents",
                self.http.get(self.url(&["documents", "count"])),
            )
            .await?;
        Ok(documents)
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = Url::parse(&format!("http://{}", self.announcement.address))
            .expect("a socket address is the authority of a URL");
        url.path_segments_mut()
            .expect("an http URL has a path")
            .extend(path);
        url
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        action: &'static str,
        request: RequestBuilder,
    ) -> Result<T, Error> {
        let lost = |source| Error::Request { action, source };
        let request = request.header(BOOT_HEADER, &self.announcement.boot_id);
        let response = request.send().await.map_err(lost)?;
        if response.status().is_success() {
            return response.json().await.map_err(lost);
        }
        Err(refused(action, response).await)
    }
}

async fn refused(action: &'static str, response: Response) -> Error {
    let status = response.status().as_u16();
    let message = match response.json::<Problem>().await {
        Ok(problem) => problem.error,
        // Another program has the port.
        Err(_) => "it gave no reason".into(),
    };
    Error::Refused {
        action,
        status,
        message,
    }
}
