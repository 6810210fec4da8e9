//! Reads an object as encoding/json reads it into a Go type, and writes it again: a wrong type is an error, an unknown
//! field is dropped and reported, what Go leaves out is left out, and what Kubernetes fills in is filled in.

use std::mem;

use base64::Engine;
use base64::alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::defaults::complete;
use super::{FieldType, GoDefinition, GoType, OwnForm, StructType};
use crate::object::{self, json_type};
use crate::quantity::Quantity;

/// Base64 as Go reads it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Gives an object the form of its type; returns the paths of its unknown fields, which it does not have any more.
///
/// # Errors
/// The first value that the type cannot hold, in the words of encoding/json.
pub(crate) fn decode(kind: &'static GoType, object: &mut Value) -> Result<Vec<String>, String> {
    let mut decoder = Decoder {
        owner: kind,
        path: Vec::new(),
        unknown: Vec::new(),
    };
    decoder.named(kind, object)?;
    Ok(decoder.unknown)
}

/// Returns the error of the first field of an object's metadata with a wrong type.
pub(crate) fn mistyped_metadata(object: &Value) -> Option<String> {
    let meta = GoType::named("meta.v1.ObjectMeta")?;
    let mut metadata = object.get("metadata")?.clone();
    decode(meta, &mut metadata).err()
}

/// Returns the error of a value that a type cannot hold in the words of a server that converts it, and reads no text.
pub(crate) fn as_conversion(why: &str) -> String {
    let Some((found, field)) = why
        .strip_prefix("json: cannot unmarshal ")
        .and_then(|rest| rest.split_once(" into Go "))
    else {
        return match why.strip_prefix("illegal base64") {
            Some(_) => format!("error decoding from json: {why}"),
            None => why.to_owned(),
        };
    };
    let wanted = field.rsplit(' ').next().unwrap_or_default();
    let found = match found.split(' ').next().unwrap_or_default() {
        "object" => "map",
        "array" => "slice",
        "number" if found.contains('.') => "float64",
        "number" => "int64",
        simple => simple,
    };
    match (found, wanted) {
        ("float64", "int32" | "int64") | ("int64", "string") => {
            format!("cannot convert {found} to {wanted}")
        }
        (_, list) if list.starts_with("[]") => format!("cannot restore slice from {found}"),
        (_, map) if map.starts_with("map[") => format!("cannot restore map from {found}"),
        (_, named) if named.contains('.') => format!("cannot restore struct from: {found}"),
        (_, simple) => format!("unrecognized type: {simple}"),
    }
}

/// Sets the status of a new object, which clients cannot set, to its defaults.
pub(crate) fn reset_status(kind: &'static GoType, object: &mut Value) {
    let GoDefinition::Struct(it) = kind.definition() else {
        return;
    };
    let Some((field, _)) = it.field("status") else {
        return;
    };
    let mut decoder = Decoder {
        owner: kind,
        path: vec![PathStep::Field("status")],
        unknown: Vec::new(),
    };
    let mut status = Value::Null;
    if decoder.value(&field.value, "", &mut status).is_ok() && !status.is_null() {
        object::fields(object).insert("status".to_owned(), status);
    }
}

struct Decoder {
    /// The struct whose field is read.
    owner: &'static GoType,
    path: Vec<PathStep>,
    unknown: Vec<String>,
}

enum PathStep {
    Field(&'static str),
    /// A struct whose fields stand in the JSON of its parent; only the errors of Go name it.
    Embedded(&'static str),
    Index(usize),
    Key(String),
}

/// Returns whether a value is empty, so that a field may leave it out.
type IsEmpty = bool;

impl Decoder {
    fn named(&mut self, named: &'static GoType, value: &mut Value) -> Result<IsEmpty, String> {
        match named.definition() {
            GoDefinition::Alias(it) => self.value(it, named.go_name(), value),
            GoDefinition::Struct(it) => {
                if value.is_null() {
                    *value = Value::Object(Map::new());
                }
                let Value::Object(fields) = value else {
                    return Err(self.mismatch(value, named.go_name()));
                };
                let above = mem::replace(&mut self.owner, named);
                self.fields(it, fields)?;
                it.set_defaults(fields);
                complete(named.name, fields);
                self.owner = above;
                Ok(false)
            }
        }
    }

    fn fields(
        &mut self,
        it: &'static StructType,
        fields: &mut Map<String, Value>,
    ) -> Result<(), String> {
        it.add_missing(fields);
        let mut failure = Ok(());
        fields.retain(|name, value| {
            if it.is_object && (name == "apiVersion" || name == "kind") {
                return *value != "";
            }
            let Some((field, embedded)) = it.field(name) else {
                self.path.push(PathStep::Key(name.clone()));
                let unknown = self.shown_path();
                self.unknown.push(unknown);
                self.path.pop();
                return false;
            };
            if failure.is_err() {
                return true;
            }
            let depth = self.path.len();
            self.path
                .extend(embedded.into_iter().map(PathStep::Embedded));
            self.path.push(PathStep::Field(field.name));
            match self.value(&field.value, "", value) {
                Ok(is_empty) => {
                    self.path.truncate(depth);
                    !(is_empty && field.omits_empty)
                }
                Err(why) => {
                    failure = Err(why);
                    true
                }
            }
        });
        failure
    }

    /// Reads a value of a type, which an alias may have given this name.
    fn value(
        &mut self,
        it: &'static FieldType,
        alias: &'static str,
        value: &mut Value,
    ) -> Result<IsEmpty, String> {
        let mismatch = |this: &Self, value: &Value| {
            let own = it.go_name();
            Err(this.mismatch(value, if alias.is_empty() { &own } else { alias }))
        };
        match (it, &mut *value) {
            (FieldType::Named(named), value) => self.named(named, value),
            (FieldType::Own(own), value) => self.own(*own, value),
            (FieldType::Pointer(_), Value::Null) => Ok(true),
            (FieldType::Pointer(to), value) => {
                self.value(to, alias, value)?;
                Ok(false)
            }
            (it, value @ Value::Null) => {
                *value = it.zero();
                Ok(true)
            }
            (FieldType::List(of), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push(PathStep::Index(index));
                    self.value(of, "", item)?;
                    self.path.pop();
                }
                if items.is_empty() {
                    // Kubernetes does not keep the difference.
                    *value = Value::Null;
                    return Ok(true);
                }
                Ok(false)
            }
            (FieldType::Map(of), Value::Object(fields)) => {
                for (key, value) in fields.iter_mut() {
                    self.path.push(PathStep::Key(key.clone()));
                    self.value(of, "", value)?;
                    self.path.pop();
                }
                Ok(fields.is_empty())
            }
            (FieldType::Bytes, Value::String(text)) => {
                let lines: String = text
                    .chars()
                    .filter(|it| !matches!(it, '\r' | '\n'))
                    .collect();
                let bytes = BASE64
                    .decode(&lines)
                    .map_err(|error| illegal_base64(&lines, &error))?;
                *text = BASE64.encode(&bytes);
                Ok(bytes.is_empty())
            }
            (FieldType::Bytes, Value::Array(numbers))
                if numbers.iter().all(|it| byte(it).is_some()) =>
            {
                let bytes: Vec<u8> = numbers.iter().filter_map(byte).collect();
                *value = BASE64.encode(bytes).into();
                Ok(false)
            }
            (FieldType::Text, Value::String(text)) => Ok(text.is_empty()),
            (FieldType::Flag, Value::Bool(flag)) => Ok(!*flag),
            (FieldType::Int32 | FieldType::Int64, Value::Number(number)) => {
                let most = match it {
                    FieldType::Int32 => i64::from(i32::MAX),
                    _ => i64::MAX,
                };
                match number.as_i64() {
                    Some(whole) if (-most - 1..=most).contains(&whole) => Ok(whole == 0),
                    _ => {
                        let number = number.to_string();
                        let own = it.go_name();
                        let name = if alias.is_empty() { &own } else { alias };
                        Err(self.mismatch_of(&format!("number {number}"), name))
                    }
                }
            }
            (FieldType::Float, Value::Number(number)) => Ok(number.as_f64() == Some(0.0)),
            (_, value) => mismatch(self, value),
        }
    }

    /// Reads a value whose type has a JSON of its own.
    fn own(&mut self, it: OwnForm, value: &mut Value) -> Result<IsEmpty, String> {
        match (it, &mut *value) {
            (
                OwnForm::Json
                | OwnForm::SchemaOrBool
                | OwnForm::SchemaOrArray
                | OwnForm::SchemaOrTexts,
                value,
            )
            | (OwnForm::Time | OwnForm::MicroTime, value @ Value::Null) => Ok(value.is_null()),
            (OwnForm::Time | OwnForm::MicroTime, Value::String(text)) => {
                *text = read_time(text, it == OwnForm::MicroTime)?;
                Ok(false)
            }
            (OwnForm::Time | OwnForm::MicroTime, value) => Err(self.mismatch(value, "string")),
            (OwnForm::Quantity, value @ Value::Null) => {
                *value = "0".into();
                Ok(false)
            }
            (OwnForm::Quantity, value) => {
                let text = match &*value {
                    Value::String(text) => text.trim().to_owned(),
                    other => other.to_string(),
                };
                *value = Quantity::parse(&text)?.to_string().into();
                Ok(false)
            }
            (OwnForm::IntOrString, value @ Value::Null) => {
                *value = 0.into();
                Ok(true)
            }
            (OwnForm::IntOrString, Value::String(_)) => Ok(false),
            (OwnForm::IntOrString, Value::Number(number)) => match number.as_i64() {
                Some(whole) if i32::try_from(whole).is_ok() => Ok(false),
                _ => Err(self.mismatch_of(&format!("number {number}"), "int32")),
            },
            (OwnForm::IntOrString, value) => Err(self.mismatch(value, "int32")),
        }
    }

    fn mismatch(&self, value: &Value, go_type: &str) -> String {
        self.mismatch_of(json_type(value), go_type)
    }

    fn mismatch_of(&self, found: &str, go_type: &str) -> String {
        let fields = self.path.iter().filter_map(|step| match step {
            PathStep::Field(name) | PathStep::Embedded(name) => Some(*name),
            PathStep::Index(_) | PathStep::Key(_) => None,
        });
        let fields: Vec<_> = fields.collect();
        if fields.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {go_type}");
        }
        let owner = self.owner.short_name();
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{} of type {go_type}",
            fields.join(".")
        )
    }

    /// Returns the path of a value as the errors of strict decoding show it, e.g. `spec.containers[0].image`.
    fn shown_path(&self) -> String {
        let mut shown = String::new();
        for step in &self.path {
            match step {
                PathStep::Index(index) => shown += &format!("[{index}]"),
                PathStep::Embedded(_) => {}
                PathStep::Field(_) | PathStep::Key(_) => {
                    let name = match step {
                        PathStep::Key(key) => key,
                        PathStep::Field(name) => *name,
                        PathStep::Index(_) | PathStep::Embedded(_) => "",
                    };
                    if !shown.is_empty() {
                        shown.push('.');
                    }
                    shown += name;
                }
            }
        }
        shown
    }
}

/// Returns a time as Kubernetes writes it: in UTC, to the second or to the microsecond.
fn read_time(text: &str, is_micro: bool) -> Result<String, String> {
    let (layout, part) = if is_micro {
        ("2006-01-02T15:04:05.000000Z07:00", ".000000")
    } else {
        ("2006-01-02T15:04:05Z07:00", "")
    };
    let refuse = |rest: &str, part: &str| {
        Err(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
        ))
    };
    let Ok(time) = text.parse::<Timestamp>() else {
        return refuse(text, "2006");
    };
    if !is_micro {
        return Ok(format!("{time:.0}"));
    }
    // Such a time has its six digits.
    let rest = text.get(19..).unwrap_or_default();
    let digits = rest.strip_prefix('.').unwrap_or_default();
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 6 {
        Ok(format!("{time:.6}"))
    } else {
        refuse(rest, part)
    }
}

/// Reads a byte of a list as Go does.
fn byte(value: &Value) -> Option<u8> {
    match value {
        Value::Null => Some(0),
        value => u8::try_from(value.as_u64()?).ok(),
    }
}

/// Returns the error of Go for a text that is no base64.
fn illegal_base64(text: &str, error: &base64::DecodeError) -> String {
    let at = match *error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            at
        }
        // Go names the beginning of an incomplete group of four letters.
        _ if !text.ends_with('=') => text.len() / 4 * 4,
        _ => text.len(),
    };
    format!("illegal base64 data at input byte {at}")
}
