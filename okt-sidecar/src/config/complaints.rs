//! The errors of a configuration file: all of them at once, each with its line and its key.

use std::fmt;
use std::path::{Path, PathBuf};

use super::tree::Position;

/// The errors of a configuration file. A retry helps only after the file has changed.
///
/// Its text has one line for each mistake: `file:line:column: key: cause`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    file: PathBuf,
    complaints: Vec<Complaint>,
}

/// One mistake. It may lack a place, for example in a file that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Complaint {
    place: Option<Position>,
    key: String,
    text: String,
}

impl ConfigError {
    /// Returns the number of mistakes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "an error has one mistake at least"
    )]
    pub fn len(&self) -> usize {
        self.complaints.len()
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        for (n, Complaint { place, key, text }) in self.complaints.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{file}:")?;
            if let Some(Position { line, column }) = place {
                write!(f, "{line}:{column}:")?;
            }
            if !key.is_empty() {
                write!(f, " {key}:")?;
            }
            write!(f, " {text}")?;
        }
        Ok(())
    }
}

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Complaints(Vec<Complaint>);

impl Complaints {
    pub(super) fn add(&mut self, place: Position, key: &str, text: impl Into<String>) {
        self.0.push(Complaint {
            place: (place.line > 0).then_some(place),
            key: key.to_owned(),
            text: text.into(),
        });
    }

    /// Returns `value`, or the mistakes in the order of their lines.
    pub(super) fn finish<T>(mut self, file: &Path, value: Option<T>) -> Result<T, ConfigError> {
        self.0.sort_by_key(|complaint| complaint.place);
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(ConfigError {
                file: file.to_owned(),
                complaints: self.0,
            }),
        }
    }
}

/// Returns the name that is nearest to `wrong`, if it is near enough to be meant.
pub(super) fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    (names.iter())
        .map(|name| {
            (
                strsim::damerau_levenshtein(&lower, &name.to_lowercase()),
                *name,
            )
        })
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
