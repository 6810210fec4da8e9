//! Tables of rules: clauses in words, each with the rows that show it.

use crate::build;
use crate::case::Case;
use crate::database::database;

/// Checks a table.
///
/// A line with `->` is a row: an object ([`Case::of`]), and what is expected of it. A word with `|` stands for several
/// objects. A line `graph:` sets the graph of the rows below it; the first one is that of a database. Any other line is
/// a clause. `describe` describes an object in the form of what is expected.
pub(crate) fn check(table: &'static str, describe: impl Fn(&Case, &str) -> String) {
    let (mut graph, mut clause, mut wrong) = (database(), "", String::new());
    for line in table.lines().map(str::trim).filter(|it| !it.is_empty()) {
        if line == "graph: the database" {
            graph = database();
        } else if let Some(states) = line.strip_prefix("graph: ") {
            graph = build::graph(&states.split(" | ").collect::<Vec<_>>());
        } else if let Some((objects, expected)) = line.split_once(" -> ") {
            for object in all(objects) {
                let actual = describe(&Case::of(&graph, &object), expected);
                if actual != expected {
                    wrong += &format!("{clause}\n  {object} -> {expected}\n  is: {actual}\n");
                }
            }
        } else {
            clause = line;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Returns every object that a row stands for.
fn all(objects: &str) -> Vec<String> {
    objects.split(", ").fold(vec![String::new()], |all, word| {
        let longer = |object: &String, one: &str| match object.as_str() {
            "" => one.to_owned(),
            object => format!("{object}, {one}"),
        };
        all.iter()
            .flat_map(|object| word.split(" | ").map(move |one| longer(object, one)))
            .collect()
    })
}
