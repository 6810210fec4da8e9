//! The database as pictures and data.

#[path = "common/build.rs"]
mod build;
#[path = "common/database.rs"]
mod database;

use expect_test::expect;
use okt_core::{ConditionStatus, Declared, Graph};
use serde_json::Value;

use build::{graph, with_routes};
use database::database;

#[test]
fn the_database_in_mermaid() {
    expect![[r"
        stateDiagram-v2
            [*] --> Start
            Start --> Failed : on 5 errors
            Start --> Running
            Running --> Failed : on 3 errors
            Running --> Servicing
            Running --> Stopping : Next
            Servicing --> Failed : after 30m
            Servicing --> Running
            Servicing --> End : Next
            Stopping --> End
            Failed --> Running
            Failed --> Servicing
            Failed --> Stopping : Next
            End --> [*]
            classDef rest stroke-width:3px
            classDef hold stroke-width:3px,stroke-dasharray:6 3
            classDef visit stroke-dasharray:2 2
            class Running rest
            class Servicing visit
            class Failed hold
    "]]
    .assert_eq(&database().mermaid());
}

#[test]
fn the_database_in_dot() {
    expect![[r#"
        digraph "DatabaseState" {
            node [shape=box, style=rounded];
            "Start" [tooltip="The data directory is being made.", shape=oval];
            "Running" [tooltip="Clients may connect.", peripheries=2];
            "Servicing" [tooltip="A backup is under way.", style="rounded,dashed"];
            "Stopping" [tooltip="Clients are being asked to leave."];
            "Failed" [tooltip="Somebody has to look.", peripheries=2, style="rounded,dashed"];
            "End" [tooltip="The server is gone; its volume is kept.", penwidth=3];
            "Start" -> "Failed" [style=dashed, label="on 5 errors"];
            "Start" -> "Running" [label="Next"];
            "Running" -> "Failed" [style=dashed, label="on 3 errors"];
            "Running" -> "Servicing";
            "Running" -> "Stopping" [label="Next"];
            "Servicing" -> "Failed" [style=dashed, label="after 30m"];
            "Servicing" -> "Running";
            "Servicing" -> "End" [label="Next"];
            "Stopping" -> "End" [label="Next"];
            "Failed" -> "Running";
            "Failed" -> "Servicing";
            "Failed" -> "Stopping" [label="Next"];
        }
    "#]]
    .assert_eq(&database().dot());
}

#[test]
fn the_database_in_json() {
    expect![[r#"{"format":1,"name":"DatabaseState","doc":"The life of a database server.","kind":"lifecycle","states":[{"name":"Start","doc":"The data directory is being made.","roles":["entry"],"triggers":[{"to":"Failed","cause":"on 5 errors","attempts":5}],"children":["Running"]},{"name":"Running","doc":"Clients may connect.","roles":["rest"],"triggers":[{"to":"Failed","cause":"on 3 errors","attempts":3}],"children":["Servicing","Stopping"],"conditions":[{"type":"Available","status":"True","reason":"AcceptingConnections"}]},{"name":"Servicing","doc":"A backup is under way.","roles":["visit"],"triggers":[{"to":"Failed","cause":"after 30m","after":"30m"}],"children":["Running","End"],"conditions":[{"type":"Available","status":"True","reason":"AcceptingConnections"}]},{"name":"Stopping","doc":"Clients are being asked to leave.","children":["End"]},{"name":"Failed","doc":"Somebody has to look.","roles":["rest","hold","idle"],"children":["Running","Servicing","Stopping"],"conditions":[{"type":"Available","status":"False","reason":"Broken"}]},{"name":"End","doc":"The server is gone; its volume is kept.","roles":["leaf","idle"]}]}"#]].assert_eq(&database().json());
}

#[test]
fn every_kind_of_edge_and_mark_is_drawn() {
    let graph = graph(&[
        "entry A !C:change !D:delete !B >B",
        "rest idle B !A:error1 >C -C",
        "no_transit C !D:after90061 >D",
        "leaf D",
    ]);
    expect![[r"
        stateDiagram-v2
            [*] --> A
            A --> C : on change
            A --> D : on delete
            A --> B : trigger
            A --> B
            B --> A : on error
            B --> C
            C --> D : after 1d1h1m1s
            C --> D
            D --> [*]
            classDef rest stroke-width:3px
            classDef hold stroke-width:3px,stroke-dasharray:6 3
            classDef visit stroke-dasharray:2 2
            class B rest
    "]]
    .assert_eq(&graph.mermaid());
    expect![[r#"{"format":1,"name":"App","kind":"lifecycle","states":[{"name":"A","roles":["entry"],"triggers":[{"to":"C","cause":"on change"},{"to":"D","cause":"on delete"},{"to":"B"}],"children":["B"]},{"name":"B","roles":["rest","idle"],"triggers":[{"to":"A","cause":"on error","attempts":1}],"children":["C"],"noRoutes":[{"to":"C","reason":"because"}]},{"name":"C","roles":["no_transit"],"triggers":[{"to":"D","cause":"after 1d1h1m1s","after":"1d1h1m1s"}],"children":["D"]},{"name":"D","roles":["leaf"]}]}"#]].assert_eq(&graph.json());
}

/// A graph with difficult texts.
fn nasty(text: &'static str) -> Graph<'static> {
    let mut states = graph(&["entry rest A >B -B", "leaf B"]).states.to_vec();
    for state in &mut states {
        state.doc = text;
        state.conditions = vec![Declared {
            name: "Available",
            status: ConditionStatus::Unknown,
            reason: "Because",
            message: text,
        }]
        .leak();
    }
    Graph {
        doc: text,
        ..with_routes(states)
    }
}

#[test]
fn any_text_survives_json() {
    for text in [
        "\"quoted\"",
        "back\\slash \\n \\u0041",
        "two\nlines\r\n\tand a tab",
        "\u{0}\u{1}\u{8}\u{c}\u{1f}\u{7f}\u{2028}\u{feff}",
        "ä € 🦀 </script>",
        "}],{\"x\":1",
    ] {
        let value: Value = serde_json::from_str(&nasty(text).json()).expect("JSON");
        assert_eq!(value["format"], Graph::JSON_FORMAT);
        assert_eq!(value["doc"], text);
        assert_eq!(value["states"][1]["doc"], text);
        assert_eq!(value["states"][1]["conditions"][0]["message"], text);
    }
}

#[test]
fn a_quoted_text_stays_within_its_quotes_in_dot() {
    let drawn = nasty("a \"b\" \\ c\nd").dot();
    assert!(drawn.contains(r#"tooltip="a \"b\" \\ c\nd""#), "{drawn}");
}

#[test]
fn the_same_graph_is_drawn_the_same() {
    for draw in [Graph::mermaid, Graph::dot, Graph::json] {
        assert_eq!(draw(&database()), draw(&database()));
    }
}

#[test]
fn an_edge_with_several_causes_is_drawn_once() {
    let graph = graph(&[
        "entry A >B !C:after60 !C:error3 !C:deadline90",
        "rest B >C",
        "leaf C",
    ]);
    let edge = "A --> C : after 1m or on 3 errors or deadline 1m30s\n";
    assert!(graph.mermaid().contains(edge), "{}", graph.mermaid());
    assert_eq!(graph.mermaid().matches("A --> C").count(), 1);
    assert_eq!(graph.dot().matches("\"A\" -> \"C\"").count(), 1);
    assert!(
        graph.json().contains(r#""deadline":"1m30s""#),
        "{}",
        graph.json()
    );
}
