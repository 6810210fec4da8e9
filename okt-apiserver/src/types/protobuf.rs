//! Reads objects in protobuf, as clients written in Go send the kinds that exist without a CRD.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Buf;
use jiff::Timestamp;
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde_json::{Map, Number, Value};

use super::{FieldType, GoDefinition, GoType, OwnForm, StructType};

/// The content type of protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// What stands in front of each body.
const MAGIC: &[u8] = b"k8s\0";

/// Reads a body; the object has its `apiVersion` and `kind` if the client sent them.
///
/// # Errors
/// Why the body cannot be read.
pub(crate) fn from_protobuf(body: &[u8]) -> Result<Value, String> {
    let body = body.strip_prefix(MAGIC).ok_or(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    )?;
    read(body).map_err(|Unreadable(why)| why)
}

/// Why a body cannot be read.
struct Unreadable(String);

impl From<DecodeError> for Unreadable {
    fn from(error: DecodeError) -> Self {
        Self(error.to_string())
    }
}

/// Reads `runtime.Unknown`: the type of an object, and its own message.
fn read(mut body: &[u8]) -> Result<Value, Unreadable> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    while body.has_remaining() {
        match decode_key(&mut body)? {
            (1, WireType::LengthDelimited) => {
                let mut meta = part(&mut body)?;
                while meta.has_remaining() {
                    match decode_key(&mut meta)? {
                        (1, WireType::LengthDelimited) => api_version = text(&mut meta)?,
                        (2, WireType::LengthDelimited) => kind = text(&mut meta)?,
                        (number, wire) => {
                            skip_field(wire, number, &mut meta, DecodeContext::default())?;
                        }
                    }
                }
            }
            (2, WireType::LengthDelimited) => raw = part(&mut body)?,
            (number, wire) => skip_field(wire, number, &mut body, DecodeContext::default())?,
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let mut fields = Map::new();
    match GoType::of_kind(group, version, &kind).map(GoType::definition) {
        Some(GoDefinition::Struct(it)) => message(it, raw, &mut fields)?,
        _ => {
            return Err(Unreadable(format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
            )));
        }
    }
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    Ok(fields.into())
}

/// Adds the fields of a message to an object.
fn message(
    it: &'static StructType,
    mut body: &[u8],
    object: &mut Map<String, Value>,
) -> Result<(), Unreadable> {
    while body.has_remaining() {
        let (number, wire) = decode_key(&mut body)?;
        let Some(field) = it.fields.iter().find(|field| field.number == number) else {
            skip_field(wire, number, &mut body, DecodeContext::default())?;
            continue;
        };
        if field.name.is_empty()
            && let (Some(inline), WireType::LengthDelimited) = (field.value.as_struct(), wire)
        {
            message(inline, part(&mut body)?, object)?;
            continue;
        }
        let present = object.entry(field.name).or_insert(Value::Null);
        value(&field.value, wire, &mut body, present)?;
    }
    Ok(())
}

/// Reads one value; one of a list or a map is added to those before it.
fn value(
    it: &'static FieldType,
    wire: WireType,
    body: &mut &[u8],
    to: &mut Value,
) -> Result<(), Unreadable> {
    match (it, wire) {
        (FieldType::Pointer(it), _) => value(it, wire, body, to)?,
        (FieldType::Named(named), _) => match named.definition() {
            // A list with a name is a message of its own, with its items in field 1.
            GoDefinition::Alias(FieldType::List(of)) => {
                let mut items = part(body)?;
                while items.has_remaining() {
                    let (_, wire) = decode_key(&mut items)?;
                    let item = added(to);
                    value(of, wire, &mut items, item)?;
                }
            }
            GoDefinition::Alias(it) => value(it, wire, body, to)?,
            GoDefinition::Struct(it) => {
                let fields = crate::object::fields(to);
                message(it, part(body)?, fields)?;
            }
        },
        (FieldType::List(of), _) => {
            let item = added(to);
            value(of, wire, body, item)?;
        }
        (FieldType::Map(of), WireType::LengthDelimited) => {
            let mut entry = part(body)?;
            let (mut key, mut found) = (String::new(), Value::Null);
            while entry.has_remaining() {
                match decode_key(&mut entry)? {
                    (1, WireType::LengthDelimited) => key = text(&mut entry)?,
                    (2, wire) => value(of, wire, &mut entry, &mut found)?,
                    (number, wire) => {
                        skip_field(wire, number, &mut entry, DecodeContext::default())?;
                    }
                }
            }
            crate::object::fields(to).insert(key, found);
        }
        (FieldType::Text, WireType::LengthDelimited) => *to = text(body)?.into(),
        (FieldType::Bytes, WireType::LengthDelimited) => {
            *to = BASE64_STANDARD.encode(part(body)?).into();
        }
        (FieldType::Flag, WireType::Varint) => *to = (decode_varint(body)? != 0).into(),
        (FieldType::Int32 | FieldType::Int64, WireType::Varint) => {
            *to = decode_varint(body)?.cast_signed().into();
        }
        (FieldType::Float, WireType::SixtyFourBit) => {
            let bits = body
                .try_get_f64_le()
                .map_err(|_| Unreadable("buffer underflow".to_owned()))?;
            *to = Number::from_f64(bits).into();
        }
        (FieldType::Own(own), WireType::LengthDelimited) => *to = own_form(*own, part(body)?)?,
        (_, wire) => skip_field(wire, 1, body, DecodeContext::default())?,
    }
    Ok(())
}

/// Adds an item to a list and returns it.
fn added(list: &mut Value) -> &mut Value {
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(items) = list else {
        unreachable!("it is an array")
    };
    items.push(Value::Null);
    let last = items.len() - 1;
    &mut items[last]
}

/// Reads the message of a type whose JSON is its own.
fn own_form(it: OwnForm, body: &[u8]) -> Result<Value, Unreadable> {
    let mut numbers = [0_i64; 4];
    let mut parts: Vec<(u32, &[u8])> = Vec::new();
    let mut rest = body;
    while rest.has_remaining() {
        match decode_key(&mut rest)? {
            (at @ 1..4, WireType::Varint) => {
                let number = decode_varint(&mut rest)?.cast_signed();
                numbers[usize::try_from(at).unwrap_or(0)] = number;
            }
            (at, WireType::LengthDelimited) => parts.push((at, part(&mut rest)?)),
            (at, wire) => skip_field(wire, at, &mut rest, DecodeContext::default())?,
        }
    }
    let texts_at = |wanted: u32| {
        parts
            .iter()
            .filter(move |(at, _)| *at == wanted)
            .map(|(_, part)| *part)
    };
    let text_at = |wanted: u32| {
        texts_at(wanted)
            .map(String::from_utf8_lossy)
            .next_back()
            .unwrap_or_default()
    };
    let schema = |body: &[u8]| {
        let mut schema = Map::new();
        let found = GoType::named("apiextensions.v1.JSONSchemaProps").map(GoType::definition);
        if let Some(GoDefinition::Struct(it)) = found {
            message(it, body, &mut schema)?;
        }
        Ok::<_, Unreadable>(Value::Object(schema))
    };
    let last_schema = |at: u32| texts_at(at).next_back().map(schema).transpose();
    Ok(match it {
        OwnForm::Time | OwnForm::MicroTime if body.is_empty() => Value::Null,
        OwnForm::Time | OwnForm::MicroTime => {
            let nanos = i32::try_from(numbers[2]).unwrap_or(0);
            match Timestamp::new(numbers[1], nanos) {
                // Kubernetes writes these digits also where they are zeros.
                Ok(time) if it == OwnForm::MicroTime => format!("{time:.6}").into(),
                Ok(time) => format!("{time:.0}").into(),
                Err(error) => return Err(Unreadable(error.to_string())),
            }
        }
        OwnForm::Quantity => text_at(1).into(),
        OwnForm::IntOrString if numbers[1] == 1 => text_at(3).into(),
        OwnForm::IntOrString => numbers[2].into(),
        OwnForm::Json => serde_json::from_str(&text_at(1)).unwrap_or_default(),
        OwnForm::SchemaOrBool => match last_schema(2)? {
            Some(schema) => schema,
            None => (numbers[1] != 0).into(),
        },
        OwnForm::SchemaOrArray => match last_schema(1)? {
            Some(schema) => schema,
            None => Value::Array(texts_at(2).map(schema).collect::<Result<_, _>>()?),
        },
        OwnForm::SchemaOrTexts => match last_schema(1)? {
            Some(schema) => schema,
            None => texts_at(2).map(String::from_utf8_lossy).collect(),
        },
    })
}

/// Reads a part whose length stands in front of it.
fn part<'b>(body: &mut &'b [u8]) -> Result<&'b [u8], Unreadable> {
    let length = usize::try_from(decode_varint(body)?).unwrap_or(usize::MAX);
    let (part, rest) = body
        .split_at_checked(length)
        .ok_or_else(|| Unreadable("buffer underflow".to_owned()))?;
    *body = rest;
    Ok(part)
}

fn text(body: &mut &[u8]) -> Result<String, Unreadable> {
    let text = part(body)?;
    match str::from_utf8(text) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Unreadable("invalid UTF-8 in a string".to_owned())),
    }
}
