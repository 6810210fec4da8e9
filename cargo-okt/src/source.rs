//! The source of OKT for a project: OKT is in no registry.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The source of OKT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// A directory of this machine, by its absolute path.
    Checkout(String),
    /// The URL of a git repository.
    Repository(String),
}

impl Source {
    /// Returns the source of this program.
    ///
    /// `cargo install --git` builds in a directory that Cargo may delete, so a project must not depend on it.
    pub(crate) fn own() -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let clears_away = here.join(".cargo-ok").exists();
        if holds_okt(&here) && !clears_away {
            Self::checkout(&here)
        } else {
            Ok(Self::Repository(env!("CARGO_PKG_REPOSITORY").to_owned()))
        }
    }

    fn checkout(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        if !holds_okt(path) {
            return Err(format!(
                "there is no OKT in {shown}: it has no okt-runtime/Cargo.toml (a repository is named by its URL, e.g. https://..)"
            ));
        }
        let whole: PathBuf = (path.canonicalize())
            .map_err(|error| format!("cannot find out where {shown} is: {error}"))?;
        match whole.to_str() {
            Some(whole) => Ok(Self::Checkout(whole.to_owned())),
            None => Err(format!("{shown} is no text that Cargo can read")),
        }
    }

    /// Returns the `path` or `git` entry of a dependency on a crate of OKT.
    pub(crate) fn of_crate(&self, name: &str) -> String {
        let (key, value) = match self {
            Self::Checkout(path) => ("path", format!("{path}/{name}")),
            Self::Repository(url) => ("git", url.clone()),
        };
        // A TOML string may be written like a JSON string here.
        format!("{key} = {}", serde_json::Value::from(value))
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(char::is_control) {
            return Err("this is neither a path nor a URL".to_owned());
        }
        if text.contains("://") {
            return Ok(Self::Repository(text.to_owned()));
        }
        Self::checkout(Path::new(text))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(place) | Self::Repository(place) => f.write_str(place),
        }
    }
}

fn holds_okt(path: &Path) -> bool {
    path.join("okt-runtime/Cargo.toml").is_file()
}
