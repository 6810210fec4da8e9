//! Where a project gets OKT from, which is in no registry.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where OKT is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// In a directory of this machine, by its whole path.
    Checkout(String),
    /// In a git repository.
    Repository(String),
}

impl Source {
    /// Where this program came from.
    ///
    /// `cargo install --git` builds it in a directory that Cargo clears away one day: that is none to depend on.
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

    /// What a dependency on one of its crates says of where that is.
    pub(crate) fn of_crate(&self, name: &str) -> String {
        let (key, value) = match self {
            Self::Checkout(path) => ("path", format!("{path}/{name}")),
            Self::Repository(url) => ("git", url.clone()),
        };
        // TOML writes such a text as JSON does.
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
