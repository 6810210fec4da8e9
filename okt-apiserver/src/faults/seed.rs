//! [`Seed`]: the number that reproduces a random run.

use std::hash::{BuildHasher, RandomState};
use std::{env, fmt, thread};

/// The environment variable that holds a seed.
const VARIABLE: &str = "OKT_SEED";

/// The number that starts and reproduces a random run.
///
/// It decides which faults strike, but not the time: timestamps come from the wall clock, advanced
/// by tokio's clock, so writes within the same second in one run may not be in the next.
///
/// # Example
/// ```
/// use okt_apiserver::{ApiServer, Chaos, Seed};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// // A new seed each time; `OKT_SEED=... cargo test` repeats a run.
/// let seed = Seed::from_env_or_fresh();
/// let server = ApiServer::new();
/// let chaos = server.misbehave(Chaos::seeded(seed));
/// # chaos.end();
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seed(u64);

impl Seed {
    /// Returns the seed in `OKT_SEED`, otherwise a fresh one, and prints the command that repeats
    /// the run to stderr, where a failing test shows it.
    ///
    /// # Panics
    /// If `OKT_SEED` is no number.
    #[track_caller]
    pub fn from_env_or_fresh() -> Self {
        let seed = Self::from_env().unwrap_or_else(Self::fresh);
        eprintln!("{}", seed.repeats());
        seed
    }

    /// Returns one seed for each of `runs` runs of a test, or only the seed in `OKT_SEED` if it is
    /// set.
    ///
    /// Prints for each seed, when it is taken, the command that repeats its run.
    ///
    /// # Panics
    /// If `OKT_SEED` is no number.
    #[track_caller]
    pub fn several(runs: u64) -> impl Iterator<Item = Self> {
        let (first, runs) = match Self::from_env() {
            Some(seed) => (seed, 1),
            None => (Self::fresh(), runs),
        };
        (0..runs).map(move |run| {
            let seed = Self(first.0.wrapping_add(run));
            eprintln!("{}", seed.repeats());
            seed
        })
    }

    /// Returns the seed in `OKT_SEED`, if it is set; prints nothing.
    ///
    /// # Panics
    /// If `OKT_SEED` is no number.
    #[track_caller]
    pub fn from_env() -> Option<Self> {
        let text = env::var(VARIABLE).ok()?;
        let Ok(number) = text.trim().parse() else {
            panic!("{VARIABLE} is a number from 0 to 2^64 - 1, not {text:?}");
        };
        Some(Self(number))
    }

    /// Returns a random seed; prints nothing.
    pub fn fresh() -> Self {
        // Short enough to type.
        Self(RandomState::new().hash_one(thread::current().id()) >> 32)
    }

    /// Returns the number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the command that repeats the run.
    fn repeats(self) -> String {
        let package = env::var("CARGO_PKG_NAME").map(|name| format!(" -p {name}"));
        let test = thread::current();
        // The test harness names the thread after the test.
        let test = match test.name() {
            Some(name) if name != "main" && !name.starts_with("tokio-") => {
                format!(" -- --exact {name}")
            }
            _ => String::new(),
        };
        format!(
            "okt-apiserver: this run is repeated by {VARIABLE}={} cargo test{}{test}",
            self.0,
            package.unwrap_or_default()
        )
    }
}

impl From<u64> for Seed {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn the_line_that_repeats_a_run_names_seed_package_and_test() {
        let line = Seed::from(42).repeats();
        assert!(
            line.contains("OKT_SEED=42 cargo test -p okt-apiserver"),
            "{line}"
        );
        let test = "the_line_that_repeats_a_run_names_seed_package_and_test";
        assert!(line.contains(" -- --exact "), "{line}");
        assert!(line.ends_with(&format!("::{test}")), "{line}");
    }
}
