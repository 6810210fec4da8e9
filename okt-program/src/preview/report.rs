//! The findings of a preview, as text for people.

use okt_view::plain;

use super::owned::{OwnedChange, What};
use super::{Finding, Preview};

/// How many objects, and how many differences, are shown of one sort; `--all` shows all.
const SHOWN: usize = 10;

/// Returns the findings as text.
pub(crate) fn text(previews: &[Preview], all: bool) -> String {
    let shown = if all { usize::MAX } else { SHOWN };
    let mut text = String::new();
    for preview in previews {
        section(&mut text, preview, shown);
    }
    let nothing = !previews
        .iter()
        .any(|it| it.has_changes() || it.has_problems());
    text.push_str(if nothing {
        "This release would change nothing."
    } else {
        "Nothing was changed: this was a preview."
    });
    text.push('\n');
    text
}

fn section(text: &mut String, preview: &Preview, shown: usize) {
    text.push_str(&format!(
        "# {}: {}\n\n",
        preview.crd,
        count(preview.objects, "object")
    ));
    if preview.is_new {
        text.push_str("The cluster does not have this custom resource definition: apply the output of `crd`.\n\n");
    }
    lines(
        text,
        "The API server would refuse the custom resource definition",
        &preview.refused,
    );
    for (title, found) in [
        ("Objects without a place in this release", &preview.lost),
        (
            "Objects that would lose data that the schema of this release does not have",
            &preview.dropped,
        ),
        (
            "Objects that this release would move at once",
            &preview.moved,
        ),
        ("Objects that would have a new revision", &preview.revised),
    ] {
        findings(text, title, found, shown);
    }
    changes(text, &preview.resources, shown);
    details(text, preview, shown);
}

fn details(text: &mut String, preview: &Preview, shown: usize) {
    findings(
        text,
        "Resources that cannot be applied",
        &preview.failed,
        shown,
    );
    for (title, found) in [
        (
            "Workloads that `kubectl delete --cascade=foreground` takes away while the work on the way out runs; declare them `unowned` if it needs them",
            &preview.exposed,
        ),
        (
            "Rights that the service account lacks; apply the output of `rbac`",
            &preview.lacking,
        ),
        (
            "What is open to more people than it should be",
            &preview.open,
        ),
        ("Changes of the graph", &preview.graph),
    ] {
        lines(text, title, found);
    }
    if let Some(definition) = &preview.definition {
        text.push_str("Changes of the custom resource definition:\n\n");
        text.push_str(&indented(definition));
        text.push('\n');
    }
    lines(
        text,
        "What is to be done for the versions of the kind, in this order",
        &preview.next,
    );
    lines(text, "Not looked at", &preview.unseen);
}

fn findings(text: &mut String, title: &str, findings: &[Finding], shown: usize) {
    if findings.is_empty() {
        return;
    }
    text.push_str(&format!("{title} ({}):\n\n", findings.len()));
    for Finding { object, what } in findings.iter().take(shown) {
        text.push_str(&format!("  {object}: {}\n", plain(what)));
    }
    more(text, findings.len(), shown);
    text.push('\n');
}

fn changes(text: &mut String, changes: &[OwnedChange], shown: usize) {
    if changes.is_empty() {
        return;
    }
    text.push_str(&format!(
        "Resources that would change ({}):\n\n",
        changes.len()
    ));
    for change in changes.iter().take(shown) {
        let what = match change.what {
            What::Created => "created",
            What::Changed => "changed",
            What::Deleted => "deleted",
        };
        let owner = match &change.owner {
            Some(owner) => format!("of {owner}"),
            None => "by the program when it starts".to_owned(),
        };
        let when = if change.waits {
            ", once its object is in a state for it (`changes_in`)"
        } else {
            ""
        };
        text.push_str(&format!(
            "  {} {owner} would be {what}{when}\n",
            change.resource
        ));
        // What is made or deleted is known by its name.
        if change.what == What::Changed {
            text.push_str(&indented(&change.difference));
        }
    }
    more(text, changes.len(), shown);
    text.push('\n');
}

fn lines(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("{title}:\n\n"));
    for line in lines {
        text.push_str(&format!("  {}\n", plain(line)));
    }
    text.push('\n');
}

fn more(text: &mut String, all: usize, shown: usize) {
    if let Some(more) = all.checked_sub(shown).filter(|more| *more > 0) {
        text.push_str(&format!("  and {more} more; --all shows them\n"));
    }
}

fn indented(difference: &str) -> String {
    let lines = difference
        .lines()
        .map(|line| format!("    {}\n", plain(line)));
    lines.collect()
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
