//! The lifecycle of a database server.

use okt_core::ConditionStatus::{False, True};
use okt_core::{Declared, Graph, State};

use crate::build::{graph, with_routes};

/// Returns the graph with its routes.
pub(crate) fn database() -> Graph<'static> {
    let plain = graph(&[
        "entry Start !Failed:error5 >Running",
        "rest Running !Failed:error3 >Servicing >Stopping",
        "visit Servicing !Failed:after1800 >Running >End",
        "Stopping >End",
        "rest hold idle Failed >Running >Servicing >Stopping",
        "leaf idle End",
    ]);
    let accepting = Some((True, "AcceptingConnections"));
    let names = [
        ("The data directory is being made.", None),
        ("Clients may connect.", accepting),
        ("A backup is under way.", accepting),
        ("Clients are being asked to leave.", None),
        ("Somebody has to look.", Some((False, "Broken"))),
        ("The server is gone; its volume is kept.", None),
    ];
    let states = plain
        .states
        .iter()
        .zip(names)
        .map(|(state, (doc, available))| {
            let declared = available.map(|(status, reason)| Declared {
                name: "Available",
                status,
                reason,
                message: "",
            });
            State {
                doc,
                conditions: Vec::from_iter(declared).leak(),
                ..*state
            }
        });
    Graph {
        name: "DatabaseState",
        doc: "The life of a database server.",
        ..with_routes(states.collect())
    }
}
