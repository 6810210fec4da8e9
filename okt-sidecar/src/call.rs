//! An HTTP request as a step of a state's work: its content, and the meaning of its answer.

use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use okt_agent::Fault;
use serde_json::json;

use super::command::Cut;
use super::config::Call;
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
        let body = match (&call.body, &call.method) {
            (Some(body), _) => Some(body.clone()),
            (None, &(Method::GET | Method::DELETE)) => None,
            (None, _) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let task = json!({
                    "action": task.id(), "state": task.state(), "attempt": task.attempt(),
                    "resumed": task.resumed(), "owner": task.owner(), "input": task.input(),
                });
                Some(task.to_string())
            }
        };
        let name = format!("{} {}", call.method, shown(&call.url));
        let http = &self.program.http;
        let method = call.method.clone();
        let asked = http.ask(method, &call.url, headers, body, self.deadline);
        let outcome = tokio::select! {
            biased;
            answered = asked => answered,
            () = task.cancelled() => return Err(self.cut(Cut::Cancelled, &name)),
        };
        let answered = outcome.map_err(|error| match error {
            NoAnswer::TimedOut => self.cut(Cut::TimedOut, &name),
            NoAnswer::Failed(why) => Fault::retry("NoAnswer", format!("{name}: {why}")),
        })?;
        task.print(&answered.body);
        let result = CommandResult::of(&answered);
        let status = answered.status;
        let expected = if call.expect.is_empty() {
            (200..300).contains(&status)
        } else {
            call.expect.contains(&status)
        };
        if expected {
            return Ok(result);
        }
        let mut fault = result.fault("RequestFailed", format!("{name} answered {status}"));
        fault.permanent |= call.permanent.contains(&status);
        Err(fault)
    }
}

impl CommandResult {
    /// Reads the result that an application reports in the headers of its answer.
    fn of(answered: &Answered) -> Self {
        let header = |name| Some(answered.headers.get(name)?.to_str().ok()?.to_owned());
        let word = |name| header(name).filter(|word| is_state(word));
        Self {
            event: word("okt-event"),
            reason: word("okt-reason"),
            message: header("okt-message"),
            permanent: false,
        }
    }
}
