//! Applies JSON patches (RFC 6902), with the deviations of a real server.
//!
//! A missing member is null: a `test` for null succeeds, a `replace` adds, and a `copy` copies null. The part of a path
//! before its first slash is ignored.

use serde_json::{Map, Value};

use crate::object::{self, json_type};
use crate::refusal::Refusal;

/// The maximum number of steps of a patch.
const LIMIT: usize = 10_000;

/// The approximate maximum number of bytes that all steps of a patch copy together, as on a server.
const COPIED_LIMIT: usize = 3 * 1024 * 1024;

/// Applies all steps of a patch.
pub(crate) fn apply(target: &mut Value, patch: &Value) -> Result<(), Refusal> {
    let mut copied = 0;
    for step in read(patch)? {
        let source = match step.op {
            "add" | "replace" => Some(step.value),
            "copy" | "move" => step.from.look(target),
            _ => None,
        };
        if let Some(source) = source {
            if step.op == "copy" {
                copied += object::weight(source);
            }
            if copied > COPIED_LIMIT {
                return Err(Refusal::unprocessable_patch());
            }
            if step.path.depth() + object::depth(source) > object::DEPTH_LIMIT {
                return Err(Refusal::too_deep());
            }
        }
        take_step(target, &step).ok_or_else(Refusal::unprocessable_patch)?;
    }
    Ok(())
}

/// One step; omitted fields are empty or null.
struct PatchStep<'p> {
    op: &'p str,
    path: Path,
    from: Path,
    value: &'p Value,
}

fn read(patch: &Value) -> Result<Vec<PatchStep<'_>>, Refusal> {
    let raw = match patch {
        Value::Null => return Ok(Vec::new()),
        Value::Array(steps) => steps,
        other => return Err(undecodable(other, "value of type []handlers.jsonPatchOp")),
    };
    let steps: Vec<_> = raw.iter().map(PatchStep::read).collect::<Result<_, _>>()?;
    if steps.len() > LIMIT {
        return Err(Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {LIMIT}, got {}",
                steps.len()
            ),
        ));
    }
    Ok(steps)
}

impl<'p> PatchStep<'p> {
    fn read(step: &'p Value) -> Result<Self, Refusal> {
        if !(step.is_object() || step.is_null()) {
            return Err(undecodable(step, "value of type handlers.jsonPatchOp"));
        }
        let text = |name: &str| match step.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => {
                let place = format!("struct field jsonPatchOp.{name} of type string");
                Err(undecodable(other, &place))
            }
        };
        Ok(Self {
            op: text("op")?,
            path: Path::read(text("path")?),
            from: Path::read(text("from")?),
            value: step.get("value").unwrap_or(&Value::Null),
        })
    }
}

/// Refuses a patch with a wrong type, in the words of a server's library.
fn undecodable(found: &Value, place: &str) -> Refusal {
    Refusal::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {} into Go {place}",
        json_type(found)
    ))
}

/// Applies one step; `None` if that is impossible.
fn take_step(target: &mut Value, step: &PatchStep<'_>) -> Option<()> {
    let PatchStep {
        op,
        path,
        from,
        value,
    } = step;
    match *op {
        "add" => path.put(target, (*value).clone(), true),
        "replace" if path.is_root() => {
            let is_document = value.is_object() || value.is_array();
            is_document.then(|| target.clone_from(value))
        }
        "replace" => path.put(target, (*value).clone(), false),
        "remove" => path.take(target).map(drop),
        "move" => {
            let value = from.take(target)?;
            path.put(target, value, true)
        }
        "copy" => {
            let value = from.look(target)?.clone();
            path.put(target, value, true)
        }
        "test" if path.is_root() => (target == *value).then_some(()),
        "test" => (path.look(target)? == *value).then_some(()),
        _ => None,
    }
}

/// The path to a value. An empty path is the whole document, which only some steps accept.
struct Path(Option<Vec<String>>);

impl Path {
    fn read(path: &str) -> Self {
        let decode = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let (_, parts) = match path.split_once('/') {
            Some(parts) => parts,
            None if path.is_empty() => return Self(Some(Vec::new())),
            None => return Self(None),
        };
        Self(Some(parts.split('/').map(decode).collect()))
    }

    fn is_root(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }

    fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    /// Returns the last part and the parts before it.
    fn split(&self) -> Option<(&[String], &str)> {
        let (last, parents) = self.0.as_ref()?.split_last()?;
        Some((parents, last))
    }

    /// Returns the value at the path: null for a missing member, `None` for a missing item.
    fn look<'t>(&self, target: &'t Value) -> Option<&'t Value> {
        let (parents, last) = self.split()?;
        let mut found = target;
        for part in parents {
            found = match found {
                Value::Object(fields) => fields.get(part)?,
                Value::Array(items) => items.get(index(part, items.len())?)?,
                _ => return None,
            };
        }
        match found {
            Value::Object(fields) => Some(fields.get(last).unwrap_or(&Value::Null)),
            Value::Array(items) => items.get(index(last, items.len())?),
            _ => None,
        }
    }

    fn put(&self, target: &mut Value, value: Value, insert: bool) -> Option<()> {
        let (holder, last) = self.holder(target)?;
        match holder {
            Holder::Object(fields) => {
                fields.insert(last.to_owned(), value);
            }
            Holder::Array(items) if insert && last == "-" => items.push(value),
            Holder::Array(items) if insert => {
                let at = index(last, items.len() + 1)?;
                items.insert(at, value);
            }
            Holder::Array(items) => {
                let at = index(last, items.len())?;
                items[at] = value;
            }
        }
        Some(())
    }

    fn take(&self, target: &mut Value) -> Option<Value> {
        let (holder, last) = self.holder(target)?;
        match holder {
            Holder::Object(fields) => fields.remove(last),
            Holder::Array(items) => Some(items.remove(index(last, items.len())?)),
        }
    }

    /// Returns the container of the value, and the value's name or index in it.
    fn holder<'t>(&self, target: &'t mut Value) -> Option<(Holder<'t>, &str)> {
        let (parents, last) = self.split()?;
        let mut found = target;
        for part in parents {
            found = match found {
                Value::Object(fields) => fields.get_mut(part)?,
                Value::Array(items) => {
                    let at = index(part, items.len())?;
                    &mut items[at]
                }
                _ => return None,
            };
        }
        let holder = match found {
            Value::Object(fields) => Holder::Object(fields),
            Value::Array(items) => Holder::Array(items),
            _ => return None,
        };
        Some((holder, last))
    }
}

enum Holder<'t> {
    Object(&'t mut Map<String, Value>),
    Array(&'t mut Vec<Value>),
}

/// Reads an index of a list; a negative one counts from the end.
fn index(text: &str, length: usize) -> Option<usize> {
    let index: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index + length } else { index };
    (0..length)
        .contains(&index)
        .then(|| usize::try_from(index).ok())?
}
