//! Changes of a running Pod through its own endpoints: attached containers, and resizes.

use serde_json::{Value, json};

use super::super::part::CheckedPart;
use crate::causes::Causes;
use crate::{object, strategy};

/// Checks that no container that is attached already changes.
pub(in crate::validate) fn check_attached(
    old: &CheckedPart<'_>,
    new: &CheckedPart<'_>,
    causes: &mut Causes,
) {
    let [were, are] = [old, new].map(|pod| pod.field("spec.ephemeralContainers"));
    for container in were.items() {
        let name = container.field("name").text();
        let shown = json!(name);
        match are.items().find(|it| it.field("name").text() == name) {
            None => {
                let detail = format!("existing ephemeral containers {shown} may not be removed\n");
                are.forbid(&detail, causes);
            }
            Some(now) if now.value != container.value => {
                let detail = format!("existing ephemeral containers {shown} may not be changed\n");
                are.forbid(&detail, causes);
            }
            Some(_) => {}
        }
    }
}

/// Checks that nothing but the amounts of CPU and memory changes, and that none is removed.
pub(in crate::validate) fn check_resized(
    old: &CheckedPart<'_>,
    new: &CheckedPart<'_>,
    causes: &mut Causes,
) {
    let (was, is) = (old.field("spec"), new.field("spec"));
    let class = strategy::quality(is.value);
    if strategy::quality(was.value) != class {
        let shown = new.field("status.qosClass").text();
        causes.invalid(
            "spec",
            shown,
            "Pod QOS Class may not change as a result of resizing",
        );
    }
    check_own_resources(&was.field("resources"), &is.field("resources"), causes);
    if !has_same_containers(&was, &is, causes) {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (was, is) in was.field(list).items().zip(is.field(list).items()) {
            for kind in ["requests", "limits"] {
                let (before, amounts) = (
                    was.field("resources").field(kind),
                    is.field("resources").field(kind),
                );
                if before
                    .entries()
                    .any(|(name, _)| amounts.value.get(name).is_none())
                {
                    amounts.forbid(&format!("resource {kind} cannot be removed"), causes);
                }
            }
        }
    }
    for (list, names_item, detail) in [
        (
            "containers",
            false,
            "only cpu and memory resources are mutable",
        ),
        (
            "initContainers",
            true,
            "only cpu and memory resources for init or sidecar containers are mutable",
        ),
    ] {
        for (was, is) in was.field(list).items().zip(is.field(list).items()) {
            if others(was.value) != others(is.value) {
                causes.forbidden(if names_item { &is.path } else { "spec" }, detail);
            }
        }
    }
}

/// Checks the resources of the Pod as a whole.
fn check_own_resources(was: &CheckedPart<'_>, is: &CheckedPart<'_>, causes: &mut Causes) {
    if was.is_set() && !is.is_set() {
        is.forbid("pod-level resources cannot be removed", causes);
        return;
    }
    for kind in ["requests", "limits"] {
        let (before, amounts) = (was.field(kind), is.field(kind));
        if before
            .entries()
            .any(|(name, _)| amounts.value.get(name).is_none())
        {
            amounts.forbid(
                &format!("pod-level resource {kind} cannot be removed"),
                causes,
            );
        }
    }
}

/// Checks that a resize leaves the containers in their order.
fn has_same_containers(was: &CheckedPart<'_>, is: &CheckedPart<'_>, causes: &mut Causes) -> bool {
    let before = causes.len();
    for list in ["containers", "initContainers"] {
        let (were, are) = (was.field(list), is.field(list));
        if were.items().count() != are.items().count() {
            let detail = format!("{list} may not be added or removed on resize");
            are.forbid(&detail, causes);
            continue;
        }
        for (was, is) in were.items().zip(are.items()) {
            let name = is.field("name");
            if was.field("name").text() != name.text() {
                let detail = format!("{list} may not be renamed or reordered on resize");
                name.forbid(&detail, causes);
            }
        }
    }
    causes.len() == before
}

/// Returns the amounts of a container that no resize changes.
fn others(container: &Value) -> Vec<(&str, &str, &Value)> {
    let amounts = ["requests", "limits"].into_iter().flat_map(|kind| {
        let all = object::entries(container, &["resources", kind]);
        all.map(move |(name, amount)| (kind, name.as_str(), amount))
    });
    amounts
        .filter(|(_, name, _)| !matches!(*name, "cpu" | "memory"))
        .collect()
}
