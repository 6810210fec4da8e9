//! An HTTP request as a step of a state's work: its content, and the meaning of its answer.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use okt_agent::Fault;
use serde_json::json;

use super::command::Cut;
use super::config::{Call, Method};
use super::http::{Answered, NoAnswer, shown};
use super::is_state;
use super::job::JobAttempt;
use super::scratch::CommandResult;

impl JobAttempt<'_> {
    pub(super) async fn call(&self, call: &Call) -> Result<CommandResult, Fault> {
        let task = self.task;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("okt-action-id", task.id().as_str()),
            ("okt-state", task.state()),
            ("okt-attempt", &task.attempt().to_string()),
            ("okt-resumed", if task.resumed() { "true" } else { "false" }),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let body = match (&call.body, call.method) {
            (Some(body), _) => Some(body.clone()),
            (None, Method::Get | Method::Delete) => None,
            (None, Method::Post | Method::Put | Method::Patch) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let task = json!({
                    "action": task.id(), "state": task.state(), "attempt": task.attempt(),
                    "resumed": task.resumed(), "owner": task.owner(), "input": task.input(),
                });
                Some(task.to_string())
            }
        };
        let name = format!("{} {}", call.method.name(), shown(&call.url));
        let asked = self
            .program
            .http
            .ask(call.method, &call.url, headers, body, self.deadline);
        let answered = tokio::select! {
            biased;
            answered = asked => answered,
            () = task.cancelled() => return Err(self.cut(Cut::Cancelled, &name)),
        };
        let answered = answered.map_err(|error| match error {
            NoAnswer::TimedOut => self.cut(Cut::TimedOut, &name),
            NoAnswer::Failed(why) => Fault::retry("NoAnswer", format!("{name}: {why}")),
        })?;
        task.print(&answered.body);
        let told = said(&answered);
        let status = answered.status;
        let expected = if call.expect.is_empty() {
            (200..300).contains(&status)
        } else {
            call.expect.contains(&status)
        };
        if expected {
            return Ok(told);
        }
        let mut fault = told.fault("RequestFailed", format!("{name} answered {status}"));
        fault.permanent |= call.permanent.contains(&status);
        Err(fault)
    }
}

/// Reads the result that an application reports in the headers of its answer.
fn said(answered: &Answered) -> CommandResult {
    let header = |name| {
        answered
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    CommandResult {
        event: header("okt-event")
            .filter(|event| is_state(event))
            .map(str::to_owned),
        reason: header("okt-reason")
            .filter(|reason| is_state(reason))
            .map(str::to_owned),
        message: header("okt-message").map(str::to_owned),
        permanent: false,
    }
}
