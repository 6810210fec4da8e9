//! Each rule of `docs/sidecar.md`, and the invariants after any sequence of requests.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::actor::requests::begun;
use super::super::memory::{AgentMemory, MemoryChange, Remembered};
use super::{
    Acknowledged, Cancelled, EPOCH_LIMIT, REMEMBERED_LIMIT, RuleInput, RuleVerdict, acknowledged,
    asked, cancelled,
};
use crate::wire::{
    Acknowledgement, ActionId, ActionRequest, Code, Fence, ObjectRef, Owner, Phase, Problem, Seen,
};
use crate::work::Offer;

/// The verdict on a request that begins a first attempt.
const FIRST: Result<RuleVerdict, Problem> = Ok(RuleVerdict::Begin { attempt: 1 });

fn id(text: &str) -> ActionId {
    text.parse().unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn owner(uid: &str, created_at: i64) -> Owner {
    Owner {
        uid: uid.to_owned(),
        created_at: at(created_at),
        name: "orders".to_owned(),
        namespace: "shop".to_owned(),
    }
}

/// Returns a request of the object `new` for this transition and run, by the operator of this epoch. It is recorded
/// later than those with lower numbers.
fn request(epoch: u64, transition: u64, run: u64) -> ActionRequest {
    ActionRequest {
        state: "Servicing".to_owned(),
        owner: owner("new", 100),
        fence: Fence {
            epoch,
            transition,
            run,
            recorded_at: at(i64::try_from(1000 + 10 * transition + run).unwrap()),
        },
        graph: None,
        from: Vec::new(),
        input: Map::new(),
    }
}

/// The input of the rules besides the request.
struct Agent {
    memory: AgentMemory,
    offers: Vec<Offer>,
    object: Option<ObjectRef>,
    now: Timestamp,
    stopping: bool,
    seen: Seen,
}

impl Agent {
    /// Returns an agent that has taken `a` in epoch 3, transition 5 and run 2, and whose action is in this phase.
    fn with(phase: Phase, acknowledged: bool) -> Self {
        let mut agent = Self::new();
        assert_eq!(agent.take("a", &request(3, 5, 2)), FIRST);
        agent.end("a", phase, acknowledged);
        agent
    }

    fn new() -> Self {
        let offers = ["Servicing", "Stopping"].map(|state| Offer {
            state: state.to_owned(),
            repeatable: false,
        });
        Self {
            memory: AgentMemory::default(),
            offers: offers.into(),
            object: None,
            now: at(1_000_000),
            stopping: false,
            seen: Seen::Unobserved,
        }
    }

    fn ask(&self, name: &str, request: &ActionRequest) -> Result<RuleVerdict, Problem> {
        let input = RuleInput {
            memory: &self.memory,
            offers: &self.offers,
            object: self.object.as_ref(),
            graph: Some("sha256:own"),
            stopping: self.stopping,
            seen: &self.seen,
        };
        asked(input, &id(name), request)
    }

    /// Returns the code of a refusal.
    #[track_caller]
    fn refusal(&self, name: &str, request: &ActionRequest) -> Code {
        self.ask(name, request).expect_err("it is refused").code
    }

    /// Takes a request, which begins a first attempt, and ends it.
    #[track_caller]
    fn done(&mut self, name: &str, request: &ActionRequest) {
        assert_eq!(self.take(name, request), FIRST);
        self.end(name, Phase::Succeeded, true);
    }

    /// Does what the actor does after the record is on disk.
    fn take(&mut self, name: &str, request: &ActionRequest) -> Result<RuleVerdict, Problem> {
        let asked = self.ask(name, request);
        if let Ok(RuleVerdict::Begin { attempt }) = asked {
            let action = begun(id(name), request.clone(), attempt);
            self.memory.apply(self.memory.taken(action, self.now));
        }
        asked
    }

    fn end(&mut self, name: &str, phase: Phase, acknowledged: bool) {
        let mut action = Remembered::clone(self.memory.action(&id(name)).unwrap());
        action.report.phase = phase;
        action.report.acknowledged = acknowledged;
        self.memory.apply(MemoryChange::of(action));
    }
}

#[test]
fn rule_2_a_lower_epoch_is_fenced_whatever_it_asks() {
    let agent = Agent::with(Phase::Succeeded, false);
    let mut foreign = request(2, 9, 9);
    foreign.owner = owner("newer", 999);
    for older in [request(2, 5, 2), request(0, 9, 9), foreign] {
        for name in ["a", "b"] {
            assert_eq!(agent.refusal(name, &older), Code::Fenced);
        }
    }
}

#[test]
fn rule_3_an_id_names_one_piece_of_work_regardless_of_the_epoch() {
    let agent = Agent::with(Phase::Running, false);
    let same = request(3, 5, 2);
    let mut others = [(); 5].map(|()| same.clone());
    others[0].state = "Stopping".into();
    others[1].owner = owner("newer", 999);
    others[2].fence.transition = 6;
    others[3].fence.run = 3;
    others[4].input = Map::from_iter([("spec".to_owned(), json!({}))]);
    for other in &others {
        assert_eq!(agent.refusal("a", other), Code::OtherWork);
    }
    let mut led_by_another = same;
    led_by_another.fence.epoch = 4;
    led_by_another.graph = Some("sha256:other".into());
    led_by_another.from = vec!["Nowhere".into()];
    assert_eq!(agent.ask("a", &led_by_another), Ok(RuleVerdict::Report));
}

#[test]
fn rule_4_running_successful_and_unacknowledged_actions_are_reported() {
    for phase in [Phase::Pending, Phase::Running, Phase::Succeeded] {
        for acknowledged in [false, true] {
            let mut agent = Agent::with(phase, acknowledged);
            agent.stopping = true;
            assert_eq!(
                agent.ask("a", &request(3, 5, 2)),
                Ok(RuleVerdict::Report),
                "{phase:?}"
            );
        }
    }
    for phase in [Phase::Failed, Phase::Unknown, Phase::Cancelled] {
        let agent = Agent::with(phase, false);
        assert_eq!(
            agent.ask("a", &request(3, 5, 2)),
            Ok(RuleVerdict::Report),
            "{phase:?}"
        );
        let agent = Agent::with(phase, true);
        let again = agent.ask("a", &request(3, 5, 2));
        assert_eq!(again, Ok(RuleVerdict::Begin { attempt: 2 }), "{phase:?}");
    }
}

#[test]
fn rule_5_a_newer_object_takes_over_and_an_older_one_never_again() {
    let mut agent = Agent::with(Phase::Succeeded, true);
    let mut foreign = request(3, 9, 9);
    foreign.owner = owner("old", 99);
    assert_eq!(agent.refusal("b", &foreign), Code::ForeignOwner);
    let mut newer = request(3, 1, 1);
    newer.owner = owner("newer", 101);
    assert_eq!(agent.take("b", &newer), FIRST);
    assert_eq!(agent.memory.fence, newer.fence);
    agent.end("b", Phase::Succeeded, true);
    assert_eq!(agent.refusal("c", &request(3, 9, 9)), Code::ForeignOwner);
}

#[test]
fn rule_5_an_agent_belongs_to_one_namespace_and_name_whatever_else_is_created_later() {
    let agent = Agent::with(Phase::Succeeded, true);
    let mut bound = Agent::new();
    bound.object = Some(request(0, 0, 0).owner.object());
    for agent in [agent, bound] {
        for (namespace, name) in [("shop", "wishes"), ("evil", "orders"), ("", "orders")] {
            let mut foreign = request(3, 9, 9);
            foreign.owner = Owner {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..owner("later", 999)
            };
            let problem = agent.ask("b", &foreign).expect_err("it is refused");
            assert_eq!(problem.code, Code::ForeignOwner);
            let detail = problem.detail;
            assert!(detail.contains("belongs to shop/orders"), "{detail}");
        }
        let mut newer = request(3, 1, 1);
        newer.owner = owner("newer", 101);
        assert_eq!(agent.ask("b", &newer), FIRST);
    }
}

#[test]
fn rule_5_an_object_made_anew_in_the_same_second_takes_over_and_no_uid_comes_back() {
    let mut agent = Agent::with(Phase::Succeeded, true);
    for (number, uid) in (0..).zip(["twin", "third"]) {
        let mut twin = request(3, 1, 1);
        twin.owner = owner(uid, 100);
        let name = format!("b{number}");
        agent.done(&name, &twin);
    }
    for uid in ["new", "twin"] {
        let mut back = request(3, 9, 9);
        back.owner = owner(uid, 999);
        assert_eq!(agent.refusal("c", &back), Code::ForeignOwner, "{uid}");
    }
}

#[test]
fn rule_5_a_time_of_creation_that_has_not_come_yet_keeps_no_later_object_out() {
    let mut agent = Agent::new();
    agent.now = at(500);
    let mut absurd = request(0, 1, 1);
    absurd.owner.created_at = Timestamp::MAX;
    agent.done("a", &absurd);
    agent.now = at(700);
    absurd.fence.transition = 2;
    agent.done("b", &absurd);
    let recorded = agent.memory.owner.as_ref().map(|owner| owner.created_at);
    assert_eq!(recorded, Some(at(500)), "the time of its first request");
    let mut next = request(0, 1, 1);
    next.owner = owner("next", 600);
    assert_eq!(agent.take("c", &next), FIRST);
}

#[test]
fn an_epoch_that_no_operator_can_have_is_an_error_and_locks_no_operator_out() {
    let mut agent = Agent::with(Phase::Succeeded, true);
    let mut far = request(EPOCH_LIMIT, 6, 1);
    assert_eq!(agent.ask("b", &far), FIRST);
    for epoch in [EPOCH_LIMIT + 1, u64::MAX] {
        far.fence.epoch = epoch;
        assert_eq!(agent.refusal("b", &far), Code::BadRequest);
        assert_eq!(agent.refusal("a", &far), Code::BadRequest);
        let cancelled = cancelled(&agent.memory, &id("a"), epoch).map(drop);
        let acknowledgement = Acknowledgement { attempt: 1, epoch };
        let acknowledged = acknowledged(&agent.memory, &id("a"), acknowledgement).map(drop);
        for refused in [cancelled, acknowledged] {
            assert_eq!(refused.expect_err("it is refused").code, Code::BadRequest);
        }
    }
    assert_eq!(agent.take("b", &request(3, 6, 1)), FIRST);
}

#[test]
fn a_freed_agent_takes_any_owner_and_still_does_nothing_twice() {
    let mut agent = Agent::with(Phase::Succeeded, true);
    assert_eq!(
        agent.memory.free().map(|owner| owner.uid),
        Some("new".to_owned())
    );
    let mut other = request(0, 1, 1);
    other.owner = Owner {
        name: "wishes".to_owned(),
        ..owner("other", 1)
    };
    agent.done("b", &other);
    assert_eq!(agent.take("a", &request(3, 5, 2)), Ok(RuleVerdict::Report));
}

#[test]
fn rule_6_lower_numbers_that_were_recorded_later_are_new_work() {
    let mut agent = Agent::with(Phase::Succeeded, true);
    // The cluster's data was restored, so transitions repeat.
    let mut restored = request(3, 2, 1);
    restored.fence.recorded_at = at(2000);
    agent.done("b", &restored);
    assert_eq!(
        agent.memory.fence, restored.fence,
        "the last request counts"
    );
    let mut stale = request(3, 1, 1);
    assert_eq!(agent.refusal("c", &stale), Code::Fenced);
    stale.fence.recorded_at = at(2000);
    assert_eq!(agent.refusal("c", &stale), Code::Fenced, "not later");
    // The operator's clock went back, but the object moves on.
    let moves_on = request(3, 3, 1);
    assert_eq!(agent.take("c", &moves_on), FIRST);
}

#[test]
fn rule_6_a_lower_transition_or_run_is_fenced() {
    let agent = Agent::with(Phase::Succeeded, true);
    for (transition, run) in [(4, 9), (5, 1), (0, 0)] {
        let old = request(9, transition, run);
        assert_eq!(agent.refusal("b", &old), Code::Fenced);
    }
    for (transition, run) in [(5, 2), (5, 3), (6, 1)] {
        let begins = agent.ask("b", &request(3, transition, run));
        assert_eq!(begins, FIRST);
    }
}

#[test]
fn rules_7_to_11_apply_in_their_order() {
    let mut agent = Agent::with(Phase::Running, false);
    agent.stopping = true;
    let mut request = request(3, 6, 1);
    request.state = "Dancing".into();
    request.graph = Some("sha256:other".into());
    request.from = vec!["Running".into()];
    assert_eq!(agent.refusal("b", &request), Code::NoSuchWork);
    request.state = "Stopping".into();
    assert_eq!(agent.refusal("b", &request), Code::OtherGraph);
    request.graph = Some("sha256:own".into());
    assert_eq!(agent.refusal("b", &request), Code::Stopping);
    agent.stopping = false;
    let busy = agent.ask("b", &request).expect_err("it is refused");
    assert_eq!((busy.code, busy.running), (Code::Busy, Some(id("a"))));
    agent.end("a", Phase::Failed, false);
    for elsewhere in [
        Seen::Unobserved,
        Seen::Absent,
        Seen::In {
            state: "Start".into(),
        },
        Seen::Unreachable {
            why: "silent".into(),
        },
    ] {
        agent.seen = elsewhere;
        assert_eq!(agent.refusal("b", &request), Code::WrongState);
    }
    agent.seen = Seen::In {
        state: "Running".into(),
    };
    assert_eq!(agent.ask("b", &request), FIRST);
}

#[test]
fn rule_12_the_number_of_unacknowledged_actions_is_limited() {
    let mut agent = Agent::new();
    for number in 0..REMEMBERED_LIMIT as u64 {
        let name = format!("a.{number}");
        let begins = agent.take(&name, &request(1, number, 1));
        assert_eq!(begins, FIRST);
        agent.end(&name, Phase::Succeeded, false);
    }
    let next = request(1, 99_999, 1);
    assert_eq!(agent.refusal("b", &next), Code::CannotRecord);
    for number in 0..REMEMBERED_LIMIT {
        agent.end(&format!("a.{number}"), Phase::Succeeded, true);
    }
    assert_eq!(agent.take("b", &next), FIRST);
    assert!(
        agent.memory.actions().len() < 64,
        "the old ones are forgotten"
    );
    assert_eq!(agent.refusal("a.0", &request(1, 0, 1)), Code::Fenced);
}

#[test]
fn cancelling_and_acknowledging_need_the_current_epoch_and_a_known_action() {
    let memory = Agent::with(Phase::Running, false).memory;
    let cancel = |memory: &AgentMemory, name: &str, epoch| {
        cancelled(memory, &id(name), epoch).map_err(|problem| problem.code)
    };
    assert_eq!(cancel(&memory, "a", 2), Err(Code::Fenced));
    assert_eq!(cancel(&memory, "b", 3), Ok(Cancelled::Remember));
    assert_eq!(cancel(&memory, "a", 3), Ok(Cancelled::End));

    let acknowledge = |memory: &AgentMemory, name: &str, attempt, epoch| {
        let acknowledgement = Acknowledgement { attempt, epoch };
        acknowledged(memory, &id(name), acknowledgement).map_err(|problem| problem.code)
    };
    for (name, attempt, epoch, code) in [
        ("a", 1, 2, Code::Fenced),
        ("b", 1, 3, Code::NoSuchAction),
        ("a", 2, 3, Code::OtherAttempt),
        ("a", 1, 3, Code::NotEnded),
    ] {
        assert_eq!(acknowledge(&memory, name, attempt, epoch), Err(code));
    }

    let memory = Agent::with(Phase::Failed, false).memory;
    assert_eq!(cancel(&memory, "a", 3), Ok(Cancelled::Report));
    assert_eq!(acknowledge(&memory, "a", 1, 3), Ok(Acknowledged::Take));
    let memory = Agent::with(Phase::Failed, true).memory;
    assert_eq!(acknowledge(&memory, "a", 1, 3), Ok(Acknowledged::Report));
}

/// An event in the life of an agent.
#[derive(Clone, Debug)]
enum Event {
    Ask(String, Box<ActionRequest>),
    End(Phase),
    Acknowledge(String, u32, u64),
    Crash,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let name = (0..6u8).prop_map(|name| format!("n{name}"));
    let ask = (name.clone(), 0..3u64, 0..4u64, 0..3u64, 0..3i64, 0..3u8).prop_map(
        |(name, epoch, transition, run, created_at, input)| {
            let mut request = request(epoch, transition, run);
            // So that lower numbers are sometimes recorded later.
            let recorded = i64::from(input) * i64::try_from(run).unwrap();
            request.fence.recorded_at = at(recorded);
            request.owner = owner(&format!("o{created_at}"), created_at);
            request.input = Map::from_iter([("n".to_owned(), Value::from(input / 2))]);
            Event::Ask(name, Box::new(request))
        },
    );
    let end = prop_oneof![
        Just(Phase::Succeeded),
        Just(Phase::Failed),
        Just(Phase::Unknown),
        Just(Phase::Cancelled),
    ]
    .prop_map(Event::End);
    let acknowledge = (name, 1..4u32, 0..3u64)
        .prop_map(|(name, attempt, epoch)| Event::Acknowledge(name, attempt, epoch));
    let event = prop_oneof![6 => ask, 3 => end, 3 => acknowledge, 1 => Just(Event::Crash)];
    proptest::collection::vec(event, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_requests_nothing_is_done_twice_and_no_stale_request_is_taken(events in events()) {
        let mut agent = Agent::new();
        let mut succeeded = std::collections::BTreeSet::new();
        for event in events {
            let before = agent.memory.clone();
            match event {
                Event::Ask(name, request) => match agent.take(&name, &request) {
                    Ok(RuleVerdict::Begin { attempt }) => {
                        prop_assert!(before.under_way().is_none(), "two at once");
                        prop_assert!(!succeeded.contains(&name), "{name} again");
                        prop_assert!(request.fence.epoch >= before.fence.epoch);
                        if let Some(owner) = &before.owner {
                            prop_assert!(request.owner.created_at >= owner.created_at);
                            if owner.uid == request.owner.uid {
                                prop_assert!(!request.fence.is_older_than(&before.fence));
                            } else {
                                prop_assert!(!before.is_superseded(&request.owner.uid));
                            }
                        }
                        if let Some(known) = before.action(&id(&name)) {
                            prop_assert!(known.report.acknowledged, "an end is lost");
                            prop_assert_eq!(known.report.attempt + 1, attempt);
                        } else {
                            prop_assert_eq!(attempt, 1);
                        }
                    }
                    Ok(RuleVerdict::Report | RuleVerdict::Withdrawn) | Err(_) => {
                        prop_assert_eq!(&before, &agent.memory);
                    }
                },
                Event::End(phase) => {
                    let running = before.under_way().map(|action| action.report.id.to_string());
                    if let Some(name) = running {
                        agent.end(&name, phase, false);
                        if phase == Phase::Succeeded {
                            succeeded.insert(name);
                        }
                    }
                }
                Event::Acknowledge(name, attempt, epoch) => {
                    let acknowledgement = Acknowledgement { attempt, epoch };
                    if acknowledged(&before, &id(&name), acknowledgement) == Ok(Acknowledged::Take) {
                        let phase = before.action(&id(&name)).unwrap().report.phase;
                        prop_assert!(phase.is_final());
                        agent.end(&name, phase, true);
                    }
                }
                Event::Crash => {
                    let mut read = AgentMemory::default();
                    for change in before.changes() {
                        let line = serde_json::to_string(&change).unwrap();
                        read.apply(serde_json::from_str(&line).unwrap());
                    }
                    prop_assert_eq!(&read, &agent.memory);
                    agent.memory = read;
                }
            }
            let actions = agent.memory.actions().iter();
            let under_way = actions.filter(|action| !action.report.phase.is_final());
            prop_assert!(under_way.count() <= 1);
        }
    }
}
