//! A controller made with OKT compared to one written by hand on kube, on the test double and on a real
//! API server.
//!
//! It prints the tables of `docs/benchmarks.md`. The arguments `double`, `real`, `lives`, `restarts`, `sinks` and `work`
//! select tables; numbers are the numbers of objects for restarts. `replicas` measures three replicas that share 30,000 objects
//! instead, or another number. `short` measures three rounds and up to 1,000 objects, in
//! about five minutes. `against` and the path of this benchmark, built from another commit, compare the two on the double, with fewer
//! objects. Each controller runs in its own process (this program
//! starts itself), and the two alternate, so that other load of the machine affects both.

mod by_hand;
mod child;
mod lives;
mod replicas;
mod restarts;
mod sinks;
mod site;
mod with_okt;
mod work;

use std::error::Error;
use std::process::ExitCode;

use okt_tests::measured::program;

use self::child::Side;
use self::site::Site;

fn main() -> ExitCode {
    program(child::CHILD, child::main, bench)
}

#[tokio::main]
async fn bench(words: &[String]) -> Result<(), Box<dyn Error>> {
    let chosen = |word: &str, others: &[&str]| {
        let given = |word: &str| words.iter().any(|w| w == word);
        given(word) || !others.iter().any(|other| given(other))
    };
    let mut sizes: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let is_short = words.iter().any(|word| word == "short");
    if sizes.is_empty() {
        sizes = vec![0, 1_000];
        sizes.extend(
            (!is_short)
                .then_some([10_000, 100_000])
                .into_iter()
                .flatten(),
        );
    }
    sizes.sort_unstable();
    if words.iter().any(|word| word == "replicas") {
        let size = (words.iter().find_map(|word| word.parse().ok())).unwrap_or(30_000);
        for (filters, title) in [(true, "the server filters"), (false, "it does not")] {
            let site = Site::real(filters).await?;
            replicas::bench(&site, size, title).await?;
        }
        return Ok(());
    }
    if let Some(at) = words.iter().position(|word| word == "against") {
        let other = words.get(at + 1).ok_or("`against` wants a program")?;
        let directory = tempfile::tempdir()?;
        let site = Site::double(directory.path()).await?;
        return lives::bench(&site, &Side::now_and_before(other.into()), 200, 5).await;
    }
    if chosen("double", &["real"]) {
        let directory = tempfile::tempdir()?;
        let site = Site::double(directory.path()).await?;
        tables(&site, &chosen, &sizes, is_short).await?;
    }
    if chosen("real", &["double"]) {
        let site = Site::real(false).await?;
        // A real server takes an hour to bring 100,000 objects to rest.
        sizes.retain(|size| *size <= 10_000);
        tables(&site, &chosen, &sizes, is_short).await?;
    }
    Ok(())
}

async fn tables(
    site: &Site,
    chosen: &impl Fn(&str, &[&str]) -> bool,
    sizes: &[usize],
    is_short: bool,
) -> Result<(), Box<dyn Error>> {
    let rounds = |usual| if is_short { 3 } else { usual };
    println!("\n## On {}", site.0.name);
    if chosen("lives", &["restarts", "sinks", "work"]) {
        lives::bench(site, &Side::with_and_by_hand(), lives::OBJECTS, rounds(11)).await?;
    }
    if chosen("restarts", &["lives", "sinks", "work"]) {
        restarts::bench(site, sizes, rounds(5)).await?;
    }
    if chosen("sinks", &["lives", "restarts", "work"]) {
        sinks::bench(site, rounds(11)).await?;
    }
    if chosen("work", &["lives", "restarts", "sinks"]) {
        work::bench(site).await?;
    }
    Ok(())
}
