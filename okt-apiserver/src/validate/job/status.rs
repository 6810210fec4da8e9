//! The status of a Job, which also controllers outside Kubernetes write: a Job that has ended stays so.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::part::CheckedPart;
use crate::causes::Causes;
use crate::object;

/// The Pods that have ended and are not counted yet, as a server shows them.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct UncountedPods<'v> {
    succeeded: &'v Value,
    failed: &'v Value,
}

pub(in crate::validate) fn check(
    old: &CheckedPart<'_>,
    new: &CheckedPart<'_>,
    causes: &mut Causes,
) {
    check_itself(old, new, causes);
    check_change(old, new, causes);
}

fn is_true(job: &CheckedPart<'_>, condition: &str) -> bool {
    object::is_condition_true(job.value, condition)
}

fn is_finished(job: &CheckedPart<'_>) -> bool {
    is_true(job, "Complete") || is_true(job, "Failed")
}

/// Checks the parts of a status that have changed, beside each other.
fn check_itself(old: &CheckedPart<'_>, new: &CheckedPart<'_>, causes: &mut Causes) {
    let (was, is) = (old.field("status"), new.field("status"));
    let field = |key: &str| is.field(key);
    let differs = |key: &str| was.field(key).value != is.field(key).value;
    let ends = is_finished(old) != is_finished(new);
    let finished = is_finished(new);
    for key in ["active", "succeeded", "failed", "ready", "terminating"] {
        field(key).not_negative(causes);
    }
    let uncounted = field("uncountedTerminatedPods");
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for uid in uncounted.field(list).items() {
            if uid.is_empty() {
                uid.invalid("must not be empty", causes);
            } else if !seen.insert(uid.text()) {
                causes.duplicate(&*uid.path, uid.value);
            }
        }
    }
    check_end(old, new, causes);
    let active = field("active");
    if (ends || differs("active")) && active.number() > 0 && finished {
        active.invalid("active>0 is invalid for finished job", causes);
    }
    let spec = new.field("spec");
    let does_nothing = spec.field("suspend").value == &Value::Bool(true)
        && spec.field("completions").value == &Value::from(0);
    let start = field("startTime");
    if (ends || differs("startTime")) && !does_nothing && finished && !start.is_set() {
        causes.required(&*start.path, "startTime is required for finished job");
    }
    if (ends || differs("uncountedTerminatedPods")) && finished && !seen.is_empty() {
        let shown = UncountedPods {
            succeeded: uncounted.field("succeeded").value,
            failed: uncounted.field("failed").value,
        };
        causes.invalid(&*uncounted.path, shown, "must be empty for finished job");
    }
    check_indexes(&was, &is, &spec, causes);
    let terminating = field("terminating");
    if (ends || differs("terminating")) && terminating.number() > 0 && finished {
        terminating.invalid("terminating>0 is invalid for finished job", causes);
    }
    let ready = field("ready");
    if (differs("ready") || differs("active")) && ready.number() > active.number() {
        ready.invalid("cannot set more ready pods than active", causes);
    }
    check_success(new, causes);
}

/// Checks that the conditions of the end of a Job agree with each other, and with its times.
fn check_end(old: &CheckedPart<'_>, new: &CheckedPart<'_>, causes: &mut Causes) {
    let (was, is) = (old.field("status"), new.field("status"));
    let field = |key: &str| is.field(key);
    let differs = |key: &str| was.field(key).value != is.field(key).value;
    let turns = |condition: &str| is_true(old, condition) != is_true(new, condition);
    let conditions = field("conditions");
    let [complete, failed, target, success] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|it| is_true(new, it));
    for (other, is_both) in [("Failed", failed), ("FailureTarget", target)] {
        if (turns("Complete") || turns(other)) && complete && is_both {
            let detail = format!("cannot set Complete=True and {other}=true conditions");
            causes.faulty(&*conditions.path, &detail);
        }
    }
    let (start, end) = (field("startTime"), field("completionTime"));
    if turns("Complete") || differs("completionTime") {
        if end.is_set() && !complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            end.invalid(detail, causes);
        }
        if !end.is_set() && complete {
            causes.required(&*end.path, "completionTime is required for Complete jobs");
        }
    }
    let time = |part: &CheckedPart<'_>| part.text().parse::<Timestamp>().ok();
    if (differs("startTime") || differs("completionTime"))
        && let (Some(start), Some(at)) = (time(&start), time(&end))
        && at < start
    {
        end.invalid("must be equal to or after `startTime`", causes);
    }
    if (turns("Failed") || differs("failedIndexes")) && failed && !target {
        let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
        causes.faulty(&*conditions.path, detail);
    }
    if (turns("Complete") || turns("SuccessCriteriaMet")) && complete && !success {
        let detail =
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        causes.faulty(&*conditions.path, detail);
    }
}

/// Checks the condition of a Job that has met its criteria.
fn check_success(new: &CheckedPart<'_>, causes: &mut Causes) {
    let (spec, conditions) = (new.field("spec"), new.field("status.conditions"));
    let [complete, failed, target, success] =
        ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"].map(|it| is_true(new, it));
    for (other, is_both) in [("Failed", failed), ("FailureTarget", target)] {
        if success && is_both {
            let detail = format!("cannot set SuccessCriteriaMet=True and {other}=true conditions");
            causes.faulty(&*conditions.path, &detail);
        }
    }
    if spec.field("successPolicy").is_set() && !success && complete {
        let detail =
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
        causes.faulty(&*conditions.path, detail);
    }
}

/// Checks the indexes of the Pods that have succeeded or failed.
fn check_indexes(
    was: &CheckedPart<'_>,
    is: &CheckedPart<'_>,
    spec: &CheckedPart<'_>,
    causes: &mut Causes,
) {
    let (done, failed) = (is.field("completedIndexes"), is.field("failedIndexes"));
    let done_differs = was.field("completedIndexes").text() != done.text();
    let failed_differs = was.field("failedIndexes").value != failed.value;
    let count = spec.field("completions").value.as_i64();
    let has_limit = spec.field("backoffLimitPerIndex").is_set();
    if let Some(count) = count {
        if done_differs && let Err(why) = intervals(done.text(), count) {
            done.invalid(&format!("error parsing completedIndexes: {why}"), causes);
        }
        if failed_differs
            && has_limit
            && failed.is_set()
            && let Err(why) = intervals(failed.text(), count)
        {
            failed.invalid(&format!("error parsing failedIndexes: {why}"), causes);
        }
    }
    let is_indexed = spec.field("completionMode").text() == "Indexed";
    if done_differs && !done.is_empty() && !is_indexed {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        done.invalid(detail, causes);
    }
    if failed_differs && !has_limit && failed.is_set() {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        failed.invalid(detail, causes);
    }
    if (done_differs || failed_differs)
        && let Some(count) = count
        && let Some(index) = overlap(
            &readable(done.text(), count),
            &readable(failed.text(), count),
        )
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        failed.invalid(&detail, causes);
    }
}

/// Reads indexes like `1,3-5`, and returns their number.
pub(super) fn intervals(text: &str, count: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, count)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!(
                "non-increasing order, previous: {last}, current: {first}"
            ));
        }
        last = Some(end);
        total += end - first + 1;
    }
    Ok(total)
}

fn interval(part: &str, count: i64) -> Result<(i64, i64), String> {
    let limits: Vec<_> = part.split('-').collect();
    let index = |text: &str| {
        let shown = Value::from(text);
        let index: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {shown}"))?;
        if index >= count {
            return Err(format!("too large index: {shown}"));
        }
        Ok(index)
    };
    match limits.as_slice() {
        [one] => index(one).map(|it| (it, it)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first >= last {
                return Err(format!(
                    "non-increasing order, previous: {first}, current: {last}"
                ));
            }
            Ok((first, last))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            Value::from(part)
        )),
    }
}

fn readable(text: &str, count: i64) -> Vec<(i64, i64)> {
    text.split(',')
        .filter_map(|part| interval(part, count).ok())
        .collect()
}

/// Returns the first index that both ordered lists have.
fn overlap(one: &[(i64, i64)], other: &[(i64, i64)]) -> Option<i64> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        if a.0 <= b.1 && b.0 <= a.1 {
            return Some(a.0.max(b.0));
        }
        if a.0 <= b.0 {
            one.next();
        } else {
            other.next();
        }
    }
    None
}

/// Checks what a change must keep.
fn check_change(old: &CheckedPart<'_>, new: &CheckedPart<'_>, causes: &mut Causes) {
    let (was, is) = (old.field("status"), new.field("status"));
    let (spec, conditions) = (new.field("spec"), is.field("conditions"));
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if is_true(old, condition) && !is_true(new, condition) {
            let detail = format!("cannot disable the terminal {condition}=True condition");
            causes.faulty(&*conditions.path, &detail);
        }
    }
    let is_indexed = spec.field("completionMode").text() == "Indexed";
    let scales = is_indexed && spec.field("completions").value == spec.field("parallelism").value;
    for (key, is_free) in [("failed", false), ("succeeded", scales)] {
        let (before, count) = (was.field(key).number(), is.field(key));
        if !is_free && count.number() < before {
            let detail = format!("cannot decrease the {key} counter");
            causes.invalid(&*count.path, count.number(), &detail);
        }
    }
    let (before, end) = (was.field("completionTime"), is.field("completionTime"));
    if before.is_set() && end.is_set() && before.value != end.value {
        end.invalid("field is immutable", causes);
    }
    let is_active = |it: &CheckedPart<'_>| {
        it.field("type").text() == "Suspended" && it.field("status").text() == "False"
    };
    let resumes = is_true(old, "Suspended") && conditions.items().any(|it| is_active(&it));
    let (before, start) = (was.field("startTime"), is.field("startTime"));
    let is_suspended = spec.field("suspend").value == &Value::Bool(true);
    if before.is_set() && before.value != start.value && !is_suspended && !resumes {
        start.invalid("field is immutable for unsuspended job once set", causes);
    }
    let success = |job: &CheckedPart<'_>| is_true(job, "SuccessCriteriaMet");
    if success(old) && !success(new) {
        let detail = "cannot disable the SuccessCriteriaMet=True condition";
        causes.faulty(&*conditions.path, detail);
    }
    if is_true(old, "Complete") && !success(old) && success(new) {
        let detail =
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        causes.faulty(&*conditions.path, detail);
    }
}
