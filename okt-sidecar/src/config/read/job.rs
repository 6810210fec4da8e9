//! Reads the configuration of the work of states.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;

use super::parts::{command, numbers, surroundings, url};
use crate::config::fields::{Field, Fields, is_state};
use crate::config::{Call, CommandEnvironment, Job, JobStep, Verb};

/// The application that work may start and stop.
#[derive(Clone, Copy)]
pub(super) struct Managed {
    pub(super) exists: bool,
    /// How long its stop may take.
    pub(super) stopping: Option<Duration>,
}

pub(super) fn states(field: &Field<'_>, managed: Managed) -> BTreeMap<String, Job> {
    let states = field.entries().into_iter().filter_map(|entry| {
        let name = &entry.key.name;
        if !is_state(name) {
            entry.wrong("states have names such as Servicing, as they stand in the graph");
        }
        Some((name.clone(), job(&entry.field, managed)?))
    });
    states.collect()
}

fn job(field: &Field<'_>, managed: Managed) -> Option<Job> {
    let mut fields = field.fields()?;
    let around = surroundings(&mut fields);
    let list = fields.take("steps");
    let single = step(&mut fields, &around, managed);
    let timeout_field = fields.take("timeout");
    let given = timeout_field.as_ref().and_then(Field::time);
    let timeout = given.unwrap_or(Duration::from_mins(10));
    let grace = fields.optional("grace", Field::time);
    let repeatable = fields.optional("repeatable", Field::flag);
    let until = fields.optional("until", Field::state);
    let permanent = fields.optional("permanent", |it| Some(numbers(it, 1, 255)));
    let steps = match (list, single) {
        (Some(list), None) => steps(&list, &around, managed),
        (None, Some(step)) => vec![step?],
        (Some(_), Some(_)) => {
            fields.wrong("`steps` stands alone: put the rest into the list");
            return None;
        }
        (None, None) => {
            let text = "the work is missing: one of `command`, `http`, `application`, `steps`";
            fields.wrong(text);
            Vec::new()
        }
    };
    let stops = |step: &JobStep| matches!(step, JobStep::Application(Verb::Stop | Verb::Restart));
    if let Some(stopping) = managed.stopping
        && stopping >= timeout
        && steps.iter().any(stops)
    {
        let place = timeout_field.as_ref().unwrap_or(field);
        place.wrong(format!(
            "{timeout:?} is shorter than what `application.stop` may take, {stopping:?}: it would never come to the \
             end of its list"
        ));
    }
    fields.end();
    // Starting a running application and stopping a stopped one change nothing, so such work is repeatable.
    let is_harmless =
        |step: &JobStep| matches!(step, JobStep::Application(Verb::Start | Verb::Stop));
    Some(Job {
        repeatable: repeatable
            .unwrap_or_else(|| !steps.is_empty() && steps.iter().all(is_harmless)),
        steps,
        around,
        until,
        timeout,
        grace: grace.unwrap_or(Duration::from_secs(10)),
        permanent: permanent.into_iter().flatten().map(i32::from).collect(),
    })
}

fn steps(list: &Field<'_>, around: &CommandEnvironment, managed: Managed) -> Vec<JobStep> {
    let elements = list.list().into_iter().filter_map(|field| {
        let mut fields = field.fields()?;
        let step = step(&mut fields, around, managed);
        if step.is_none() {
            fields.wrong("expected one of `command`, `http`, `application`");
        }
        fields.end();
        step.flatten()
    });
    elements.collect()
}

/// Returns `None` if there is no step, and `Some(None)` if the step is wrong.
#[expect(
    clippy::option_option,
    reason = "a missing step and a wrong one have different messages"
)]
fn step(
    fields: &mut Fields<'_>,
    around: &CommandEnvironment,
    managed: Managed,
) -> Option<Option<JobStep>> {
    match ["command", "http", "application"].map(|name| fields.take(name)) {
        [None, None, None] => None,
        [Some(field), None, None] => Some(command(&field, around).map(JobStep::Command)),
        [None, Some(field), None] => Some(call(&field).map(JobStep::Http)),
        [None, None, Some(field)] => {
            if !managed.exists {
                field.wrong("there is no `application` that the agent could start or stop");
            }
            let verbs = [
                ("start", Verb::Start),
                ("stop", Verb::Stop),
                ("restart", Verb::Restart),
            ];
            Some(field.choice(&verbs).map(JobStep::Application))
        }
        [_, _, _] => {
            fields.wrong(
                "only one of `command`, `http`, `application` may stand here; `steps` is a list of them",
            );
            Some(None)
        }
    }
}

fn call(field: &Field<'_>) -> Option<Call> {
    let mut fields = field.fields()?;
    let methods = [
        ("GET", Method::GET),
        ("POST", Method::POST),
        ("PUT", Method::PUT),
        ("PATCH", Method::PATCH),
        ("DELETE", Method::DELETE),
    ];
    let method = fields.optional_or("method", Method::POST, |it| it.choice(&methods));
    let url = fields.required("url", "such as http://127.0.0.1:8080/backup", url);
    let body = fields.optional("body", Field::text);
    let [expect, permanent] =
        ["expect", "permanent"].map(|name| fields.optional(name, |it| Some(numbers(it, 100, 599))));
    fields.end();
    Some(Call {
        method: method?,
        url: url?,
        body,
        expect: expect.unwrap_or_default(),
        permanent: permanent.unwrap_or_default(),
    })
}
