//! What objects cost that others own: in requests beside a controller by hand, and in memory with and without their content.
//!
//! Prints the tables of `docs/benchmarks.md`; the words `requests` and `memory` choose one, and two numbers those of
//! the objects and of what each of them owns.

mod memory;
mod racks;
mod requests;

use std::error::Error;
use std::process::ExitCode;

use okt_tests::measured::program;

fn main() -> ExitCode {
    program(memory::CHILD, memory::main, bench)
}

#[tokio::main]
async fn bench(words: &[String]) -> Result<(), Box<dyn Error>> {
    let said = |word: &str| words.iter().any(|w| w == word);
    let numbers: Vec<usize> = words.iter().filter_map(|it| it.parse().ok()).collect();
    let (racks, count) = match numbers[..] {
        [racks, count, ..] => (racks, count),
        [racks] => (racks, 20),
        [] => (500, 20),
    };
    if !said("memory") {
        requests::bench(racks, count).await?;
    }
    if !said("requests") {
        memory::bench(racks, count).await?;
    }
    Ok(())
}
