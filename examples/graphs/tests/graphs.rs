//! The holes that the rules find in the graphs as they are published, and the diagrams of the README.
//!
//! `UPDATE_EXPECT=1 cargo test -p okt-graphs` writes both.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use expect_test::expect_file;
use okt_core::{Graph, Lifecycle};
use okt_graphs::cluster_api::MachinePhase;
use okt_graphs::metal3::HostState;
use okt_graphs::odoo::InstancePhase;
use okt_graphs::pg_auto_failover::KeeperState;
use okt_graphs::strimzi::RebalanceState;
use okt_syntax::source::{Cfg, Source};

/// The systems, in the order of the README.
const SYSTEMS: [(&str, &Graph<'_>); 5] = [
    ("pg_auto_failover", KeeperState::GRAPH),
    ("metal3", HostState::GRAPH),
    ("odoo", InstancePhase::GRAPH),
    ("cluster_api", MachinePhase::GRAPH),
    ("strimzi", RebalanceState::GRAPH),
];

fn read(path: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(file).expect("a file of this package")
}

/// Returns what a compiler says about the published graphs of a system.
fn holes(system: &str) -> String {
    let path = format!("published/{system}.rs");
    let text = read(&path);
    let source = Source::parse(&text, &Cfg::new([])).expect("Rust");
    assert!(source.count() > 0, "{path} has no graph");
    let rendered: Vec<String> = (source.mistakes().iter())
        .map(|mistake| mistake.render(&text, &path, false) + "\n")
        .collect();
    if rendered.is_empty() {
        return "no mistakes\n".to_owned();
    }
    rendered.join("\n")
}

/// Returns the codes of the rules in a text.
fn codes(text: &str) -> BTreeSet<&str> {
    let starts = text.match_indices("OKT0").map(|(start, _)| start);
    starts.map(|start| &text[start..start + 6]).collect()
}

/// Returns the README in sections, the first of which is its head.
fn sections(readme: &str) -> Vec<&str> {
    let sections: Vec<&str> = readme.split("\n## ").collect();
    assert_eq!(sections.len(), SYSTEMS.len() + 1, "a section per system");
    sections
}

#[test]
fn the_rules_find_these_holes() {
    for (system, _) in SYSTEMS {
        expect_file![format!("../published/{system}.txt")].assert_eq(&holes(system));
    }
}

#[test]
fn the_readme_draws_every_graph() {
    const START: &str = "```mermaid\n";
    let readme = read("README.md");
    let mut drawn = String::new();
    let mut rest = &readme[..];
    for (system, graph) in SYSTEMS {
        let start = rest.find(START).expect(system) + START.len();
        let end = start + rest[start..].find("```").expect(system);
        drawn.push_str(&rest[..start]);
        drawn.push_str(&graph.mermaid());
        rest = &rest[end..];
    }
    drawn.push_str(rest);
    expect_file!["../README.md"].assert_eq(&drawn);
}

#[test]
fn the_readme_counts_the_states() {
    let readme = read("README.md");
    let rows = sections(&readme)[0].lines();
    let rows: Vec<&str> = rows.filter(|row| row.starts_with("| [")).collect();
    assert_eq!(rows.len(), SYSTEMS.len());
    for ((_, graph), row) in SYSTEMS.iter().zip(rows) {
        let states = format!(" | {} | ", graph.states.len());
        assert!(row.contains(&states), "{}: {row}", graph.name);
    }
}

#[test]
fn the_readme_names_the_rules_that_find_a_hole_and_no_others() {
    let readme = read("README.md");
    for ((system, _), section) in SYSTEMS.iter().zip(&sections(&readme)[1..]) {
        assert!(section.contains(&format!("src/{system}.rs")), "{system}");
        assert_eq!(codes(section), codes(&holes(system)), "{system}");
    }
}

/// Returns the states that a deletion leads through, from a state to the leaf.
fn way_out(graph: &Graph<'_>, from: &str) -> Vec<String> {
    let from = graph.named(from).expect("a state");
    let hops = std::iter::successors(Some(from), |at| graph.out(*at));
    hops.map(|at| graph.name_of(at).to_owned()).collect()
}

#[test]
fn a_deletion_leads_where_the_project_leads_it() {
    for (graph, way) in [
        (KeeperState::GRAPH, "Primary > Dropped"),
        (
            HostState::GRAPH,
            "Inspecting > PoweringOffBeforeDelete > Deleting",
        ),
        (
            HostState::GRAPH,
            "Provisioned > Deprovisioning > PoweringOffBeforeDelete > Deleting",
        ),
        (HostState::GRAPH, "Unmanaged > Deleting"),
        (InstancePhase::GRAPH, "Running > Stopped > Deleted"),
        (InstancePhase::GRAPH, "InitFailed > Deleted"),
        (MachinePhase::GRAPH, "Running > Deleting > Deleted"),
        (RebalanceState::GRAPH, "Rebalancing > Ready > Deleted"),
    ] {
        let from = way.split(" > ").next().unwrap_or_default();
        assert_eq!(way_out(graph, from).join(" > "), way);
    }
}
