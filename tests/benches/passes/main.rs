//! A pass of three states compared with the Achilles SDK: writes, requests, time and memory for many
//! objects, once and again after a restart.
//!
//! It prints the tables of `docs/benchmarks.md`. The arguments `double` and `real` select a server, `alone` leaves out
//! the other side, the first number is that of the objects and the second that of the rounds. Each side runs in its own
//! process (this program starts itself; the other side is built with Go), and the two alternate, so that other load of
//! the machine affects both.

mod achilles;
mod child;
mod rounds;
mod site;
mod with_okt;

use std::error::Error;
use std::process::ExitCode;

use okt_tests::measured::program;

use self::achilles::Achilles;
use self::rounds::Measurement;
use self::site::Site;

fn main() -> ExitCode {
    program(child::CHILD, child::main, bench)
}

#[tokio::main]
async fn bench(words: &[String]) -> Result<(), Box<dyn Error>> {
    let given = |word: &str| words.iter().any(|w| w == word);
    let mut numbers = words.iter().filter_map(|word| word.parse().ok());
    let measurement = Measurement {
        objects: numbers.next().unwrap_or(1_000),
        rounds: numbers.next().unwrap_or(5),
        achilles: if given("alone") {
            None
        } else {
            Achilles::build()?
        },
    };
    if !given("real") {
        let directory = tempfile::tempdir()?;
        measurement
            .bench(&Site::double(directory.path()).await?)
            .await?;
    }
    if !given("double") {
        measurement.bench(&Site::real().await?).await?;
    }
    Ok(())
}
