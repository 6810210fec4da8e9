//! Defines the columns of the kinds that run Pods.

use jiff::Timestamp;
use serde_json::Value;

use super::Column;
use super::cell::{NONE, count, each, integer, labels, or, span};
use crate::object::{self, at, text};

/// Returns the columns of kinds that keep a number of Pods running.
pub(super) fn columns(kind: &str) -> Vec<Column> {
    let ready = Column::cell_of("Ready", |object, _| {
        let ready = integer(object, &["status", "readyReplicas"]);
        format!("{ready}/{}", desired(object)).into()
    });
    let wanted = || Column::cell_of("Desired", |object, _| desired(object).into()).typed("integer");
    let template = &["spec", "template", "spec", "containers"];
    let mut columns = match kind {
        "Deployment" => vec![
            ready,
            Column::integer("Up-to-date", &["status", "updatedReplicas"]).typed("string"),
            Column::integer("Available", &["status", "availableReplicas"]).typed("string"),
        ],
        "StatefulSet" => vec![ready],
        "ReplicaSet" | "ReplicationController" => vec![
            wanted(),
            Column::integer("Current", &["status", "replicas"]),
            Column::integer("Ready", &["status", "readyReplicas"]),
        ],
        _ => vec![
            Column::integer("Desired", &["status", "desiredNumberScheduled"]),
            Column::integer("Current", &["status", "currentNumberScheduled"]),
            Column::integer("Ready", &["status", "numberReady"]),
            Column::integer("Up-to-date", &["status", "updatedNumberScheduled"]),
            Column::integer("Available", &["status", "numberAvailable"]),
            Column::labels(
                "Node Selector",
                &["spec", "template", "spec", "nodeSelector"],
            ),
        ],
    };
    columns.push(Column::age());
    columns.extend(containers(template));
    match kind {
        "StatefulSet" => {}
        "ReplicationController" => {
            columns.push(Column::labels("Selector", &["spec", "selector"]).wide());
        }
        _ => columns.push(Column::selector("Selector", &["spec", "selector"]).wide()),
    }
    columns
}

pub(super) fn job() -> Vec<Column> {
    let mut columns = vec![
        Column::cell_of("Status", |object, _| {
            let has = |kind| object::is_condition_true(object, kind);
            let status = if has("Complete") {
                "Complete"
            } else if has("Failed") {
                "Failed"
            } else if object::is_deleting(object) {
                "Terminating"
            } else {
                ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
                    .into_iter()
                    .find(|kind| has(kind))
                    .unwrap_or("Running")
            };
            status.into()
        }),
        Column::cell_of("Completions", |object, _| {
            let done = integer(object, &["status", "succeeded"]);
            let at_once = integer(object, &["spec", "parallelism"]);
            match at(object, &["spec", "completions"]).and_then(Value::as_i64) {
                Some(wanted) => format!("{done}/{wanted}"),
                None if at_once > 1 => format!("{done}/1 of {at_once}"),
                None => format!("{done}/1"),
            }
            .into()
        }),
        Column::cell_of("Duration", |object, now| {
            let time = |key| text(object, &["status", key]).parse::<Timestamp>().ok();
            match (time("startTime"), time("completionTime")) {
                (None, _) => "".into(),
                (Some(start), end) => span(start, end.unwrap_or(now)).into(),
            }
        }),
        Column::age(),
    ];
    columns.extend(containers(&["spec", "template", "spec", "containers"]));
    columns.push(Column::selector("Selector", &["spec", "selector"]).wide());
    columns
}

pub(super) fn cron_job() -> Vec<Column> {
    let mut columns = vec![
        Column::plain("Schedule", ".spec.schedule"),
        Column::text_or("Timezone", &["spec", "timeZone"], NONE),
        Column::cell_of("Suspend", |object, _| {
            let suspended = at(object, &["spec", "suspend"]) == Some(&Value::Bool(true));
            if suspended { "True" } else { "False" }.into()
        })
        .typed("boolean"),
        Column::cell_of("Active", |object, _| {
            count(object, &["status", "active"]).into()
        })
        .typed("integer"),
        Column::cell_of("Last Schedule", |object, now| {
            let last = text(object, &["status", "lastScheduleTime"]);
            last.parse()
                .map_or(NONE.into(), |then| span(then, now).into())
        }),
        Column::age(),
    ];
    let template = &[
        "spec",
        "jobTemplate",
        "spec",
        "template",
        "spec",
        "containers",
    ];
    columns.extend(containers(template));
    columns.push(Column::selector("Selector", &["spec", "jobTemplate", "spec", "selector"]).wide());
    columns
}

/// Returns the columns for the names and the images of containers.
fn containers(path: &'static [&'static str]) -> [Column; 2] {
    let column = |name, key: &'static str| {
        Column::cell_of(name, move |object, _| {
            let texts = each(object, path, |item| text(item, &[key]).to_owned());
            texts.join(",").into()
        })
        .wide()
    };
    [column("Containers", "name"), column("Images", "image")]
}

pub(super) fn pod_template() -> Vec<Column> {
    let [names, images] = containers(&["template", "spec", "containers"]);
    vec![
        Column {
            priority: 0,
            ..names
        },
        Column {
            priority: 0,
            ..images
        },
        Column::cell_of("Pod Labels", |template, _| {
            let labels = labels(at(template, &["template", "metadata", "labels"]));
            or(&labels, NONE)
        }),
    ]
}

fn desired(object: &Value) -> i64 {
    // The default of a real server.
    at(object, &["spec", "replicas"])
        .and_then(Value::as_i64)
        .unwrap_or(1)
}
