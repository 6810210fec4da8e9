//! The conformance test: checks the rules of the protocol one by one, over the wire.
//!
//! ```no_run
//! use okt_agent::client::Endpoint;
//! use okt_agent::conformance::{States, Subject};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let states = States {
//!     brief: "Start".into(),
//!     failing: "Broken".into(),
//!     endless: "Servicing".into(),
//! };
//! let report = Subject::new(Endpoint::parse("http://127.0.0.1:8470")?, states)?.check().await;
//! print!("{report}");
//! assert!(report.is_kept());
//! # Ok(())
//! # }
//! ```
//!
//! The test requests real work, as a new object that takes the application over. Use an agent whose application is not
//! in use.
//!
//! | content | file |
//! |---|---|
//! | the agent under test | `subject` |
//! | the owner that the test pretends to be, and helpers for expectations | `world` |
//! | versions, paths, health, the status | `paths` |
//! | requests for work, once and a thousand times | `requests` |
//! | results and acknowledgements; cancelling | `results` |
//! | epochs, transitions, owners, graphs | `fencing` |
//! | malformed, huge and slow requests | `bounds` |
//! | a killed agent | `restart` |

mod bounds;
mod fencing;
mod paths;
mod requests;
mod restart;
mod results;
mod subject;
mod world;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

pub use self::subject::{States, Subject};
use self::world::{Stop, World};

/// The timeout of one check.
const LIMIT: Duration = Duration::from_mins(10);

impl Subject {
    /// Checks the rules one after the other. Each check begins with an agent that runs no action.
    pub async fn check(&self) -> Report {
        let mut findings = Vec::new();
        let mut world = match World::enter(self).await {
            Ok(world) => world,
            Err(stop) => {
                let finding = Finding {
                    check: "answers",
                    rule: "the agent answers, and takes an action of a new owner",
                    verdict: stop.into(),
                };
                return Report {
                    findings: vec![finding],
                };
            }
        };
        for check in CHECKS {
            let only = self.only.as_ref();
            if only.is_some_and(|only| !only.iter().any(|name| name == check.name)) {
                continue;
            }
            let checked = async {
                world.rest().await?;
                (check.run)(&mut world).await
            };
            let verdict = match tokio::time::timeout(LIMIT, checked).await {
                Ok(Ok(())) => Verdict::Kept,
                Ok(Err(stop)) => stop.into(),
                Err(_) => Verdict::Broken(format!("it took longer than {} s", LIMIT.as_secs())),
            };
            findings.push(Finding {
                check: check.name,
                rule: check.rule,
                verdict,
            });
        }
        // Best effort to leave no action running.
        let _ = world.rest().await;
        Report { findings }
    }
}

/// Returns the names of all checks, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name)
}

/// The results of a conformance test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The findings, in the order of the checks.
    pub findings: Vec<Finding>,
}

/// The result of one check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The name of the check.
    pub check: &'static str,
    /// The rule.
    pub rule: &'static str,
    /// Whether the agent keeps the rule.
    pub verdict: Verdict,
}

/// Whether a rule is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Yes, as far as the test can observe.
    Kept,
    /// No, and what was observed instead.
    Broken(String),
    /// Not checked, and why.
    Skipped(&'static str),
}

impl Report {
    /// Returns whether no rule is broken.
    pub fn is_kept(&self) -> bool {
        self.broken().next().is_none()
    }

    /// Returns the findings of broken rules.
    pub fn broken(&self) -> impl Iterator<Item = &Finding> {
        let is_broken = |finding: &&Finding| matches!(finding.verdict, Verdict::Broken(_));
        self.findings.iter().filter(is_broken)
    }
}

/// Formats one line for each rule and a summary.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding {
            check,
            rule,
            verdict,
        } in &self.findings
        {
            match verdict {
                Verdict::Kept => writeln!(f, "kept    {check}: {rule}")?,
                Verdict::Broken(why) => writeln!(f, "BROKEN  {check}: {rule}: {why}")?,
                Verdict::Skipped(why) => writeln!(f, "skipped {check}: {why}")?,
            }
        }
        let broken = self.broken().count();
        writeln!(f, "{} checks, {broken} broken", self.findings.len())
    }
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Broken(why) => Self::Broken(why),
            Stop::Skipped(why) => Self::Skipped(why),
        }
    }
}

type Checked<'a> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 'a>>;

/// A rule and its check.
struct AgentCheck {
    name: &'static str,
    rule: &'static str,
    run: for<'a> fn(&'a mut World<'_>) -> Checked<'a>,
}

macro_rules! checks {
    ($( $name:literal, $rule:literal => $module:ident::$function:ident; )*) => {
        /// All checks. Those that change the agent's owner come last.
        const CHECKS: &[AgentCheck] = &[ $( AgentCheck {
            name: $name,
            rule: $rule,
            run: |world| Box::pin($module::$function(world)),
        }, )* ];
    };
}

checks! {
    "versions", "GET /lifecycle names v1" => paths::versions;
    "unsupported-version", "paths of other versions answer 404 UnsupportedVersion" => paths::unsupported_version;
    "paths", "other paths answer 404 NotFound, other methods 405 MethodNotAllowed" => paths::paths;
    "health", "/livez and /readyz answer, without a token" => paths::health;
    "token", "where there is a token, a request without it is 401 Unauthorized" => paths::token;
    "status", "the status has the same bootId twice, and the states in order" => paths::status;
    "status-at-once", "the status never waits, and shows the action under way" => paths::status_at_once;
    "begins-once", "the first PUT answers 201, the next 200 with the same attempt" => requests::begins_once;
    "thousand-at-once", "1,000 PUTs of one id at once begin one attempt" => requests::thousand_at_once;
    "busy", "another action while one is under way is 409 Busy, which names it" => requests::busy;
    "other-work", "a known id with another state, owner, fence or input is 422 OtherWork" => requests::other_work;
    "same-work-of-another-epoch", "a known id of a higher epoch is the same work" => requests::other_epoch;
    "no-such-work", "a state that the agent does not know is 422 NoSuchWork" => requests::no_such_work;
    "no-such-action", "an unknown id is 404 NoSuchAction" => requests::no_such_action;
    "wrong-state", "`from` that names other states is 412 WrongState" => requests::wrong_state;
    "list", "the list has the actions, the newest first" => requests::list;
    "success-for-ever", "what succeeded is never begun again, acknowledged or not" => results::success_for_ever;
    "kept-until-acknowledged", "a failed attempt is answered until it is acknowledged, then there is another" => results::kept_until_acknowledged;
    "failure-says-why", "a failed attempt has a reason" => results::failure_says_why;
    "acknowledged-twice", "acknowledging twice is no mistake" => results::acknowledged_twice;
    "other-attempt", "acknowledging another attempt is 409 OtherAttempt" => results::other_attempt;
    "not-ended", "acknowledging what is under way is 409 NotEnded" => results::not_ended;
    "cancels", "DELETE ends what is under way, and its phase is Cancelled" => results::cancels;
    "cancels-nothing", "DELETE of what has ended changes nothing" => results::cancels_nothing;
    "cancelled-before", "what was cancelled before it was asked for is not begun until that is acknowledged" => results::cancelled_before;
    "wait", "`wait` answers when the action has ended, or after that time" => results::wait;
    "unobserved-after-end", "what was observed before an action ended is not reported after it" => results::unobserved_after_end;
    "output", "the output comes with its range" => results::output;
    "malformed", "what is no JSON of the right form is 400 BadRequest" => bounds::malformed;
    "unknown-field", "a request with an unknown field is 400 BadRequest" => bounds::unknown_field;
    "bad-id", "an id of other characters, or of more than 128, is 400 BadRequest" => bounds::bad_id;
    "too-large", "a body of more than 256 KiB is 413 TooLarge" => bounds::too_large;
    "media-type", "a body whose content type is not JSON is 415 UnsupportedMediaType" => bounds::media_type;
    "slow", "connections on which no request arrives are closed, and keep nobody away" => bounds::slow;
    "fenced-transition", "a new id of a lower transition or run that was not recorded later is 412 Fenced" => fencing::transition;
    "restored-transition", "a new id of a lower transition that was recorded later is taken" => fencing::restored;
    "fenced-asking", "PUT of a lower epoch is 412 Fenced" => fencing::asking;
    "fenced-cancelling", "DELETE of a lower epoch is 412 Fenced, and cancels nothing" => fencing::cancelling;
    "fenced-acknowledging", "an acknowledgement of a lower epoch is 412 Fenced" => fencing::acknowledging;
    "far-epoch", "an epoch above 2^40 is 400 BadRequest, and not taken" => fencing::far_epoch;
    "other-graph", "where the agent has a graph, another one is 412 OtherGraph" => fencing::graph;
    "foreign-owner", "an owner that is older, or has another namespace or name, is 412 ForeignOwner" => fencing::foreign_owner;
    "restart-guesses-nothing", "what was under way when the agent was killed is Unknown or resumed, and not begun by itself" => restart::guesses_nothing;
    "restart-keeps-results", "results that nobody acknowledged survive a kill" => restart::keeps_results;
    "restart-keeps-fences", "epoch and owner survive a kill" => restart::keeps_fences;
    "problem-documents", "every refusal is a problem document with what the table has for its code" => world::problem_documents;
    "newer-owner", "an owner of the same name that is newer takes the application over" => fencing::newer_owner;
    "same-second-owner", "an owner that is as old with a new uid takes over, and the one before never comes back" => fencing::same_second_owner;
}
