//! The mistakes of a configuration file: all of them at once, each with its line and its key.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_saphyr::Location;

/// The mistakes of a configuration file. A retry helps only after the file has changed.
///
/// Its text has one line for each mistake: `file:line:column: key: cause`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    file: PathBuf,
    mistakes: Vec<Mistake>,
}

/// One mistake. It may lack a place, for example in a file that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mistake {
    place: Location,
    key: String,
    text: String,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        for (n, Mistake { place, key, text }) in self.mistakes.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{file}:")?;
            if *place != Location::UNKNOWN {
                write!(f, "{}:{}:", place.line(), place.column())?;
            }
            if !key.is_empty() {
                write!(f, " {key}:")?;
            }
            write!(f, " {text}")?;
        }
        Ok(())
    }
}

/// The mistakes found so far. All fields of a file add to the same ones.
#[derive(Default)]
pub(super) struct Mistakes(RefCell<Vec<Mistake>>);

impl Mistakes {
    pub(super) fn add(&self, place: Location, key: &str, text: impl Into<String>) {
        self.0.borrow_mut().push(Mistake {
            place,
            key: key.to_owned(),
            text: text.into(),
        });
    }

    /// Returns `value`, or the mistakes in the order of their lines.
    pub(super) fn finish<T>(self, file: &Path, value: Option<T>) -> Result<T, ConfigError> {
        let mut mistakes = self.0.into_inner();
        mistakes.sort_by_key(|mistake| (mistake.place.line(), mistake.place.column()));
        match value {
            Some(value) if mistakes.is_empty() => Ok(value),
            _ => Err(ConfigError {
                file: file.to_owned(),
                mistakes,
            }),
        }
    }
}

/// Returns the name that is nearest to `wrong`, if it is near enough to be meant.
pub(super) fn nearest<'a>(wrong: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let is_near = |name: &&str| distance(name) <= 1 + name.len() / 4;
    let near = names.iter().copied().filter(is_near);
    near.min_by_key(|name| distance(name))
}
