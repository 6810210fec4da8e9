//! Checks of this repository itself. `cargo run -p xtask` prints which file imports which.
//!
//! `cargo test -p xtask` fails if files import each other in a cycle, or against the order of ARCHITECTURE.md.

mod house;
mod imports;
mod order;

use std::path::Path;
use std::process::ExitCode;

use house::House;
use order::Order;

/// The published crates.
const CRATES: [&str; 5] = [
    "okt-core",
    "okt-syntax",
    "okt-runtime",
    "okt-sidecar",
    "okt-testing",
];

fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

fn architecture() -> String {
    let page = repository().join("ARCHITECTURE.md");
    std::fs::read_to_string(page).expect("ARCHITECTURE.md")
}

fn house(name: &str) -> House {
    House::of(&repository().join(name).join("src"))
}

fn main() -> ExitCode {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    if let Some(unknown) = chosen.iter().find(|name| !CRATES.contains(&name.as_str())) {
        eprintln!(
            "there is no crate {unknown}; choose among {}",
            CRATES.join(", ")
        );
        return ExitCode::FAILURE;
    }
    let page = architecture();
    for name in CRATES {
        if !chosen.is_empty() && !chosen.iter().any(|it| it == name) {
            continue;
        }
        let house = house(name);
        println!("{name}: {house}");
        let order = Order::of(&page, name);
        for file in order.missing(&house) {
            println!("  not in ARCHITECTURE.md: {file}");
        }
        for import in order.upward(&house) {
            println!("  against its order: {import}");
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_import_cycles() {
        for name in CRATES {
            let house = house(name);
            assert!(house.rooms() > 3, "{name} has no files");
            let circles = house.circles();
            assert!(circles.is_empty(), "{name}: {circles:#?}");
        }
    }

    #[test]
    fn no_file_imports_against_the_order_of_architecture_md() {
        let page = architecture();
        for name in CRATES {
            let order = Order::of(&page, name);
            let house = house(name);
            let missing = order.missing(&house);
            assert!(
                missing.is_empty(),
                "{name}: ARCHITECTURE.md lacks {missing:?}"
            );
            let upward = order.upward(&house);
            assert!(upward.is_empty(), "{name}: {upward:#?}");
        }
    }
}
