//! The lifecycle of a database server.

use std::time::Duration;

use okt_core::routes::{Routes, Tables};
use okt_core::{
    Cause, ConditionStatus, Declared, Graph, Kind, Mark, Marks, State, StateId, Trigger,
};

const RUNNING: StateId = StateId(1);
const SERVICING: StateId = StateId(2);
const STOPPING: StateId = StateId(3);
const FAILED: StateId = StateId(4);
const END: StateId = StateId(5);

const fn available(status: ConditionStatus, reason: &'static str) -> Declared<'static> {
    Declared {
        name: "Available",
        status,
        reason,
        message: "",
    }
}

const fn on_error(attempts: u32) -> Trigger {
    Trigger {
        to: FAILED,
        cause: Cause::OnError { attempts },
    }
}

const fn state(
    name: &'static str,
    doc: &'static str,
    marks: Marks,
    triggers: &'static [Trigger],
    children: &'static [StateId],
    conditions: &'static [Declared<'static>],
) -> State<'static> {
    State {
        name,
        variant: name,
        doc,
        was: &[],
        marks,
        triggers,
        children,
        conditions,
        no_routes: &[],
    }
}

const NONE: Marks = Marks(0);

const STATES: &[State<'static>] = &[
    state(
        "Start",
        "The data directory is being made.",
        NONE.with(Mark::Entry),
        &[on_error(5)],
        &[RUNNING],
        &[],
    ),
    state(
        "Running",
        "Clients may connect.",
        NONE.with(Mark::Rest),
        &[on_error(3)],
        &[SERVICING, STOPPING],
        &[available(ConditionStatus::True, "AcceptingConnections")],
    ),
    state(
        "Servicing",
        "A backup is under way.",
        NONE.with(Mark::Visit),
        &[Trigger {
            to: FAILED,
            cause: Cause::After(Duration::from_mins(30)),
        }],
        &[RUNNING, END],
        &[available(ConditionStatus::True, "AcceptingConnections")],
    ),
    state(
        "Stopping",
        "Clients are being asked to leave.",
        NONE,
        &[],
        &[END],
        &[],
    ),
    state(
        "Failed",
        "Somebody has to look.",
        NONE.with(Mark::Rest).with(Mark::Hold).with(Mark::Idle),
        &[],
        &[RUNNING, SERVICING, STOPPING],
        &[available(ConditionStatus::False, "Broken")],
    ),
    state(
        "End",
        "The server is gone; its volume is kept.",
        NONE.with(Mark::Leaf).with(Mark::Idle),
        &[],
        &[],
        &[],
    ),
];

/// Returns the graph with its routes.
pub(crate) fn database() -> Graph<'static> {
    let graph = Graph {
        name: "DatabaseState",
        doc: "The life of a database server.",
        kind: Kind::Lifecycle,
        states: STATES,
        routes: Routes::NONE,
    };
    let tables: &'static Tables = Box::leak(Box::new(Tables::of(&graph)));
    Graph {
        routes: tables.routes(),
        ..graph
    }
}
