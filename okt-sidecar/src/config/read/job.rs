//! Reads the configuration of the work of states.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ConfigReader;
use crate::config::fields::{Field, Fields, is_state};
use crate::config::{ApplicationConfig, Call, CommandEnvironment, Job, JobStep, Method, Verb};

impl ConfigReader {
    pub(super) fn states(
        &mut self,
        field: &Field<'_>,
        manages: bool,
        application: Option<&ApplicationConfig>,
    ) -> BTreeMap<String, Job> {
        let entries = field.entries(&mut self.complaints);
        let states = entries.into_iter().filter_map(|(name, place, field)| {
            if !is_state(name) {
                let text = "states have names such as Servicing, as they stand in the graph";
                self.complaints.add(place, &field.key, text);
            }
            Some((name.to_owned(), self.job(&field, manages, application)?))
        });
        states.collect()
    }

    fn job(
        &mut self,
        field: &Field<'_>,
        manages: bool,
        application: Option<&ApplicationConfig>,
    ) -> Option<Job> {
        let mut fields = field.fields(&mut self.complaints)?;
        let around = self.surroundings(&mut fields);
        let list = fields.take("steps");
        let single = self.step(&mut fields, &around, manages);
        let timeout_field = fields.take("timeout");
        let timeout = (timeout_field.as_ref()).and_then(|field| field.time(&mut self.complaints));
        let timeout = timeout.unwrap_or(Duration::from_mins(10));
        let grace = fields
            .take("grace")
            .and_then(|field| field.time(&mut self.complaints));
        let repeatable = (fields.take("repeatable")).and_then(|it| it.flag(&mut self.complaints));
        let until = fields
            .take("until")
            .and_then(|field| field.state(&mut self.complaints));
        let permanent = fields.take("permanent");
        let permanent = permanent
            .map(|field| self.numbers(&field, 1, 255))
            .unwrap_or_default();
        let steps = match (list, single) {
            (Some(list), None) => self.steps(&list, &around, manages),
            (None, Some(step)) => vec![step?],
            (Some(_), Some(_)) => {
                let text = "`steps` stands alone: put the rest into the list";
                fields.wrong(&mut self.complaints, text);
                return None;
            }
            (None, None) => {
                let text = "the work is missing: one of `command`, `http`, `application`, `steps`";
                fields.wrong(&mut self.complaints, text);
                Vec::new()
            }
        };
        let stops =
            (steps.iter()).any(|it| matches!(it, JobStep::Application(Verb::Stop | Verb::Restart)));
        let stopping: Duration = (application.iter().flat_map(|it| &it.stop))
            .map(|step| step.wait)
            .sum();
        if stops && stopping >= timeout {
            let at = timeout_field.as_ref().unwrap_or(field);
            let text = format!(
                "{timeout:?} is shorter than what `application.stop` may take, {stopping:?}: it would never come \
                 to the end of its list"
            );
            at.wrong(&mut self.complaints, text);
        }
        fields.end(&mut self.complaints);
        // Starting a running application and stopping a stopped one change nothing, so such work is repeatable.
        let harmless = !steps.is_empty()
            && (steps.iter())
                .all(|it| matches!(it, JobStep::Application(Verb::Start | Verb::Stop)));
        Some(Job {
            repeatable: repeatable.unwrap_or(harmless),
            steps,
            around,
            until,
            timeout,
            grace: grace.unwrap_or(Duration::from_secs(10)),
            permanent: permanent.into_iter().map(i32::from).collect(),
        })
    }

    fn steps(
        &mut self,
        list: &Field<'_>,
        around: &CommandEnvironment,
        manages: bool,
    ) -> Vec<JobStep> {
        let steps = list.list(&mut self.complaints);
        let found = steps.iter().filter_map(|field| {
            let mut fields = field.fields(&mut self.complaints)?;
            let step = self.step(&mut fields, around, manages);
            if step.is_none() {
                let text = "expected one of `command`, `http`, `application`";
                fields.wrong(&mut self.complaints, text);
            }
            fields.end(&mut self.complaints);
            step.flatten()
        });
        found.collect()
    }

    /// Returns `None` if there is no step, and `Some(None)` if the step is wrong.
    #[expect(
        clippy::option_option,
        reason = "both are told apart by what is said of them"
    )]
    fn step(
        &mut self,
        fields: &mut Fields<'_>,
        around: &CommandEnvironment,
        manages: bool,
    ) -> Option<Option<JobStep>> {
        let found = ["command", "http", "application"].map(|name| fields.take(name));
        if found.iter().flatten().count() > 1 {
            let text = "only one of `command`, `http`, `application` may stand here; `steps` is a list of them";
            fields.wrong(&mut self.complaints, text);
            return Some(None);
        }
        let [command, http, application] = found;
        if let Some(field) = command {
            return Some(self.command(&field, around).map(JobStep::Command));
        }
        if let Some(field) = http {
            return Some(self.call(&field).map(JobStep::Http));
        }
        let field = application?;
        let choices = [
            ("start", Verb::Start),
            ("stop", Verb::Stop),
            ("restart", Verb::Restart),
        ];
        if !manages {
            let text = "there is no `application` that the agent could start or stop";
            field.wrong(&mut self.complaints, text);
        }
        Some(
            field
                .choice(&mut self.complaints, &choices)
                .map(JobStep::Application),
        )
    }

    fn call(&mut self, field: &Field<'_>) -> Option<Call> {
        let mut fields = field.fields(&mut self.complaints)?;
        let method = (fields.take("method")).map_or(Some(Method::Post), |field| {
            let choices = [
                ("GET", Method::Get),
                ("POST", Method::Post),
                ("PUT", Method::Put),
                ("PATCH", Method::Patch),
                ("DELETE", Method::Delete),
            ];
            field.choice(&mut self.complaints, &choices)
        });
        let url = fields.need(
            &mut self.complaints,
            "url",
            "such as http://127.0.0.1:8080/backup",
        );
        let url = url.and_then(|field| self.url(&field));
        let body = fields
            .take("body")
            .and_then(|field| field.text(&mut self.complaints));
        let mut statuses = |reader: &mut Self, name| {
            let field = fields.take(name);
            field
                .map(|field| reader.numbers(&field, 100, 599))
                .unwrap_or_default()
        };
        let expect = statuses(self, "expect");
        let permanent = statuses(self, "permanent");
        fields.end(&mut self.complaints);
        Some(Call {
            method: method?,
            url: url?,
            body,
            expect,
            permanent,
        })
    }
}
