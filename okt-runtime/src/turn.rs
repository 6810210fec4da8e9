//! One turn of one object: observe, decide, report, act.
//!
//! ```text
//!   the object, from the cache
//!        │  older than the own last write? not ready, not leading? ──▶ nothing
//!        ▼
//!   observe   ask the application where it is              (not in a turn that takes a result)
//!        ▼
//!   decide    record + facts ──▶ decision ──▶ next record   (okt-core; no I/O, no clock)
//!        ▼
//!   pass      walk through the pass, where there is one     (without a lifecycle this and `report` are all)
//!        ▼
//!   report    one PATCH of the status, if anything is new   (position first: a no means no act)
//!        ▼
//!   act       start the work beside the reconciler, or drop the finalizer
//!        ▼
//!   when to look again
//! ```

mod alone;
mod pass;
mod prelude;

use std::sync::Arc;
use std::time::Duration;

use kube::{Resource, ResourceExt};
use okt_core::decide::{Decision, Ending, Stand, decide};
use okt_core::facts::Facts;
use okt_core::record::Recorded;
use okt_core::{Lifecycle, Mark, StateId, reasons};
use serde_json::Value;
use tokio::time::Instant;

use self::prelude::Prelude;
use crate::act::Actor;
use crate::again::{Again, again};
use crate::annotations;
use crate::application::{Application, ExtraOf, StateOf};
use crate::asked::Asker;
use crate::backdoor::Flaw;
use crate::cached::{Cached, PlaceOf};
use crate::change::{Change, change, is_about_resources};
use crate::context::Context;
use crate::failure::Failure;
use crate::finalizer;
use crate::guarded::Guarded;
use crate::leftover::removal;
use crate::look::{Look, extra, look};
use crate::memory::{Inner, Known, Stage, Trouble};
use crate::object::{LifecycleObject, LifecycleSpec, has_lifecycle};
use crate::read;
use crate::refusal::unwritten_object;
use crate::report::{self, Report};
use crate::resources::{Leave, Settlement};
use crate::shared::Shared;
use crate::status::{Position, RecordedFailure, Status};
use crate::tend;
use crate::texts::chain;
use crate::undecodable::undecodable;

/// How long until an object is looked at again whose next event must come, in case it does not.
const SAFETY: Duration = Duration::from_mins(1);

/// Brings one object on its way, and says when to look again.
pub(crate) async fn turn<A: Application>(
    shared: Arc<Shared<A>>,
    stored: &Cached<A::Resource>,
    place: &PlaceOf<A::Resource>,
) -> Again {
    let uid = stored.meta().uid.as_deref().unwrap_or_default();
    if !shared.may_act() {
        shared.places.leave(uid);
        return Again::on_change();
    }
    let known = shared.memory.of(uid);
    let again = turn_of(&shared, stored, place, &known).await;
    shared.memory.end_turn(uid, &known);
    again
}

async fn turn_of<A: Application>(
    shared: &Arc<Shared<A>>,
    stored: &Cached<A::Resource>,
    place: &PlaceOf<A::Resource>,
    known: &Arc<Known>,
) -> Again {
    let uid = stored.meta().uid.as_deref().unwrap_or_default();
    let mut inner = known.inner.lock().await;
    let again = reconcile(shared, stored, place, known, &mut inner).await;
    if !inner.waits_for_place() {
        shared.places.leave(uid);
    }
    again
}

async fn reconcile<A: Application>(
    shared: &Arc<Shared<A>>,
    stored: &Cached<A::Resource>,
    place: &PlaceOf<A::Resource>,
    known: &Arc<Known>,
    inner: &mut Inner,
) -> Again {
    let uid = stored.meta().uid.as_deref().unwrap_or_default();
    if known.take_rewinding() {
        inner.rewind();
    }
    if inner.released || (shared.draining.is_cancelled() && !inner.is_at_work()) {
        return Again::on_change();
    }
    if inner.is_behind(stored.meta().resource_version.as_deref()) {
        let since = *inner.behind.get_or_insert_with(Instant::now);
        if since.elapsed() >= SAFETY {
            shared.history.doubt();
        }
        return Again::after(SAFETY);
    }
    inner.behind = None;
    if known.take_reopening() {
        inner.trouble = Trouble::default();
        inner.walks.echo = false;
    }
    let deleting = stored.meta().deletion_timestamp.is_some();
    if deleting && !finalizer::is_set(stored.meta()) {
        // Others may still hold the object; nothing of it is ours any more.
        inner.leave();
        inner.released = true;
        return Again::on_change();
    }
    let object = match inner.take_written(stored.meta().resource_version.as_deref()) {
        Some(object) => object,
        None => match stored.object() {
            Ok(object) => object,
            Err(error) => return undecodable(shared, stored, &error, inner).await,
        },
    };
    inner.undecodable = None;
    shared.cluster.note_recorded(&object);
    if let Some(wait) = inner.trouble.wait(object.meta()) {
        return Again::after(wait);
    }
    if is_newer(shared, &object) {
        // A newer operator's object is not touched.
        return Again::on_change();
    }
    let object = if finalizer::is_set(object.meta()) || !shared.finalizes() {
        object
    } else {
        match finalizer::add(&shared.client, &object).await {
            Ok(object) => {
                inner.seen.clone_from(&object.meta().resource_version);
                inner.trouble = Trouble::default();
                // What had it dropped may have changed the spec as well.
                inner.walks.echo = false;
                object
            }
            Err(error) => return unwritten_object(shared, inner, &object, &error).await,
        }
    };
    let turn = Turn {
        shared,
        place,
        known,
        inner,
        cx: shared.context(Arc::clone(&object)),
        object,
        uid,
        deleting,
    };
    if has_lifecycle::<A::Resource>() {
        turn.take().await
    } else {
        turn.walk().await
    }
}

/// Whether the state on record is one that the CRD knows and this operator does not.
fn is_newer<A: Application>(shared: &Shared<A>, object: &A::Resource) -> bool {
    let status = object.status_of();
    let position = status.and_then(|status| status.lifecycle.as_ref());
    position.is_some_and(|position| {
        let crd = shared.readiness.borrow();
        position.state.known().is_none() && crd.knows(position.state.as_str())
    })
}

type StatusOf<A> = Status<StateOf<A>, ExtraOf<A>>;

struct Turn<'a, A: Application> {
    shared: &'a Arc<Shared<A>>,
    place: &'a PlaceOf<A::Resource>,
    known: &'a Arc<Known>,
    inner: &'a mut Inner,
    cx: Context<A::Resource>,
    object: Arc<A::Resource>,
    uid: &'a str,
    deleting: bool,
}

impl<'a, A: Application> Turn<'a, A> {
    async fn take(mut self) -> Again {
        let graph = StateOf::<A>::GRAPH;
        let revision = read::revision(&A::revision(&self.object));
        let recorded = read::record(self.position(), self.is_deletion_known(), revision);
        self.inner.heed_record(self.in_flight(&recorded).as_deref());
        let poked = self.take_poke();

        let look = self.observe(&recorded).await;
        let facts = self.facts(&look, revision);
        let mut decision = decide(graph, &recorded, &facts);
        if decision == Decision::Stand(Stand::HandsOff) {
            // A newer operator's object is not touched.
            return Again::on_change();
        }
        self.shared.cluster.note_references(&self.object);
        let releases = decision == (Decision::Release { abandoned: false });
        let prelude = self.prelude(&recorded, releases, poked).await;
        // What nobody else deletes goes first.
        let clearing = releases
            && (prelude.hold.is_some()
                || self.shared.may_act() && !self.clear(prelude.put.clone()).await);
        if prelude.hold.is_some() && releases {
            self.inner.tended.put_off();
        }
        if clearing {
            // The last work is over, and is not begun again meanwhile.
            decision = if self.inner.has_ended() {
                Decision::End(Ending::Well)
            } else {
                Decision::Stand(Stand::Settled)
            };
        }
        let after = recorded.after(graph, &facts, &decision);
        self.refuse_events(&recorded, &look);
        match decision {
            Decision::Release { abandoned } => return self.release(abandoned).await,
            Decision::Stand(_)
            | Decision::Go(_)
            | Decision::Run(_)
            | Decision::Retry { .. }
            | Decision::End(_) => {}
        }
        let acts_first = self.shared.backdoor.has(Flaw::ActsFirst);
        if acts_first && let Recorded::At(record) = &after {
            self.actor().act(record, &decision, false);
        }
        // What a state declares that is entered now comes after its position.
        let goes = matches!(decision, Decision::Go(_));
        if !goes && !clearing {
            self.tend(&after, &decision, &prelude).await;
        }
        let settlement = match &prelude.hold {
            Some(why) => Settlement::Failed(why.clone()),
            None => self.settlement(&after, &decision, clearing),
        };
        let progress = self.progress(&decision);
        let extra = self.extra().await;
        let report = Report {
            object: &*self.object,
            now: self.shared.clock.now(),
            after: &after,
            facts: &facts,
            decision: &decision,
            observed: &look.words,
            failed: self.failed(&decision),
            progress: progress.clone(),
            resources: &settlement,
            recorded_resources: self.recorded_resources(),
            of_pass: &prelude.conditions,
            extra,
            graph: &self.shared.graph,
        };
        let status = report.status();
        let side_waits = match self.publish(&status).await {
            Ok(side_waits) => side_waits,
            Err(again) => return again,
        };
        self.inner.held = matches!(decision, Decision::Stand(Stand::Paused | Stand::Braking(_)));
        if !side_waits && let Some(running) = &self.inner.running {
            running.progress.shown(&progress);
        }
        self.tell(&recorded, &after, &decision);
        if goes {
            self.tend(&after, &decision, &prelude).await;
        }
        // How it turned out is told by the next turn.
        let untold = goes && prelude.hold.is_none() && self.inner.tended.settlement != settlement;
        if !acts_first && let Recorded::At(record) = &after {
            // What is wrong with it must not keep an object that has to go.
            let held = !self.deleting
                && (!prelude.is_whole || self.inner.tended.settlement != Settlement::AsDeclared);
            self.actor().act(record, &decision, held);
        }
        if untold {
            return Again::after(Duration::ZERO);
        }
        again(
            &*self.shared.application,
            self.inner,
            &after,
            &facts,
            &decision,
            side_waits,
        )
    }

    /// Writes a status, if it is news; whether something of it waits to be written.
    ///
    /// # Errors
    ///
    /// Where it was not written: when to look again.
    async fn publish(&mut self, status: &StatusOf<A>) -> Result<bool, Again> {
        // Looking takes its time, and the lead may be lost meanwhile.
        if !self.shared.may_act() {
            return Err(Again::on_change());
        }
        let pass = self.shared.pass_graph();
        let write = match change(&*self.object, status, pass) {
            Change::None => return Ok(false),
            _ if self.is_in_vain(status) => return Ok(false),
            Change::Side => self.inner.may_write_side(),
            Change::Main => true,
        };
        if !write {
            return Ok(true);
        }
        let backdoor = &self.shared.backdoor;
        let newest = self.shared.history.newest();
        match report::write(&self.shared.client, &*self.object, status, backdoor).await {
            Ok(written) => {
                let version = written.meta().resource_version.as_deref();
                self.shared.history.wrote(version, newest);
                Ok(self.written(written, status).await)
            }
            Err(error) => {
                Err(unwritten_object(self.shared, self.inner, &self.object, &error).await)
            }
        }
    }

    /// Brings the cluster to what the state on record asks for.
    async fn tend(&mut self, after: &Recorded, decision: &Decision, prelude: &Prelude) {
        let state = after
            .at()
            .and_then(|record| StateOf::<A>::from_id(record.state));
        let kept_back = matches!(decision, Decision::Stand(Stand::Paused))
            || self.is_paused()
            || !prelude.is_whole;
        let (Some(state), false, true) = (state, kept_back, self.shared.may_start()) else {
            return self.inner.tended.pass_over();
        };
        let graph = StateOf::<A>::GRAPH;
        let leave = Leave {
            creates: !self.deleting,
            prunes: prelude.prunes && after.at().is_some_and(|record| record.may_prune(graph)),
        };
        let asker = self.asker();
        let (shared, tended) = (self.shared, &mut self.inner.tended);
        let beside = prelude.put.clone();
        tend::tend(shared, &asker, &self.cx, tended, state, leave, beside).await;
    }

    /// Whether somebody outside named the object: what waits may be asked again.
    fn take_poke(&mut self) -> bool {
        let poked = self.known.take_poke();
        if poked {
            self.inner.poked = true;
            self.inner.sight.silence.end();
        }
        poked
    }

    /// What asks the application.
    fn asker(&self) -> Asker<'a, A::Resource> {
        Asker {
            questions: &self.shared.questions,
            place: self.place,
            doubtful: self.inner.is_silent(),
        }
    }

    /// Asks the application what it adds to the status.
    async fn extra(&mut self) -> ExtraOf<A> {
        let asker = self.asker();
        let application = &*self.shared.application;
        extra(&asker, application, &self.cx, &mut self.inner.extra_silence).await
    }

    /// What is to be recorded of what the object owns: as before, where nobody has looked.
    fn recorded_resources(&self) -> Vec<String> {
        let before = || {
            self.object
                .status_of()
                .map(|it| it.recorded_resources.clone())
        };
        let now = self.inner.tended.to_record.clone();
        now.or_else(before).unwrap_or_default()
    }

    /// How what the object owns stands, as far as the status says.
    fn settlement(&self, after: &Recorded, decision: &Decision, clearing: bool) -> Settlement {
        if clearing {
            return self.inner.tended.settlement.clone();
        }
        if self.deleting {
            // Nothing waits for it.
            return Settlement::AsDeclared;
        }
        if self.is_paused() && !self.inner.tended.is_looked_at() {
            return self.settlement_before();
        }
        if !matches!(decision, Decision::Go(_)) {
            return self.inner.tended.settlement.clone();
        }
        // A state without work would be said to be reached before anything of it is there.
        let state = (after.at()).and_then(|record| StateOf::<A>::GRAPH.get(record.state));
        match state {
            Some(state)
                if state.is(Mark::Idle) && !self.shared.cluster.watches.owned.is_empty() =>
            {
                let what = format!("what {} asks for is not looked at yet", state.name);
                Settlement::Awaited(what)
            }
            Some(_) | None => Settlement::AsDeclared,
        }
    }

    /// The same as the status says: this process has not looked at what a paused object owns.
    fn settlement_before(&self) -> Settlement {
        let status = self.object.status_of();
        let said = |name: &str, status_is: &str| {
            let mut all = status.into_iter().flat_map(|status| &status.conditions);
            all.find(|it| it.type_ == name && it.status == status_is)
        };
        let unready = said("Ready", "False").filter(|it| is_about_resources(&it.reason));
        let Some(unready) = unready else {
            return Settlement::AsDeclared;
        };
        let (reason, message) = (&unready.reason, &unready.message);
        Settlement::Failed(match said("Stalled", "True") {
            Some(_) => Failure::permanent(reason, message),
            None => Failure::retry(reason, message),
        })
    }

    /// Whether a pause counts: deletion goes on all the same.
    fn is_paused(&self) -> bool {
        annotations::is_paused(self.object.meta()) && !self.deleting
    }

    fn position(&self) -> Option<&Position<StateOf<A>>> {
        self.object.status_of()?.lifecycle.as_ref()
    }

    fn is_deletion_known(&self) -> bool {
        let conditions = self.object.status_of().map(|status| &status.conditions);
        conditions.is_some_and(|conditions| {
            (conditions.iter()).any(|c| c.type_ == "Deleting" && c.status == "True")
        })
    }

    /// The id of the action that the record says is in flight.
    fn in_flight(&self, recorded: &Recorded) -> Option<String> {
        let record = recorded.at()?;
        let action = record.action?;
        (record.in_flight(StateOf::<A>::GRAPH))
            .then(|| read::action_id(self.position(), self.uid, record.transition, action.run))
    }

    /// Where the application is, unless that must not count.
    ///
    /// An observation that was begun before the work ended must not judge what the work has done, and in a
    /// leaf nothing is observed.
    async fn observe(&mut self, recorded: &Recorded) -> Look {
        let in_leaf = recorded
            .at()
            .and_then(|record| StateOf::<A>::GRAPH.get(record.state))
            .is_some_and(|state| state.is(Mark::Leaf));
        self.inner.catch_up();
        // A result that waits for the end of a pause is taken later; until then looking goes on.
        let taken = self.inner.has_ended() && !self.is_paused();
        if taken || in_leaf {
            return Look::nothing();
        }
        let asker = self.asker();
        let application = &*self.shared.application;
        let seen = look(&asker, application, &self.cx, &mut self.inner.sight).await;
        let ended_before = self.inner.has_ended();
        self.inner.catch_up();
        if self.inner.has_ended() && !ended_before {
            return Look::nothing();
        }
        seen
    }

    fn facts<'f>(&self, look: &'f Look, revision: u64) -> Facts<'f> {
        let desired = self.object.spec_of().lifecycle();
        let position = self.position();
        let recorded_attempt = position
            .and_then(|position| position.action.as_ref())
            .map_or(1, |action| action.attempt.max(1));
        Facts {
            wish: read::wish(
                desired,
                position.and_then(|position| position.desired.as_ref()),
            ),
            visit: read::visit(
                desired,
                position.and_then(|position| position.visit.as_ref()),
            ),
            generation: self.object.meta().generation.unwrap_or(0),
            revision,
            deleting: self.deleting,
            abandoned: annotations::is_abandoned(self.object.meta()),
            paused: annotations::is_paused(self.object.meta()),
            newer: is_newer(self.shared, &self.object),
            observed: look.observed,
            events: &look.events,
            owned: self.shared.cluster.owns_anything(self.object.meta()),
            task: self.inner.task(),
            attempt: self.inner.attempt.max(recorded_attempt),
            started_under: self.inner.started_under,
            in_state: self.in_state(),
            backoff: self.shared.backoff,
            seed: read::seed(self.uid),
        }
    }

    /// How long the object has been in its state.
    fn in_state(&self) -> Duration {
        let Some(position) = self.position() else {
            return Duration::ZERO;
        };
        let backdoor = &self.shared.backdoor;
        if backdoor.has(Flaw::TimersInMemory) {
            return backdoor.since_seen(self.uid, position.transition);
        }
        let since = position.since;
        since.map_or(Duration::ZERO, |since| self.shared.clock.since(since))
    }

    /// The failure that this turn takes, where it is news.
    fn failed(&self, decision: &Decision) -> Option<RecordedFailure> {
        if let Decision::End(Ending::Refused(to)) = decision {
            let to = StateOf::<A>::from_id(*to).map_or("Next", Lifecycle::name);
            return Some(RecordedFailure::new(
                reasons::NO_EDGE,
                &format!("the handler named `{to}`, to which no edge leads from here"),
            ));
        }
        let Stage::Ended(Err(failure)) = &self.inner.stage else {
            return None;
        };
        // Reasons that take turns would be a write per attempt.
        let uncounted = matches!(decision, Decision::Retry { counted: false });
        (!(uncounted && self.inner.has_told(failure.reason())))
            .then(|| RecordedFailure::new(failure.reason(), failure.message()))
    }

    fn progress(&self, decision: &Decision) -> String {
        match (decision, &self.inner.running) {
            (Decision::Go(_), _) | (_, None) => String::new(),
            // What runs or has run is the work before it.
            (_, Some(_)) if matches!(self.inner.stage, Stage::Held { .. }) => String::new(),
            (_, Some(running)) => running.progress.text(),
        }
    }

    /// Takes away what others left in the status, at most every ten seconds: they may put it there again.
    async fn tidy(&mut self, written: Guarded<A::Resource>, left: &Value) -> Guarded<A::Resource> {
        self.inner.tidied = Some(Instant::now());
        match report::take_away(&self.shared.client, written.meta(), left).await {
            Ok(tidied) => tidied,
            Err(error) => {
                tracing::warn!(
                    object = %self.object.name_any(),
                    "cannot take away what others left in the status: {}",
                    chain(&error)
                );
                written
            }
        }
    }

    /// Whether this was said to this version of the object before, and has changed nothing.
    fn is_in_vain(&self, status: &StatusOf<A>) -> bool {
        let version = &self.object.meta().resource_version;
        (self.inner.vain.as_ref())
            .is_some_and(|vain| vain.0 == *version && vain.1 == read::revision(status))
    }

    /// The server said yes: from now on the object is what it answered.
    ///
    /// What others left in it is taken away; whether that has to wait.
    async fn written(&mut self, written: Guarded<A::Resource>, said: &StatusOf<A>) -> bool {
        let pass = self.shared.pass_graph();
        let left =
            (written.get().ok()).and_then(|stored| removal::<A::Resource>(stored, said, pass));
        let (written, waits) = match left {
            Some(left) if self.inner.may_tidy() => (self.tidy(written, &left).await, false),
            Some(_) => (written, true),
            None => (written, false),
        };
        // A write that changes nothing although something differs is not said again to the same object.
        let version = &self.object.meta().resource_version;
        let vain = !waits && written.meta().resource_version == *version;
        self.inner.vain = vain.then(|| Box::new((version.clone(), read::revision(said))));
        self.inner.seen.clone_from(&written.meta().resource_version);
        self.inner.side_written = Some(Instant::now());
        self.inner.trouble = Trouble::default();
        // What was just written decodes; otherwise the next event says what is wrong.
        if let Some(object) = written.into_inner() {
            self.inner.written = Some(Arc::clone(&object) as _);
            self.object = object;
            self.cx = self.shared.context(Arc::clone(&self.object));
        }
        waits
    }

    /// An event that names no edge is refused: reported when it is new, so that it does not fill the log.
    fn refuse_events(&mut self, recorded: &Recorded, look: &Look) {
        let graph = StateOf::<A>::GRAPH;
        let Some(here) = recorded.at().map(|record| record.state) else {
            return;
        };
        let leads = |to: &StateId| {
            let state = graph.get(here);
            *to == here || state.is_some_and(|state| state.targets().any(|target| target == *to))
        };
        let refused: Vec<StateId> = (look.events.iter().copied())
            .filter(|event| !leads(event))
            .collect();
        if refused != self.inner.refused_events {
            for event in &refused {
                tracing::warn!(
                    object = %self.object.name_any(),
                    from = graph.name_of(here),
                    to = graph.name_of(*event),
                    "refused an event that the observation named: no edge leads there"
                );
            }
            self.inner.refused_events = refused;
        }
    }

    fn tell(&self, before: &Recorded, after: &Recorded, decision: &Decision) {
        let graph = StateOf::<A>::GRAPH;
        if let (Decision::Go(go), Some(record)) = (decision, after.at()) {
            let from = before.at().map_or("", |record| graph.name_of(record.state));
            let trail = self.position().map_or("", |position| &position.trail);
            tracing::info!(
                object = %self.object.name_any(),
                namespace = self.object.namespace().unwrap_or_default(),
                transition = record.transition,
                from,
                to = graph.name_of(go.to),
                cause = go.why.as_str(),
                trail,
                "transition"
            );
            self.shared.warn_of_jump(self.object.meta(), *go, from);
        }
        if let Decision::End(Ending::Refused(to)) = decision {
            tracing::error!(
                object = %self.object.name_any(),
                to = graph.name_of(*to),
                "a handler named a state that no edge leads to"
            );
        }
    }

    fn actor(&mut self) -> Actor<'_, A> {
        Actor {
            shared: self.shared,
            known: self.known,
            inner: self.inner,
            cx: &self.cx,
        }
    }

    /// Drops the finalizer: the application is gone, or somebody gave it up.
    async fn release(&mut self, abandoned: bool) -> Again {
        if !self.shared.may_act() {
            return Again::on_change();
        }
        let state = self.cx.state().map_or("", Lifecycle::name);
        let meta = self.object.meta();
        match finalizer::release(self.shared, meta, self.inner, state, abandoned).await {
            Ok(()) => Again::on_change(),
            Err(error) => unwritten_object(self.shared, self.inner, &self.object, &error).await,
        }
    }
}
