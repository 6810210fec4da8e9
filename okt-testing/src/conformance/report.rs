//! [`Report`]: the results of the behaviours.

use core::fmt;

use super::{Behaviour, Failure};

/// The result of each behaviour.
///
/// It prints one line, `45 of 45, further 12 of 12`, and then each failure.
#[derive(Debug, Default)]
pub struct Report {
    results: Vec<(Behaviour, Result<(), Failure>)>,
    left: Option<Failure>,
}

impl Report {
    /// Returns the behaviours that the server does not have, and what it did instead.
    pub fn failures(&self) -> impl Iterator<Item = (&Behaviour, &Failure)> {
        self.results
            .iter()
            .filter_map(|(behaviour, outcome)| Some((behaviour, outcome.as_ref().err()?)))
    }

    /// Adds the result of a behaviour.
    pub fn add(&mut self, behaviour: Behaviour, outcome: Result<(), Failure>) {
        self.results.push((behaviour, outcome));
    }

    /// Returns why something was left behind on the server, if so; this is not a failed behaviour.
    pub fn left_behind(&self) -> Option<&Failure> {
        self.left.as_ref()
    }

    /// Records that not everything could be deleted.
    pub(super) fn leave(&mut self, why: Failure) {
        self.left = Some(why);
    }

    /// Returns how many of the checked behaviours the server has.
    ///
    /// # Example
    /// ```
    /// let nothing = okt_testing::conformance::Report::default();
    /// assert_eq!(nothing.count(), "0 of 0, further 0 of 0");
    /// ```
    pub fn count(&self) -> String {
        let ((good, all), (good_further, further)) = (self.of(true), self.of(false));
        format!("{good} of {all}, further {good_further} of {further}")
    }

    /// Returns how many behaviours the server has, and how many were checked.
    fn of(&self, numbered: bool) -> (usize, usize) {
        let all = self
            .results
            .iter()
            .filter(|(behaviour, _)| behaviour.number().is_some() == numbered);
        let good = all.clone().filter(|(_, outcome)| outcome.is_ok()).count();
        (good, all.count())
    }
}

impl FromIterator<(Behaviour, Result<(), Failure>)> for Report {
    fn from_iter<I: IntoIterator<Item = (Behaviour, Result<(), Failure>)>>(results: I) -> Self {
        Self {
            results: results.into_iter().collect(),
            left: None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.count())?;
        for (behaviour, failure) in self.failures() {
            write!(f, "\n{behaviour}: {failure}")?;
        }
        if let Some(why) = &self.left {
            write!(f, "\nleft behind: {why}")?;
        }
        Ok(())
    }
}
