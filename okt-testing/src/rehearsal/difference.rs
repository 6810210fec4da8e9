//! Where two runs differ, in words.

use serde_json::Value;

use super::stage::{DIFFERS, EndedRun};

/// The longest value that is shown, in characters.
const SHOWN: usize = 200;

/// Returns where two places of an object differ first, with both values.
pub(super) fn of_places(now: Option<&Value>, before: Option<&Value>) -> Option<String> {
    match (now, before) {
        (Some(now), Some(before)) => {
            // The state says most.
            let state = first(".state", &now["state"], &before["state"]);
            let (path, now, before) = state.or_else(|| first("", now, before))?;
            let path = path.trim_start_matches('.');
            Some(format!(
                "{path} is {}, undisturbed {}",
                shown(now),
                shown(before)
            ))
        }
        (None, Some(_)) => Some("it is gone, undisturbed it is there".to_owned()),
        (Some(_), None) => Some("it is there, undisturbed it is gone".to_owned()),
        (None, None) => None,
    }
}

/// Returns the first value that differs, and where it is.
fn first<'a>(
    path: &str,
    now: &'a Value,
    before: &'a Value,
) -> Option<(String, &'a Value, &'a Value)> {
    let differs = |key: String, now: &'a Value, before: &'a Value| {
        first(&format!("{path}.{key}"), now, before)
    };
    match (now, before) {
        (Value::Object(all), Value::Object(earlier)) => {
            let gone = earlier.keys().filter(|key| !all.contains_key(*key));
            let mut keys = all.keys().chain(gone);
            keys.find_map(|key| differs(key.clone(), &now[key], &before[key]))
        }
        (Value::Array(all), Value::Array(earlier)) => {
            let item = |items: &'a [Value], at: usize| items.get(at).unwrap_or(&Value::Null);
            let longer = all.len().max(earlier.len());
            (0..longer).find_map(|at| differs(at.to_string(), item(all, at), item(earlier, at)))
        }
        (now, before) => (now != before).then(|| (path.to_owned(), now, before)),
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() {
        return "absent".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns where two lists of effects differ, each sorted.
pub(super) fn of_effects(now: &[String], before: &[String]) -> Option<String> {
    let count = |all: &[String], it: &String| all.iter().filter(|other| *other == it).count();
    let mut all: Vec<&String> = now.iter().chain(before).collect();
    all.sort();
    all.dedup();
    let differs = all
        .into_iter()
        .map(|it| (it, count(now, it), count(before, it)));
    let differs: Vec<String> = differs
        .filter(|(_, now, before)| now != before)
        .map(|(effect, now, before)| format!("{effect:?} {now} times, undisturbed {before}"))
        .collect();
    (!differs.is_empty()).then(|| format!("its effects differ: {}", differs.join("; ")))
}

/// Returns that what was planned for a run did not happen, and where the run differs from the undisturbed one.
pub(super) fn of_courses(ended: &EndedRun, undisturbed: &EndedRun) -> String {
    let names = |run: &EndedRun| -> Vec<String> {
        let writes = run.course.writes.iter();
        writes.map(|write| write.name.clone()).collect()
    };
    let attempts = |run: &EndedRun| -> Vec<String> {
        let attempts = run.attempts.iter().map(|begun| &begun.attempt);
        attempts
            .map(|it| format!("{}, attempt {}", it.state, it.number))
            .collect()
    };
    let differs = of_lists("write", &names(ended), &names(undisturbed))
        .or_else(|| of_lists("attempt", &attempts(ended), &attempts(undisturbed)));
    differs.map_or_else(
        || {
            let (now, before) = (ended.course.events, undisturbed.course.events);
            format!("{DIFFERS}, in {now} and {before} events of the same writes")
        },
        |differs| format!("{DIFFERS}: {differs}"),
    )
}

fn of_lists(what: &str, now: &[String], before: &[String]) -> Option<String> {
    let at = (0..now.len().max(before.len())).find(|at| now.get(*at) != before.get(*at))?;
    let shown = |all: &[String]| {
        all.get(at)
            .map_or_else(|| "none".to_owned(), |it| format!("`{it}`"))
    };
    let number = at + 1;
    Some(format!(
        "{what} {number} is {}, undisturbed {}",
        shown(now),
        shown(before)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lists(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn the_first_value_that_differs_is_named_with_its_path() {
        let of = |now: Value, before: Value| of_places(Some(&now), Some(&before));
        let place = |password: &str, conditions: &[&str]| {
            let secret = json!({ "data": { "password": password } });
            json!({ "state": "Up", "conditions": conditions, "owned": { "secrets/a": secret } })
        };
        assert_eq!(of(place("x", &[]), place("x", &[])), None);
        let random = of(place("x", &["Ready"]), place("y", &["Ready"]));
        let expected = r#"owned.secrets/a.data.password is "x", undisturbed "y""#;
        assert_eq!(random.as_deref(), Some(expected));
        let fewer = of(place("x", &[]), place("x", &["Ready"]));
        let expected = r#"conditions.0 is absent, undisturbed "Ready""#;
        assert_eq!(fewer.as_deref(), Some(expected));
        assert_eq!(of_places(None, None), None);
    }

    #[test]
    fn only_the_effects_that_differ_are_named() {
        let (now, before) = (lists(&["a", "b", "b"]), lists(&["a", "b", "c"]));
        let expected =
            r#"its effects differ: "b" 2 times, undisturbed 1; "c" 0 times, undisturbed 1"#;
        assert_eq!(of_effects(&now, &before).as_deref(), Some(expected));
        assert_eq!(of_effects(&before, &lists(&["c", "a", "b"])), None);
    }

    #[test]
    fn the_first_write_that_differs_is_named() {
        let before = lists(&["finalizers", "status: → Start", "apply configmaps b"]);
        let of = |now: &[&str]| of_lists("write", &lists(now), &before);
        assert_eq!(
            of(&["finalizers", "status: → Start", "apply configmaps b"]),
            None
        );
        let fewer = of(&["finalizers", "status: → Start"]);
        let expected = "write 3 is none, undisturbed `apply configmaps b`";
        assert_eq!(fewer.as_deref(), Some(expected));
        let other = of(&["finalizers", "status in Start", "apply configmaps b"]);
        let expected = "write 2 is `status in Start`, undisturbed `status: → Start`";
        assert_eq!(other.as_deref(), Some(expected));
    }
}
