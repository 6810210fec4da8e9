//! The database as pictures and data.

#[path = "common/build.rs"]
mod build;
#[path = "common/database.rs"]
mod database;

use expect_test::expect;
use okt_core::{ConditionStatus, Declared, Graph};

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

#[cfg(feature = "stored")]
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
    #[cfg(feature = "stored")]
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
fn a_state_named_like_a_word_of_mermaid_has_another_name_in_the_diagram() {
    let graph = graph(&["entry Start >Note -Note", "rest Note >End -End", "leaf End"]);
    let drawn = graph.mermaid();
    for line in [
        "    state \"Note\" as Note_\n",
        "    Start --> Note_\n",
        "    Note_ --> End\n",
        "    class Note_ rest\n",
    ] {
        assert!(drawn.contains(line), "{line}{drawn}");
    }
}

#[test]
fn a_quoted_text_stays_within_its_quotes_in_dot() {
    let drawn = nasty("a \"b\" \\ c\nd").dot();
    assert!(drawn.contains(r#"tooltip="a \"b\" \\ c\nd""#), "{drawn}");
}

#[test]
fn the_same_graph_is_drawn_the_same() {
    for draw in [Graph::mermaid, Graph::dot] {
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
}

#[cfg(feature = "svg")]
mod pictures {
    use okt_core::StateId;
    use okt_core::draw::{Area, Line, Places};

    use super::database;

    /// Returns the first and the last point of a line.
    fn ends(line: &Line) -> [(f64, f64); 2] {
        let numbers: Vec<f64> = line
            .path
            .split(['M', 'C', ' '])
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().expect("a number"))
            .collect();
        let [x, y, .., last_x, last_y] = numbers[..] else {
            panic!("no line: {line:?}");
        };
        [(x, y), (last_x, last_y)]
    }

    fn touches(area: &Area, (x, y): (f64, f64)) -> bool {
        let near = 2.0;
        (area.x - near..=area.x + area.width + near).contains(&x)
            && (area.y - near..=area.y + area.height + near).contains(&y)
    }

    /// Returns the lines from a state to another.
    fn between(places: &Places, from: StateId, to: StateId) -> Vec<&Line> {
        let leads = |line: &&Line| {
            let [start, end] = ends(line);
            touches(&places.states[from.index()], start) && touches(&places.states[to.index()], end)
        };
        places.lines.iter().filter(leads).collect()
    }

    #[test]
    fn each_edge_is_a_line_from_its_state_to_its_target() {
        let graph = database();
        let places = graph.places();
        let mut edges = 0;
        for (from, state) in graph.iter() {
            for edge in graph.edges(from) {
                let lines = between(&places, from, edge.to);
                let to = graph.name_of(edge.to);
                assert_eq!(lines.len(), 1, "{} → {to}: {lines:?}", state.name);
                edges += 1;
            }
        }
        assert_eq!(places.lines.len(), edges);
    }

    #[test]
    #[cfg(feature = "stored")]
    fn a_graph_with_an_edge_between_any_two_states_is_drawn_at_once() {
        let states = 60;
        let state = |number: usize| {
            let children: Vec<String> = (0..states)
                .filter(|other| *other != number)
                .map(|other| format!(r#""S{other}""#))
                .collect();
            let role = match number {
                0 => "entry",
                _ if number == states - 1 => "leaf",
                _ => "rest",
            };
            let children = children.join(",");
            format!(
                r#"{{"name":"S{number}","doc":"","roles":["{role}"],"triggers":[],"children":[{children}]}}"#
            )
        };
        let all: Vec<String> = (0..states).map(state).collect();
        let text = format!(
            r#"{{"format":1,"name":"Dense","doc":"","kind":"lifecycle","states":[{}]}}"#,
            all.join(",")
        );
        let graph = okt_core::stored::StoredGraph::read(&text).expect("a graph");
        let places = graph.leak().places();
        assert_eq!((places.states.len(), places.lines.len()), (60, 1000));
        let text = &places.labels.last().expect("a label").2;
        assert_eq!(text, "2540 more edges are not drawn");
    }

    #[test]
    fn states_that_lead_to_each_other_have_two_distinct_lines() {
        let places = database().places();
        let (running, servicing) = (StateId(1), StateId(2));
        let there = between(&places, running, servicing);
        let back = between(&places, servicing, running);
        let words = |line: &Line| {
            let mut words: Vec<_> = line
                .path
                .split(['M', 'C', ' '])
                .map(str::to_owned)
                .collect();
            words.sort();
            words
        };
        assert_ne!(words(there[0]), words(back[0]));
    }

    #[test]
    fn every_label_is_inside_the_picture() {
        let places = database().places();
        assert!(!places.labels.is_empty());
        for (x, _, label) in &places.labels {
            // A letter is about half as wide as it is high: 15 pixels.
            let half = label.chars().map(|_| 15.0 / 4.0).sum::<f64>();
            assert!(
                x - half >= 0.0 && x + half <= places.width,
                "{label}: {places:?}"
            );
        }
    }

    #[test]
    fn a_text_of_a_graph_is_no_markup() {
        let mut graph = database();
        graph.name = "<script>&";
        let svg = graph.svg();
        assert!(svg.contains("<title>&lt;script&gt;&amp;</title>"), "{svg}");
    }
}
