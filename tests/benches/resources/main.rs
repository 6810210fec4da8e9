//! The cost of owned objects: in requests compared to a controller written by hand, and in
//! memory with and without their content.
//!
//! It prints the tables of `docs/benchmarks.md`. The arguments `requests` and `memory` select a table; two numbers are
//! those of the owners and of the objects of each.

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
    let given = |word: &str| words.iter().any(|w| w == word);
    let numbers: Vec<usize> = words.iter().filter_map(|it| it.parse().ok()).collect();
    let (racks, count) = match numbers[..] {
        [racks, count, ..] => (racks, count),
        [racks] => (racks, 20),
        [] => (500, 20),
    };
    if !given("memory") {
        requests::bench(racks, count).await?;
    }
    if !given("requests") {
        memory::bench(racks, count).await?;
    }
    Ok(())
}
