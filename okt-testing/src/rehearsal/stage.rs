//! [`RehearsalStage`]: executes one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Resource};
use okt_runtime::__testing::{Attempt, AttemptFault, TestHooks};
use okt_runtime::{Application, Lifecycle, OWNER_LABEL, Operator, Requests, StateOf, crd};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::conversion::convert;
use super::plan::{Becomes, Course, PlannedRefusal, RehearsalPlan};
use super::step::RehearsalStep;
use super::{Rehearsal, writes, written};
use crate::{ApiServer, EventKind, Fault, Mark, RequestRecord, Verb, Version};

/// The client name of the operators of a run.
pub(super) const OPERATOR: &str = "operator";

/// The client name of the other parts of the cluster.
const CLUSTER: &str = "cluster";

/// The failure of a run whose planned fault did not happen.
pub(super) const DIFFERS: &str = "what was planned did not happen: the runs differ by themselves";

/// An object is at rest if it has not changed for this time, which is longer than an operator waits for a response; and
/// longer than the operator waits between two observations.
const QUIET: Duration = Duration::from_mins(5);

/// How long an operator takes at most from an observation to the write that follows from it.
const SOON: Duration = Duration::from_mins(1);

/// How long an operator must write nothing after the end of a run.
const SILENCE: Duration = Duration::from_mins(20);

/// How long a restarted operator is shown the past.
const PAST: Duration = Duration::from_secs(10);

/// A run in progress.
pub(super) struct RehearsalStage<'r, A: Application> {
    rehearsal: &'r Rehearsal<A>,
    plan: RehearsalPlan,
    server: ApiServer,
    app: A,
    objects: Api<DynamicObject>,
    name: String,
    began: Instant,
    operators: Mutex<Vec<JoinHandle<String>>>,
    attempts: Arc<Mutex<Vec<BegunAttempt>>>,
    count: Arc<AtomicUsize>,
    /// The number of starts of an operator.
    starts: AtomicUsize,
    /// Whether the planned fault has happened.
    happened: AtomicBool,
    /// The indexes of the random values that owned resources had.
    found_random: Mutex<BTreeSet<usize>>,
}

/// An attempt that began.
#[derive(Clone, Debug)]
pub(super) struct BegunAttempt {
    pub(super) attempt: Attempt,
    pub(super) at: Instant,
    /// The start of an operator that it belongs to, starting at 0.
    pub(super) start: usize,
}

/// A run that ended.
pub(super) struct EndedRun {
    pub(super) plan: RehearsalPlan,
    /// The plural name of the object's kind.
    pub(super) plural: String,
    pub(super) course: Course,
    /// The place of the object after each step.
    pub(super) rests: Vec<Rest>,
    pub(super) attempts: Vec<BegunAttempt>,
    pub(super) server: ApiServer,
    pub(super) effects: Vec<String>,
    /// The last state on record.
    pub(super) last_state: Option<String>,
    pub(super) broken: Vec<String>,
}

/// The place of an object at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) after: String,
    pub(super) place: Option<Value>,
}

/// Why a run ended before all its steps.
enum Cut {
    /// The plan deleted the object.
    Deleted,
}

impl<'r, A: Application + Clone> RehearsalStage<'r, A> {
    /// Creates a server with the CRD, and the application.
    pub(super) async fn set(rehearsal: &'r Rehearsal<A>, plan: RehearsalPlan) -> Self {
        let server = ApiServer::new();
        let definition = crd::<A::Resource>().expect("the kind has a CRD");
        let scope = definition.spec.scope.clone();
        convert::<A::Resource>(&server, &definition);
        let crds = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let crds: Api<DynamicObject> =
            Api::all_with(server.client(), &ApiResource::from_gvk(&crds));
        let mut definitions = vec![definition];
        for served in A::requests(Requests::default()).kinds {
            definitions.extend(served.crds().expect("requests have CRDs"));
        }
        for definition in definitions {
            let json = serde_json::to_value(definition).expect("a CRD is JSON");
            let object = serde_json::from_value(json).expect("a CRD is an object");
            let created = crds.create(&PostParams::default(), &object).await;
            created.expect("the server takes the CRD");
        }
        let mut resource = ApiResource::erase::<A::Resource>(&());
        if let Some(version) = rehearsal.object["apiVersion"].as_str() {
            // The user may know an earlier version only.
            version.clone_into(&mut resource.api_version);
            let version = version.rsplit('/').next().unwrap_or_default();
            version.clone_into(&mut resource.version);
        }
        let metadata = &rehearsal.object["metadata"];
        if let Some(namespace) = metadata["namespace"].as_str() {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
            let namespaces: Api<DynamicObject> = Api::all_with(server.client(), &resource);
            let namespace = DynamicObject::new(namespace, &resource);
            // The namespace may exist already; for an invalid name the object is refused later.
            let _ = namespaces.create(&PostParams::default(), &namespace).await;
        }
        let objects = match metadata["namespace"].as_str() {
            _ if scope == "Cluster" => Api::all_with(server.client(), &resource),
            None => Api::default_namespaced_with(server.client(), &resource),
            Some(namespace) => Api::namespaced_with(server.client(), namespace, &resource),
        };
        Self {
            app: (rehearsal.fresh)(),
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            rehearsal,
            plan,
            server,
            objects,
            began: Instant::now(),
            operators: Mutex::default(),
            attempts: Arc::default(),
            count: Arc::default(),
            starts: AtomicUsize::new(0),
            happened: AtomicBool::new(false),
            found_random: Mutex::default(),
        }
    }

    /// Executes the steps with the planned fault, and records what happened.
    pub(super) async fn play(self) -> EndedRun {
        let mark = self.server.mark();
        let mut rests = Vec::new();
        let mut broken = Vec::new();
        let director = self.direct();
        let mut cluster = JoinSet::new();
        for part in &self.rehearsal.cluster {
            cluster.spawn(part(self.server.client_named(CLUSTER)));
        }
        self.start(self.server.client_named(OPERATOR));
        if self.plan == RehearsalPlan::Two {
            self.start(self.server.client_named(OPERATOR));
        }
        let run_steps = timeout(self.rehearsal.patience, self.run_steps(&mut rests));
        let cut = tokio::select! {
            biased;
            cut = director => Some(cut),
            walked = run_steps => {
                match walked {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => broken.push(why),
                    Err(_) => broken.push(self.restless()),
                }
                None
            }
        };
        if let Some(Cut::Deleted) = cut {
            let gone = timeout(self.rehearsal.patience, self.rest("the deletion"));
            match gone.await {
                Ok(rest) if rest.place.is_some() => {
                    broken.push(format!("deleted, but still there: {}", shown(&rest)));
                }
                Ok(_) => {}
                Err(_) => broken.push(self.restless()),
            }
        }
        let took = self.began.elapsed();
        let course = self.course(mark, took);
        if broken.is_empty() && !self.has_happened() {
            broken.push(DIFFERS.to_owned());
        }
        if broken.is_empty() {
            if timeout(self.rehearsal.patience, self.others_rest())
                .await
                .is_err()
            {
                broken.push("other objects of the kind do not come to rest".to_owned());
            }
            let before = self.server.mark();
            sleep(SILENCE).await;
            broken.extend(self.noises(before));
        }
        broken.extend(self.ended_operators().await);
        if self.plan == RehearsalPlan::Undisturbed {
            broken.extend(self.missing_random());
        }
        let effects = self.rehearsal.effects.as_ref();
        let attempts = self.attempts.lock();
        EndedRun {
            course,
            rests,
            attempts: attempts.clone(),
            effects: effects.map_or_else(Vec::new, |effects| effects(&self.app)),
            server: self.server.clone(),
            last_state: self.last_state(),
            plural: A::Resource::plural(&()).into_owned(),
            plan: self.plan.clone(),
            broken,
        }
    }

    /// Returns whether the planned fault has happened.
    fn has_happened(&self) -> bool {
        match self.plan {
            RehearsalPlan::Undisturbed | RehearsalPlan::Two => true,
            RehearsalPlan::Attempt { attempt, .. } => self.count.load(Ordering::Relaxed) >= attempt,
            RehearsalPlan::Crash { .. }
            | RehearsalPlan::Unanswered { .. }
            | RehearsalPlan::Refused { .. }
            | RehearsalPlan::Event { .. }
            | RehearsalPlan::Past { .. }
            | RehearsalPlan::Restart { .. }
            | RehearsalPlan::Deletion { .. } => self.happened.load(Ordering::Relaxed),
        }
    }

    fn start(&self, client: Client) {
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        let (attempts, count) = (Arc::clone(&self.attempts), Arc::clone(&self.count));
        let planned = match self.plan {
            RehearsalPlan::Attempt { attempt, fault } => Some((attempt, fault)),
            _ => None,
        };
        let test_hooks = TestHooks::default().attempts(move |attempt| {
            let number = count.fetch_add(1, Ordering::Relaxed) + 1;
            let begun = BegunAttempt {
                attempt: attempt.clone(),
                at: Instant::now(),
                start,
            };
            let mut attempts = attempts.lock();
            attempts.push(begun);
            match planned {
                Some((planned, fault)) if planned == number => fault,
                _ => AttemptFault::Runs,
            }
        });
        let client = (self.rehearsal.through)(client);
        let usual = Operator::new(client, self.app.clone());
        let mut operator = (self.rehearsal.operator)(usual)
            .virtual_time()
            .__test_hooks(test_hooks);
        if matches!(self.plan, RehearsalPlan::Past { .. }) {
            // Only a streamed list may show the past; a paged list is read from the store.
            operator = operator.streaming_lists();
        }
        let run = tokio::spawn(async move {
            match operator.run(std::future::pending()).await {
                Ok(()) => "it has stopped".to_owned(),
                Err(error) => error.to_string(),
            }
        });
        let mut operators = self.operators.lock();
        operators.push(run);
    }

    fn take_operators(&self) -> Vec<JoinHandle<String>> {
        let mut operators = self.operators.lock();
        std::mem::take(&mut *operators)
    }

    /// Ends all operators and their work, as SIGKILL would.
    async fn kill(&self) {
        for operator in self.take_operators() {
            operator.abort();
            let _ = operator.await;
        }
    }

    async fn restart(&self) {
        self.kill().await;
        self.start(self.server.client_named(OPERATOR));
    }

    /// Stops all operators and returns why operators had ended by themselves.
    async fn ended_operators(&self) -> Vec<String> {
        let mut ended = Vec::new();
        for operator in self.take_operators() {
            if operator.is_finished() {
                ended.push(match operator.await {
                    Ok(why) => format!("an operator ended: {why}"),
                    Err(error) => format!("an operator ended: {error}"),
                });
            } else {
                operator.abort();
            }
        }
        ended
    }

    /// Injects the planned fault; completes only if the fault ends the run.
    fn direct(&self) -> impl Future<Output = Cut> {
        let server = self.server.clone();
        let plural = A::Resource::plural(&()).into_owned();
        let writes = |write: u64, after: bool, fault: Fault| {
            let fault = fault.client(OPERATOR).on_writes().nth(write);
            server.inject(if after { fault.after_commit() } else { fault })
        };
        // Marks the moment of a change; the delay of its response is harmless.
        let change = |number: usize| {
            let moment = Fault::delay(Duration::from_millis(1)).after_commit();
            let number = u64::try_from(number).unwrap_or(u64::MAX);
            server.inject(moment.on_writes().resource(&plural).nth(number))
        };
        let struck = match &self.plan {
            RehearsalPlan::Undisturbed | RehearsalPlan::Two | RehearsalPlan::Attempt { .. } => None,
            RehearsalPlan::Crash { write, after } | RehearsalPlan::Unanswered { write, after } => {
                Some(writes(*write, *after, Fault::no_answer()))
            }
            RehearsalPlan::Refused { write, how } => {
                let fault = match how {
                    PlannedRefusal::Conflict => Fault::conflict(),
                    PlannedRefusal::Unavailable => Fault::unavailable(),
                    PlannedRefusal::TooMany => Fault::too_many_requests(Duration::from_secs(1)),
                };
                Some(writes(*write, false, fault))
            }
            RehearsalPlan::Event { event, becomes } => {
                let fault = match becomes {
                    Becomes::Lost => Fault::drop_event(),
                    Becomes::Merged => Fault::merge_events(Duration::from_secs(2)),
                    Becomes::Doubled => Fault::repeat_event(),
                    Becomes::Broken => Fault::break_stream(),
                    Becomes::Expired => Fault::expire_stream(),
                };
                if *becomes == Becomes::Lost {
                    // A bookmark would hide the lost event from the client.
                    server.inject(Fault::withhold_bookmarks().client(OPERATOR));
                }
                let fault = fault.client(OPERATOR).resource(&plural).nth(*event);
                Some(server.inject(fault))
            }
            RehearsalPlan::Past { at, .. } | RehearsalPlan::Deletion { at } => Some(change(*at)),
            RehearsalPlan::Restart { after, .. } => Some(change(*after)),
        };
        async move {
            if let Some(struck) = struck {
                struck.struck_at_least(1).await;
                self.happened.store(true, Ordering::Relaxed);
                if let Some(cut) = self.struck().await {
                    return cut;
                }
            }
            std::future::pending().await
        }
    }

    /// Does what the plan requires after its fault has struck.
    async fn struck(&self) -> Option<Cut> {
        match self.plan {
            RehearsalPlan::Crash { .. } => self.restart().await,
            RehearsalPlan::Event {
                becomes: Becomes::Lost,
                ..
            } => {
                // A healthy server never hides a change permanently: force a new list.
                sleep(Duration::from_secs(5)).await;
                // Events of other objects may have come since, so that the version of the watch is new.
                let gone = Fault::gone().on(Verb::Watch).client(OPERATOR);
                let plural = A::Resource::plural(&());
                self.server.inject(gone.resource(&plural).times(1));
                self.server.end_watches();
            }
            RehearsalPlan::Past { shown, .. } => {
                self.kill().await;
                let replica = self.server.replica("past");
                replica.freeze_at(self.version_of(shown));
                self.start(replica.client_named(OPERATOR));
                sleep(PAST).await;
                replica.release();
            }
            RehearsalPlan::Restart { wait, .. } => {
                sleep(wait).await;
                self.restart().await;
            }
            RehearsalPlan::Deletion { .. } => {
                // The object may be gone already.
                let _ = self.delete().await;
                return Some(Cut::Deleted);
            }
            RehearsalPlan::Undisturbed
            | RehearsalPlan::Unanswered { .. }
            | RehearsalPlan::Refused { .. }
            | RehearsalPlan::Event { .. }
            | RehearsalPlan::Attempt { .. }
            | RehearsalPlan::Two => {}
        }
        None
    }

    /// Returns the version that a change committed.
    fn version_of(&self, change: usize) -> u64 {
        let changes = Self::changes(self.server.requests());
        let made = changes.get(change - 1).and_then(|(_, version)| *version);
        made.unwrap_or_default()
    }

    /// Returns every write request for the object by any client, in order: its time, and the version it committed.
    fn changes(requests: Vec<RequestRecord>) -> Vec<(Instant, Option<u64>)> {
        let plural = A::Resource::plural(&());
        requests
            .into_iter()
            .filter(|request| request.is_write() && request.resource == plural)
            .map(|write| (write.at, write.committed))
            .collect()
    }

    /// Takes the object through all steps; returns an error if a step fails.
    async fn run_steps(&self, rests: &mut Vec<Rest>) -> Result<(), String> {
        let object: DynamicObject = serde_json::from_value(self.rehearsal.object.clone())
            .map_err(|error| format!("no object: {error}"))?;
        if self.name.is_empty() {
            return Err("the object has no name".to_owned());
        }
        let created = self.objects.create(&PostParams::default(), &object).await;
        created.map_err(|error| format!("the object was refused: {error}"))?;
        rests.push(self.rest("the creation").await);
        for step in &self.rehearsal.steps {
            let done = match step {
                RehearsalStep::Patch(patch) => {
                    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
                    let patched = self.objects.patch(&self.name, &params, &patch);
                    patched.await.map(drop)
                }
                RehearsalStep::Request { kind, name, args } => {
                    self.request(kind, name, args).await?;
                    Ok(())
                }
                RehearsalStep::Happens(_, what) => {
                    what(&self.app);
                    Ok(())
                }
                RehearsalStep::Delete => self.delete().await,
            };
            done.map_err(|error| format!("{step} was refused: {error}"))?;
            rests.push(self.rest(&step.to_string()).await);
        }
        Ok(())
    }

    /// Returns how long an object that is at rest has not changed.
    fn quiet(&self) -> Duration {
        let longest = StateOf::<A>::GRAPH
            .iter()
            .filter(|(_, state)| !state.is(okt_core::Mark::Leaf))
            .filter_map(|(id, _)| StateOf::<A>::from_id(id))
            .map(|state| self.app.observe_every(state))
            .max();
        // What an observation leads to follows soon.
        longest.unwrap_or_default().saturating_add(SOON).max(QUIET)
    }

    /// Waits until the object is at rest.
    async fn rest(&self, after: &str) -> Rest {
        let quiet = self.quiet();
        let mut pause = Duration::from_millis(200);
        let mut last: Option<(Option<u64>, Instant)> = None;
        loop {
            // Read from the store: a request would cost more than the rest of the run.
            let newest = self.newest();
            let version = newest.as_ref().map(|newest| newest.version);
            let since = match last {
                Some((before, since)) if before == version => since,
                Some(_) | None => Instant::now(),
            };
            last = Some((version, since));
            if since.elapsed() >= quiet {
                let object = newest
                    .filter(|it| it.kind != EventKind::Deleted)
                    .map(|newest| newest.object());
                if object.as_ref().is_none_or(is_settled) && self.are_requests_settled() {
                    return Rest {
                        after: after.to_owned(),
                        place: object.map(|object| {
                            let requests = self.requests();
                            place(&object, &self.owned(&object), &requests)
                        }),
                    };
                }
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(Duration::from_secs(15));
        }
    }

    /// Returns the owned resources of an object by plural, namespace and name: what somebody wrote of them, without
    /// metadata, status and what is random.
    fn owned(&self, owner: &Value) -> Map<String, Value> {
        let versions = self.server.versions();
        let newest: BTreeMap<_, _> = versions
            .iter()
            .map(|it| ((&it.group, &it.resource, &it.namespace, &it.name), it))
            .collect();
        let there = newest
            .into_values()
            .filter(|it| it.kind != EventKind::Deleted);
        there
            .map(|it| (it, it.object()))
            .filter(|(_, object)| {
                object["metadata"]["labels"][OWNER_LABEL] == owner["metadata"]["uid"]
            })
            .map(|(it, object)| {
                let mut object = written::part(&object);
                if let Some(fields) = object.as_object_mut() {
                    fields.retain(|name, _| !matches!(name.as_str(), "metadata" | "status"));
                }
                let name = format!("{}/{}", it.resource, it.name);
                let kind = match it.group.split('.').next() {
                    None | Some("") => it.resource.clone(),
                    Some(group) => format!("{}.{group}", it.resource),
                };
                let parts = [&*kind, &*it.namespace, &*it.name];
                let place = parts.into_iter().filter(|part| !part.is_empty());
                let place = place.collect::<Vec<_>>().join("/");
                for (index, (resource, pointer)) in self.rehearsal.random.iter().enumerate() {
                    if *resource == name
                        && let Some(value) = object.pointer_mut(pointer)
                    {
                        *value = "random".into();
                        self.found_random.lock().insert(index);
                    }
                }
                (place, object)
            })
            .collect()
    }

    /// Returns which random values no owned resource had.
    fn missing_random(&self) -> Vec<String> {
        let found = self.found_random.lock();
        let all = self.rehearsal.random.iter().enumerate();
        let missing = all.filter(|(index, _)| !found.contains(index));
        missing
            .map(|(_, (resource, pointer))| {
                format!("no owned resource {resource} has a value at {pointer}: correct `random`")
            })
            .collect()
    }

    /// Makes a request for the object.
    async fn request(&self, kind: &str, name: &str, args: &Value) -> Result<(), String> {
        let served = A::requests(Requests::default()).kinds.into_iter();
        let mut served = served.filter(|it| it.kind.api.kind == kind);
        let served = served
            .next()
            .ok_or_else(|| format!("the application serves no {kind}"))?;
        let client = self.server.client();
        let requests: Api<DynamicObject> = match self.objects.namespace() {
            Some(namespace) => Api::namespaced_with(client, namespace, &served.kind.api),
            None => Api::all_with(client, &served.kind.api),
        };
        let mut request = DynamicObject::new(name, &served.kind.api);
        request.data = json!({ "spec": { "target": { "name": self.name }, "args": args } });
        let made = requests.create(&PostParams::default(), &request).await;
        made.map(drop)
            .map_err(|error| format!("the request {kind}/{name} was refused: {error}"))
    }

    /// Returns the requests so far: the outcome and the result of each, by its name.
    fn requests(&self) -> BTreeMap<String, Value> {
        let steps = self.rehearsal.steps.iter();
        let asked = steps.filter_map(|step| match step {
            RehearsalStep::Request { kind, name, .. } => Some((kind, name)),
            _ => None,
        });
        asked
            .filter_map(|(kind, name)| {
                let versions = self.server.versions();
                let of_name = versions.name(name);
                let mut newest = of_name.iter().rev().map(Version::object);
                let newest = newest.find(|it| it["kind"] == **kind)?;
                let status = &newest["status"];
                let shown = json!({ "outcome": status["outcome"], "result": status["result"] });
                Some((format!("{kind}/{name}"), shown))
            })
            .collect()
    }

    /// Returns whether each request so far has an outcome, or waits.
    fn are_requests_settled(&self) -> bool {
        let requests = self.requests();
        let mut outcomes = requests.values().map(|it| it["outcome"].as_str());
        outcomes.all(|outcome| outcome.is_some_and(|it| it != "Running"))
    }

    async fn delete(&self) -> kube::Result<()> {
        let params = DeleteParams::default();
        self.objects.delete(&self.name, &params).await.map(drop)
    }

    /// Waits until the objects of the kind are at rest that other parts of the cluster have made.
    async fn others_rest(&self) {
        // The last version of them all; none where one is not settled.
        let settled_at = || {
            let versions = self.server.versions().resource(&A::Resource::plural(&()));
            let others = versions.iter().filter(|it| it.name != self.name);
            let newest: BTreeMap<_, _> = others.map(|it| (&it.name, it)).collect();
            newest.values().try_fold(0, |last, it| {
                let rests = it.kind == EventKind::Deleted || is_settled(&it.object());
                rests.then(|| last.max(it.version))
            })
        };
        loop {
            let before = settled_at();
            if before == Some(0) {
                return;
            }
            sleep(self.quiet()).await;
            if before.is_some() && before == settled_at() {
                return;
            }
        }
    }

    /// Returns the newest version of the object, which may be a deletion.
    fn newest(&self) -> Option<Version> {
        let versions = self.server.versions().resource(&A::Resource::plural(&()));
        versions.name(&self.name).iter().next_back().cloned()
    }

    fn restless(&self) -> String {
        let object = self.newest().map(|it| it.object()).unwrap_or_default();
        let hours = self.rehearsal.patience.as_secs_f64() / 3600.0;
        let status = json!({
            "metadata": { "generation": object["metadata"]["generation"] },
            "status": object["status"],
        });
        format!("does not come to rest within {hours} h: {status}")
    }

    /// Returns the writes of the operators while the object is at rest.
    fn noises(&self, since: Mark) -> Vec<String> {
        let requests = self.server.requests_since(since).into_iter();
        let writes = requests.filter(|request| request.client == OPERATOR && request.is_write());
        writes
            .map(|write| format!("at rest, and yet: {write}"))
            .collect()
    }

    /// Returns the last state on record of the object, which may be gone.
    fn last_state(&self) -> Option<String> {
        let object = self.newest()?.object();
        Some(object["status"]["lifecycle"]["state"].as_str()?.to_owned())
    }

    fn course(&self, since: Mark, took: Duration) -> Course {
        let requests = self.server.requests_since(since);
        let plural = A::Resource::plural(&());
        let sent = self.server.events_since(since).into_iter();
        let events = sent.filter(|event| {
            let is_bookmark = event.kind == EventKind::Bookmark;
            event.client == OPERATOR && event.resource == plural && !is_bookmark
        });
        Course {
            writes: writes::of(&self.server, OPERATOR, &plural, since, self.began),
            events: events.count() as u64,
            attempts: self.count.load(Ordering::Relaxed),
            changes: Self::changes(requests)
                .into_iter()
                .map(|(at, version)| (at.duration_since(self.began), version.is_some()))
                .collect(),
            took,
        }
    }
}

fn conditions(object: &Value) -> &[Value] {
    let conditions = object["status"]["conditions"].as_array();
    conditions.map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether the object is ready or stalled for its current generation.
fn is_settled(object: &Value) -> bool {
    let generation = &object["metadata"]["generation"];
    let conditions = conditions(object);
    let is = |name: &str| {
        conditions.iter().any(|condition| {
            condition["type"] == name
                && condition["status"] == "True"
                && condition["observedGeneration"] == *generation
        })
    };
    is("Ready") || is("Stalled")
}

/// Returns the part of an object that must be the same in every run.
fn place(object: &Value, owned: &Map<String, Value>, requests: &BTreeMap<String, Value>) -> Value {
    let lifecycle = &object["status"]["lifecycle"];
    let conditions: Vec<_> = conditions(object)
        .iter()
        .map(|condition| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            format!("{}={} {}", text("type"), text("status"), text("reason"))
        })
        .collect();
    json!({
        "state": lifecycle["state"],
        "trail": lifecycle["trail"],
        "desired": lifecycle["desired"]["state"],
        "reached": lifecycle["desired"]["reached"],
        "visit": lifecycle["visit"]["outcome"],
        "conditions": conditions,
        "requests": requests,
        "owned": owned,
    })
}

/// Formats a place for a report.
fn shown(rest: &Rest) -> String {
    rest.place
        .as_ref()
        .map_or_else(|| "gone".to_owned(), Value::to_string)
}
