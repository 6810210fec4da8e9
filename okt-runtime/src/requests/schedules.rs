//! Makes requests at times of a calendar.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::SelectAll;
use futures::{FutureExt, StreamExt};
use kube::Client;
use kube::api::{ListParams, PostParams};
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use okt_core::duration;
use okt_core::request::RequestOutcome;
use okt_wire::api_timeout::answer;
use okt_wire::clock::{Clock, after};
use okt_wire::keys::{FINISHED_LABEL, SCHEDULE_LABEL};
use okt_wire::request::{ScheduleSpec, ScheduleStatus};
use okt_wire::scope::api;
use okt_wire::texts::{LastError, chain, cut};
use okt_wire::watch::{Connection, PAGE, retried};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use super::api::{MANAGER, MESSAGE_LIMIT, delete, write_status};
use super::calendar::{Missed, ScheduleTimes};
use super::queue::RequestQueue;
use super::served::ServedKind;
use crate::resources::ResourceKind;

/// How long until a schedule is looked at again after a failure.
const RETRY: Duration = Duration::from_secs(30);

/// A schedule as it was read, and when it is looked at next.
struct Followed {
    schedule: DynamicObject,
    due: Instant,
}

/// The number of a served kind, and the uid of a schedule of it.
type Key = (usize, String);

/// Makes the requests of all schedules; `is_ours` returns whether this replica follows the schedule of a uid.
pub(crate) async fn follow(
    queue: &RequestQueue,
    connection: &Connection,
    namespace: Option<&str>,
    is_ours: &(dyn Fn(&str) -> bool + Send + Sync),
    clock: &Clock,
) {
    let mut followed: HashMap<Key, Followed> = HashMap::new();
    let mut events = events(queue, connection, namespace);
    let mut last_error = LastError::default();
    loop {
        let next = followed.values().map(|it| it.due).min();
        let due = async {
            match next {
                Some(next) => sleep_until(next).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some((kind, event)) = events.next() => {
                heed(&mut followed, kind, event, &mut last_error);
            }
            () = due => {}
        }
        let now = Instant::now();
        let due: Vec<Key> = followed
            .iter()
            .filter(|(_, it)| it.due <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            let Some(it) = followed.get_mut(&key) else {
                continue;
            };
            it.due = after(RETRY);
            if !is_ours(&key.1) {
                continue;
            }
            let schedule = Schedule {
                queue,
                kind: key.0,
                served: &queue.kinds[key.0],
                client: &connection.client,
                clock,
            };
            match schedule.make_due(&it.schedule).await {
                Ok(wait) => it.due = wait.map_or_else(|| after(Duration::MAX), after),
                Err(error) => {
                    let name = it.schedule.metadata.name.as_deref().unwrap_or_default();
                    tracing::warn!(schedule = name, "cannot make a request: {}", chain(&error));
                }
            }
        }
    }
}

type Events =
    SelectAll<futures::stream::BoxStream<'static, (usize, watcher::Result<Event<DynamicObject>>)>>;

fn events(queue: &RequestQueue, connection: &Connection, namespace: Option<&str>) -> Events {
    let kinds = queue.kinds.iter().enumerate();
    let scheduled = kinds.filter_map(|(number, served)| Some((number, served.schedule.as_ref()?)));
    let mut all = SelectAll::new();
    for (number, kind) in scheduled {
        let client = connection.for_watch(&kind.api.kind);
        let namespace = namespace.filter(|_| kind.namespaced);
        let schedules = api::<DynamicObject>(&client, namespace, &kind.api);
        let config = watcher::Config::default().page_size(PAGE);
        let events = retried(watcher(schedules, config));
        all.push(events.map(move |event| (number, event)).boxed());
    }
    all
}

fn heed(
    followed: &mut HashMap<Key, Followed>,
    kind: usize,
    event: watcher::Result<Event<DynamicObject>>,
    last_error: &mut LastError,
) {
    let uid = |schedule: &DynamicObject| schedule.metadata.uid.clone().unwrap_or_default();
    match event {
        Ok(Event::Apply(schedule) | Event::InitApply(schedule)) => {
            let due = Instant::now();
            followed.insert((kind, uid(&schedule)), Followed { schedule, due });
        }
        Ok(Event::Delete(schedule)) => {
            followed.remove(&(kind, uid(&schedule)));
        }
        // Those that the list does not have are gone.
        Ok(Event::Init) => followed.retain(|key, _| key.0 != kind),
        Ok(Event::InitDone) => last_error.end(),
        Err(error) => last_error.warn("cannot watch the schedules", &"schedules", &error),
    }
}

struct Schedule<'a> {
    queue: &'a RequestQueue,
    kind: usize,
    served: &'a ServedKind,
    client: &'a Client,
    clock: &'a Clock,
}

impl Schedule<'_> {
    /// Makes the request that is due, and records that. Returns the time until the next one.
    fn make_due<'a>(
        &'a self,
        schedule: &'a DynamicObject,
    ) -> BoxFuture<'a, Result<Option<Duration>, kube::Error>> {
        async move {
            let before: ScheduleStatus =
                serde_json::from_value(schedule.data["status"].clone()).unwrap_or_default();
            let (make, mut status) = match self.read(schedule) {
                Ok((times, missed)) => {
                    let is_busy = self.is_busy(schedule);
                    let due = times.due(&before, missed, is_busy, self.clock.now());
                    (due.make, due.status)
                }
                Err(problem) => {
                    let status = ScheduleStatus {
                        next: None,
                        problem: cut(&problem, MESSAGE_LIMIT),
                        ..before.clone()
                    };
                    (None, status)
                }
            };
            let mut is_refused = false;
            if let Some(time) = make {
                let minute = time.strftime("%Y%m%d%H%M").to_string();
                match self.make(schedule, &minute).await {
                    Err(kube::Error::Api(refused)) if matches!(refused.code, 400..=499) => {
                        is_refused = true;
                        let problem =
                            format!("the API server refuses the request: {}", refused.message);
                        (status.problem, status.last) = (cut(&problem, MESSAGE_LIMIT), before.last);
                    }
                    made => made?,
                }
            }
            if status != before {
                self.record(schedule, &status).await?;
            }
            if is_refused {
                return Ok(Some(RETRY));
            }
            if make.is_some()
                && let Err(error) = self.trim(schedule).await
            {
                let name = schedule.metadata.name.as_deref().unwrap_or_default();
                tracing::warn!(
                    schedule = name,
                    "cannot delete finished requests: {}",
                    chain(&error)
                );
            }
            let now = self.clock.now();
            let left = status.next.map(|next| now.duration_until(next));
            // A moment later, so that the time has come by any clock.
            let left = left.map(|left| left.try_into().unwrap_or(Duration::ZERO));
            Ok(left.map(|left: Duration| left.saturating_add(Duration::from_millis(50))))
        }
        .boxed()
    }

    /// Reads what a schedule says.
    ///
    /// # Errors
    ///
    /// Why it cannot be followed. A retry does not help.
    fn read(&self, schedule: &DynamicObject) -> Result<(ScheduleTimes, Missed), String> {
        let spec: ScheduleSpec<Value> = serde_json::from_value(schedule.data["spec"].clone())
            .map_err(|error| error.to_string())?;
        let unfit = self.served.decode(&spec.template.args);
        unfit.map_err(|why| format!("template.args: {why}"))?;
        let start_within = duration::parse(&spec.start_within)
            .ok_or_else(|| format!("`startWithin: {}` is no time", spec.start_within))?;
        let times = ScheduleTimes::of(&spec.schedule, &spec.time_zone, spec.suspend)?;
        let catch_up = spec.catch_up;
        Ok((
            times,
            Missed {
                catch_up,
                start_within,
            },
        ))
    }

    /// Returns whether a request of the schedule has no outcome yet.
    fn is_busy(&self, schedule: &DynamicObject) -> bool {
        let meta = &schedule.metadata;
        let open = self.queue.all();
        open.iter().any(|it| {
            it.kind == self.kind && it.schedule == meta.name && it.namespace == meta.namespace
        })
    }

    /// Makes the request for a time, unless there is one already.
    async fn make(&self, schedule: &DynamicObject, minute: &str) -> Result<(), kube::Error> {
        let meta = &schedule.metadata;
        let name = meta.name.as_deref().unwrap_or_default();
        let kind = &self.served.kind.api;
        let mut request = DynamicObject::new(&format!("{name}-{minute}"), kind);
        request.metadata.namespace.clone_from(&meta.namespace);
        request.metadata.labels = Some([(SCHEDULE_LABEL.to_owned(), name.to_owned())].into());
        request.data = json!({ "spec": schedule.data["spec"]["template"] });
        let all = api::<DynamicObject>(self.client, meta.namespace.as_deref(), kind);
        let params = PostParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PostParams::default()
        };
        match answer(all.create(&params, &request)).await {
            Ok(made) => {
                self.queue.put(self.kind, &made);
                Ok(())
            }
            // Another process made it, or this one did and did not hear of it.
            Err(kube::Error::Api(refused)) if refused.code == 409 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes finished requests of the schedule beyond those that it keeps.
    async fn trim(&self, schedule: &DynamicObject) -> Result<(), kube::Error> {
        let spec = &schedule.data["spec"];
        let Ok(spec) = serde_json::from_value::<ScheduleSpec<Value>>(spec.clone()) else {
            return Ok(());
        };
        let meta = &schedule.metadata;
        let kind: &ResourceKind = &self.served.kind;
        let all = api::<DynamicObject>(self.client, meta.namespace.as_deref(), &kind.api);
        let name = meta.name.as_deref().unwrap_or_default();
        let own = format!("{SCHEDULE_LABEL}={name},{FINISHED_LABEL}");
        let mut found = answer(all.list_metadata(&ListParams::default().labels(&own)))
            .await?
            .items;
        // The newest first.
        found.sort_by(|one, other| {
            let made = |it: &kube::core::PartialObjectMeta<DynamicObject>| {
                let made = it.metadata.creation_timestamp.as_ref();
                (made.map(|it| it.0), it.metadata.name.clone())
            };
            made(other).cmp(&made(one))
        });
        let (mut reached, mut failed) = (spec.keep.reached, spec.keep.failed);
        for request in &found {
            let labels = request.metadata.labels.as_ref();
            let outcome = labels.and_then(|it| it.get(FINISHED_LABEL));
            let is_reached = outcome.is_some_and(|it| it == RequestOutcome::Reached.as_str());
            let left = if is_reached {
                &mut reached
            } else {
                &mut failed
            };
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => delete(self.client, kind, request).await?,
            }
        }
        Ok(())
    }

    /// Writes the status of a schedule, if it has not changed meanwhile.
    async fn record(
        &self,
        schedule: &DynamicObject,
        status: &ScheduleStatus,
    ) -> Result<(), kube::Error> {
        let Some(kind) = &self.served.schedule else {
            return Ok(());
        };
        let meta = &schedule.metadata;
        // A merge patch leaves a field that is not there.
        let mut fields = Map::new();
        for field in ["last", "next", "base", "calendar", "problem"] {
            fields.insert(field.to_owned(), Value::Null);
        }
        if let Ok(Value::Object(known)) = serde_json::to_value(status) {
            fields.extend(known);
        }
        let all = api::<DynamicObject>(self.client, meta.namespace.as_deref(), &kind.api);
        let name = meta.name.as_deref().unwrap_or_default();
        let version = meta.resource_version.as_deref();
        match write_status(&all, name, version, &Value::Object(fields)).await {
            Ok(_) => Ok(()),
            // The newer version comes as an event.
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
