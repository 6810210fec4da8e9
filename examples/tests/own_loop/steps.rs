//! Single reconciliations, step by step, without a controller around them.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use okt::lifecycle::{Effect, Memory, Reconciliation, Recorded, Verdict, Work, Write, recorded};
use okt::{Answer, Failure, Lifecycle, Observation};
use serde_json::json;

use crate::own_loop::{Notice, NoticeState};
use crate::place::Place;

/// A reconciliation that a test carries out.
struct Steps {
    notices: Api<Notice>,
    now: Reconciliation<Notice>,
}

impl Steps {
    async fn begin(place: &Place, memory: &Memory<Notice>) -> Self {
        let notice = place.notices.get("welcome").await.expect("a notice");
        Self {
            notices: place.notices.clone(),
            now: Reconciliation::of(memory, Arc::new(notice)),
        }
    }

    async fn write(&mut self, write: &Write<Notice>) {
        let answer = write.send(&self.notices, "notices").await;
        self.now
            .patched(answer.expect("accepted"))
            .expect("recorded");
    }

    /// Carries out all effects up to the next work, or up to rest.
    async fn next(&mut self) -> Result<Work<Notice>, Option<Duration>> {
        loop {
            match self.now.decide() {
                Effect::Observe => self.now.observed(Observation::unobserved()),
                Effect::Write(write) => self.write(&write).await,
                Effect::Work(work) => return Ok(work),
                Effect::Rest(time) => return Err(time),
            }
        }
    }

    async fn work(&mut self) -> Work<Notice> {
        self.next().await.expect("work")
    }

    fn ended(&mut self, answer: Answer) {
        self.now.ended(Ok::<_, Failure>(answer));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_kept_and_ends_with_the_next_event() {
    let place = Place::without_controller().await;
    place.create("hello").await;
    let memory = Memory::new().virtual_time();
    let mut steps = Steps::begin(&place, &memory).await;
    let work = steps.work().await;
    steps.ended(Answer::Wait(Duration::from_mins(10)));
    assert_eq!(
        steps.next().await.expect_err("rest"),
        Some(Duration::from_mins(10))
    );
    drop(steps);
    // Whatever led to the next reconciliation may be what the handler waits for.
    let mut steps = Steps::begin(&place, &memory).await;
    let again = steps.work().await;
    assert_eq!((again.id(), again.attempt()), (work.id(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_time_whatever_happens_meanwhile() {
    let place = Place::without_controller().await;
    place.create("hello").await;
    let memory = Memory::new().virtual_time();
    let mut steps = Steps::begin(&place, &memory).await;
    let work = steps.work().await;
    let failure = Failure::retry("NoPaper", "there is no paper");
    steps.now.ended(Err(failure));
    let wait = steps.next().await.expect_err("rest").expect("a time");
    drop(steps);
    tokio::time::sleep(wait / 2).await;
    let mut steps = Steps::begin(&place, &memory).await;
    let left = steps.next().await.expect_err("rest").expect("a time");
    assert!(left <= wait / 2, "{left:?} of {wait:?}");
    drop(steps);
    tokio::time::sleep(left).await;
    let mut steps = Steps::begin(&place, &memory).await;
    let again = steps.work().await;
    assert_eq!((again.id(), again.attempt()), (work.id(), 2));
    assert!(!again.resumed());
    // Without the memory it is as after a restart.
    let mut steps = Steps::begin(&place, &Memory::new()).await;
    let again = steps.work().await;
    assert_eq!((again.id(), again.resumed()), (work.id(), true));
}

#[tokio::test(start_paused = true)]
async fn work_does_not_begin_for_a_position_that_the_answer_does_not_have() {
    let place = Place::without_controller().await;
    place.create("hello").await;
    let memory = Memory::new().virtual_time();
    let mut steps = Steps::begin(&place, &memory).await;
    loop {
        match steps.now.decide() {
            Effect::Write(write) if write.status().is_some() => {
                assert!(matches!(write.verdict(), Some(Verdict::Go(_))));
                break;
            }
            Effect::Write(write) => steps.write(&write).await,
            Effect::Observe => steps.now.observed(Observation::unobserved()),
            effect => panic!("{effect:?}"),
        }
    }
    // A webhook dropped the status.
    let answer = place.notices.get("welcome").await.expect("a notice");
    let error = steps
        .now
        .patched(answer)
        .expect_err("it lacks the position");
    assert_eq!(
        error.to_string(),
        "record a status: the answer has no `lifecycle`"
    );
    let again = steps.now.decide();
    assert!(matches!(again, Effect::Write(write) if write.status().is_some()));
}

#[tokio::test(start_paused = true)]
async fn leftovers_of_others_are_removed_and_their_own_conditions_stay() {
    let place = Place::without_controller().await;
    place.create("hello").await;
    let condition = |name: &str| {
        json!({
            "type": name, "status": "True", "reason": "Other", "message": "",
            "lastTransitionTime": "2026-11-22T09:00:00Z",
        })
    };
    let status = json!({
        "apiVersion": "demo.okt.dev/v1",
        "kind": "Notice",
        "status": { "conditions": [condition("Reconciling"), condition("Signed")] },
    });
    let params = PatchParams::apply("others");
    let status = Patch::Apply(status);
    let applied = place
        .notices
        .patch_status("welcome", &params, &status)
        .await;
    applied.expect("accepted");
    let memory = Memory::new().virtual_time();
    let mut steps = Steps::begin(&place, &memory).await;
    steps.work().await;
    steps.ended(Answer::Next);
    assert_eq!(steps.next().await.expect_err("rest"), None);
    assert_eq!(place.condition("Ready").await, "True");
    assert_eq!(place.condition("Signed").await, "True");
    assert_eq!(place.condition("Reconciling").await, "");
    // It comes to rest.
    drop(steps);
    let mut steps = Steps::begin(&place, &memory).await;
    let version = place
        .notices
        .get("welcome")
        .await
        .expect("a notice")
        .metadata
        .resource_version;
    assert_eq!(steps.next().await.expect_err("rest"), None);
    let after = place
        .notices
        .get("welcome")
        .await
        .expect("a notice")
        .metadata
        .resource_version;
    assert_eq!(after, version);
}

#[tokio::test(start_paused = true)]
async fn a_status_converts_to_the_record_that_decisions_are_made_from() {
    let place = Place::without_controller().await;
    place.create("hello").await;
    let memory = Memory::new().virtual_time();
    let mut steps = Steps::begin(&place, &memory).await;
    assert_eq!(*steps.now.recorded(), Recorded::Nothing);
    steps.work().await;
    let notice = place.notices.get("welcome").await.expect("a notice");
    assert_eq!(recorded(notice.status.as_ref()), *steps.now.recorded());
    assert_eq!(steps.now.state(), Some(NoticeState::Posting));
    let decided =
        okt::lifecycle::decide(NoticeState::GRAPH, steps.now.recorded(), &steps.now.facts());
    assert!(matches!(decided, Verdict::Run(_)), "{decided:?}");
}
