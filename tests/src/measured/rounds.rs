//! The rounds of a measurement: each is printed as it ends, and repeated if it fails.

use std::error::Error;

use super::table::Table;

/// How often one round is tried.
const TRIES: usize = 3;

/// Runs `count` rounds of a measurement and adds their figures to `tables`.
///
/// `round` gets a number that no other round and no repetition has, and empty tables. It measures both sides.
///
/// # Errors
///
/// If one round fails three times; the tables keep the rounds before it.
pub async fn rounds<const N: usize>(
    count: usize,
    tables: &mut [Table; N],
    mut round: impl AsyncFnMut(usize, &mut [Table; N]) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut number = 0;
    for done in 1..=count {
        let mut tries = 0;
        let measured = loop {
            let mut fresh = tables.each_ref().map(|table| Table::of(table.sides()));
            tries += 1;
            number += 1;
            match round(number, &mut fresh).await {
                Ok(()) => break fresh,
                Err(error) if tries < TRIES => {
                    println!("round {done} of {count} failed and is repeated: {error}");
                }
                Err(error) => return Err(format!("round {done} of {count}: {error}").into()),
            }
        };
        for (table, measured) in tables.iter_mut().zip(measured) {
            println!("round {done} of {count}: {}", measured.ratios());
            table.extend(measured);
        }
    }
    Ok(())
}
