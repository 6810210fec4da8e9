//! The rules, each with its source.

use std::fmt;

/// The severity of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Breaking the rule misleads some consumer.
    Must,
    /// The rule is a convention, or for the convenience of people.
    Should,
}

/// A rule for conditions and status.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The name of the rule: `S` for rules about schemas, `D` for rules about objects.
    pub id: &'static str,
    /// The severity.
    pub level: Level,
    /// The requirement.
    pub says: &'static str,
    /// The source of the rule.
    pub source: &'static str,
}

const fn must(id: &'static str, says: &'static str, source: &'static str) -> Rule {
    Rule {
        id,
        level: Level::Must,
        says,
        source,
    }
}

const fn should(id: &'static str, says: &'static str, source: &'static str) -> Rule {
    Rule {
        id,
        level: Level::Should,
        says,
        source,
    }
}

/// All rules that are checked here.
///
/// Rules that only an operator's own tests can check (that a failure is permanent, that a finalizer
/// is removed after the work) are not among them.
pub static RULES: &[Rule] = &[
    must(
        "S01",
        "`status.conditions` is a map list by `type`, optional, each type once",
        "API conventions",
    ),
    must(
        "S02",
        "a condition requires type, status, reason, message and lastTransitionTime; observedGeneration is an int64 from 0",
        "metav1.Condition",
    ),
    must(
        "S03",
        "a type has the pattern of metav1, at most 316 characters, and is no enum",
        "metav1.Condition",
    ),
    must(
        "S04",
        "a reason has the pattern of metav1, and 1 to 1,024 characters",
        "metav1.Condition",
    ),
    must(
        "S05",
        "a status is True, False or Unknown; a message is there, of at most 32,768 bytes; lastTransitionTime is a time",
        "metav1.Condition, apimachinery validation",
    ),
    should(
        "S06",
        "a declared type is in PascalCase and does not repeat the kind",
        "API conventions, GEP-1364",
    ),
    must(
        "S07",
        "`conditions` has a maxItems, with room for what is declared",
        "Gateway API, Cluster API",
    ),
    must(
        "S08",
        "the status is a subresource with an int64 `observedGeneration`, and columns show Ready and the age",
        "API conventions, kstatus",
    ),
    must(
        "S09",
        "no value of an enum of a field or an item of the spec goes away",
        "API conventions, API changes",
    ),
    must(
        "S10",
        "a state or phase within the status is a string with a pattern, not an enum",
        "API conventions, API changes",
    ),
    must(
        "D01",
        "every declared condition is there from the first write on",
        "API conventions",
    ),
    must(
        "D02",
        "lastTransitionTime changes exactly when the status does, never backwards, and is not in the future",
        "meta.SetStatusCondition",
    ),
    must(
        "D03",
        "no observedGeneration is ahead of the spec, and none decreases",
        "metav1.Condition, GEP-1364",
    ),
    must(
        "D04",
        "once settled, the status has observed the generation of the spec, and so has every own condition that says what it observed",
        "kubectl wait, kstatus",
    ),
    must(
        "D05",
        "Ready is there, and fits what is beside it: True alone, else Reconciling or Stalled",
        "kstatus, Flux",
    ),
    must(
        "D06",
        "Reconciling and Stalled are there only while True, and never both",
        "kstatus",
    ),
    should(
        "D07",
        "Ready repeats the reason and the message of what is in the way",
        "Flux",
    ),
    must(
        "D09",
        "nothing is written that says nothing new",
        "KEP-1623",
    ),
    must(
        "D10",
        "no clock, counter or random text in a message",
        "KEP-1623",
    ),
    must(
        "D11",
        "conditions of others stay as they are, in their order",
        "GEP-1364",
    ),
    must(
        "D12",
        "Deleting is True while the object is being deleted, and only then",
        "Cluster API",
    ),
    must(
        "D13",
        "Paused is True or False, never Unknown",
        "Cluster API",
    ),
    must(
        "D14",
        "the list does not grow with history: at most 32 conditions without a domain before their type, and no larger a status than agreed",
        "API conventions",
    ),
];

/// Returns the rule of this name.
pub(super) fn rule(id: &str) -> &'static Rule {
    let found = RULES.iter().find(|rule| rule.id == id);
    found.expect("what is judged is listed")
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: &'static Rule,
    /// The condition type or path that breaks it.
    pub about: String,
    /// How it breaks the rule.
    pub what: String,
}

impl Violation {
    pub(super) fn new(id: &str, about: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            rule: rule(id),
            about: about.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.rule.id, self.about, self.what)
    }
}
