//! The source of OKT for a project: a version of a registry, a checkout, or a git repository.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The source of OKT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OktSource {
    /// A directory of this machine, by its absolute path.
    Checkout(String),
    /// The URL of a git repository.
    Repository(String),
    /// A version in the registry.
    Version(String),
}

impl OktSource {
    /// Returns the checkout that this program was built from; without one, its version in the registry.
    ///
    /// # Errors
    ///
    /// If `cargo install --git` built it: Cargo may delete the directory in which it builds, so a project must not depend
    /// on it, and such a version need not be in the registry.
    pub(crate) fn own() -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let version = env!("CARGO_PKG_VERSION");
        if !holds_okt(&here) {
            return Ok(Self::Version(version.to_owned()));
        }
        if here.join(".cargo-ok").exists() {
            return Err(format!(
                "this program was built from a git repository, and does not know which; name it with `--okt URL`, a checkout with `--okt PATH`, or a version with `--okt {version}`"
            ));
        }
        Self::checkout(&here)
    }

    fn checkout(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        if !holds_okt(path) {
            return Err(format!(
                "there is no OKT in {shown}: it has no okt/Cargo.toml (name a repository by its URL, e.g. https://.., and a version by its number, e.g. 0.1)"
            ));
        }
        let whole: PathBuf = path
            .canonicalize()
            .map_err(|error| format!("cannot find out where {shown} is: {error}"))?;
        match whole.to_str() {
            Some(whole) => Ok(Self::Checkout(whole.to_owned())),
            None => Err(format!("{shown} is no text that Cargo can read")),
        }
    }

    /// Returns the `path`, `git` or `version` entry of a dependency on a crate of OKT.
    pub(crate) fn of_crate(&self, name: &str) -> String {
        let (key, value) = match self {
            Self::Checkout(path) => ("path", format!("{path}/{name}")),
            Self::Repository(url) => ("git", url.clone()),
            Self::Version(version) => ("version", version.clone()),
        };
        // A TOML string may be written like a JSON string here.
        format!("{key} = {}", serde_json::Value::from(value))
    }
}

impl FromStr for OktSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(char::is_control) {
            return Err("this is neither a version, nor a path, nor a URL".to_owned());
        }
        if is_version(text) {
            return Ok(Self::Version(text.to_owned()));
        }
        if text.contains("://") {
            return Ok(Self::Repository(text.to_owned()));
        }
        Self::checkout(Path::new(text))
    }
}

impl fmt::Display for OktSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(place) | Self::Repository(place) => f.write_str(place),
            Self::Version(version) => write!(f, "the registry, version {version}"),
        }
    }
}

fn holds_okt(path: &Path) -> bool {
    path.join("okt/Cargo.toml").is_file()
}

/// Returns whether a text is a version such as `0.1` or `0.1.0-rc.1`.
fn is_version(text: &str) -> bool {
    let numbers = text.split_once('-').map_or(text, |(numbers, _)| numbers);
    let mut parts = numbers.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    numbers.split('.').count() <= 3 && parts.all(is_number)
}
