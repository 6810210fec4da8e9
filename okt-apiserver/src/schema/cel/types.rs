//! The types of CEL and their compatibility.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::value::escape;
use crate::schema::{self, Additional, ListType, Schema};

/// A type of an expression, or of a parameter of a function.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// A type that is checked when the rule runs.
    Dyn,
    /// A type that is not yet known (e.g. of the items of `[]`); the context decides it.
    Open,
    /// A type without parameters, by its name (e.g. `int`, `net.IP`).
    Plain(&'static str),
    /// A list of a type, and how its items are identified.
    List(Rc<Type>, ListType),
    Map(Rc<Type>, Rc<Type>),
    Optional(Rc<Type>),
    /// An object of a schema; two such types are equal if they are at the same place of the schema.
    Object(Rc<BTreeMap<String, Type>>),
    /// A parameter of a signature; the letter restricts its types.
    Parameter(char),
}

pub(super) const BOOL: Type = Type::Plain("bool");
pub(super) const TYPE: Type = Type::Plain("type");
const STRING: Type = Type::Plain("string");

/// The names that a rule can use as a type.
pub(super) const NAMES: [&str; 19] = [
    "bool",
    "bytes",
    "double",
    "int",
    "null_type",
    "string",
    "type",
    "uint",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.CIDR",
    "net.IP",
    "list",
    "map",
    "optional_type",
];

/// The types that are bound to the parameters of one call.
pub(super) type Bindings = BTreeMap<char, Type>;

impl Type {
    /// Whether a rule can use this name as a type (e.g. `type(self.x) == int`).
    pub(super) fn is_name(name: &str) -> bool {
        NAMES.contains(&name)
    }

    /// Reads a type of a signature (e.g. `map<K,list<string>>`).
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        if let Some((outer, inner)) = text.split_once('<') {
            let inner = inner
                .strip_suffix('>')
                .expect("the signatures of this crate are well formed");
            return match outer {
                "list" => Self::list(Self::parse(inner)),
                "optional" => Self::Optional(Rc::new(Self::parse(inner))),
                _ => {
                    let (key, value) = inner
                        .split_once(',')
                        .expect("a map of a signature has two types");
                    Self::Map(Rc::new(Self::parse(key)), Rc::new(Self::parse(value)))
                }
            };
        }
        match text {
            "dyn" => Self::Dyn,
            "duration" => Self::Plain("google.protobuf.Duration"),
            "timestamp" => Self::Plain("google.protobuf.Timestamp"),
            "format" => Self::Plain("kubernetes.NamedFormat"),
            "quantity" => Self::Plain("kubernetes.Quantity"),
            "semver" => Self::Plain("kubernetes.Semver"),
            "url" => Self::Plain("kubernetes.URL"),
            "cidr" => Self::Plain("net.CIDR"),
            "ip" => Self::Plain("net.IP"),
            _ => match NAMES.iter().find(|name| **name == text) {
                Some(name) => Self::Plain(name),
                None => Self::Parameter(text.chars().next().unwrap_or('A')),
            },
        }
    }

    pub(super) fn list(items: Self) -> Self {
        Self::List(Rc::new(items), ListType::Atomic)
    }

    /// Returns the type of the values of a schema; `None` if rules cannot see them.
    pub(super) fn of(schema: &Schema, is_object: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match schema.kind? {
            schema::Type::Boolean => BOOL,
            schema::Type::Integer => Self::Plain("int"),
            schema::Type::Number => Self::Plain("double"),
            schema::Type::String => match schema.format.as_deref() {
                Some("byte") => Self::Plain("bytes"),
                Some("duration") => Self::Plain("google.protobuf.Duration"),
                Some("date" | "date-time") => Self::Plain("google.protobuf.Timestamp"),
                _ => STRING,
            },
            schema::Type::Array => {
                let items = schema.items.as_deref()?;
                let below = Self::of(items, items.embedded)?;
                Self::List(Rc::new(below), schema.list.clone())
            }
            schema::Type::Object => match &schema.additional {
                Additional::Of(values) => {
                    let below = Self::of(values, values.embedded)?;
                    Self::Map(Rc::new(STRING), Rc::new(below))
                }
                _ => Self::Object(Rc::new(fields_of(schema, is_object))),
            },
        })
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Open)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self, Self::Plain(own) if *own == name)
    }

    /// Whether it is a number, a boolean, a duration or a time.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Plain(name) => matches!(
                *name,
                "bool"
                    | "double"
                    | "int"
                    | "uint"
                    | "google.protobuf.Duration"
                    | "google.protobuf.Timestamp"
            ),
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }

    /// Whether a value of type `given` is accepted for this type.
    pub(super) fn takes(&self, given: &Self, bound: &mut Bindings) -> bool {
        match (self, given) {
            (Self::Parameter(letter), _) => bind(*letter, given, bound),
            (Self::Dyn | Self::Open, _) | (_, Self::Open) => true,
            (_, Self::Dyn) => {
                self.release(bound);
                true
            }
            (_, Self::Plain("null_type")) => self.is_nullable(),
            (Self::Plain("null_type"), _) => given.is_nullable(),
            (Self::Plain(a), Self::Plain(b)) => a == b,
            (Self::List(a, _), Self::List(b, _)) | (Self::Optional(a), Self::Optional(b)) => {
                a.takes(b, bound)
            }
            (Self::Map(key, value), Self::Map(other, its)) => {
                key.takes(other, bound) && value.takes(its, bound)
            }
            (Self::Object(a), Self::Object(b)) => Rc::ptr_eq(a, b),
            (
                Self::Plain(_)
                | Self::List(..)
                | Self::Map(..)
                | Self::Optional(_)
                | Self::Object(_),
                _,
            ) => false,
        }
    }

    /// Binds the parameters of this type to any type, because the value may have any.
    fn release(&self, bound: &mut Bindings) {
        match self {
            Self::Parameter(letter) => {
                bound.insert(*letter, Self::Dyn);
            }
            Self::List(inner, _) | Self::Optional(inner) => inner.release(bound),
            Self::Map(key, value) => {
                key.release(bound);
                value.release(bound);
            }
            Self::Dyn | Self::Open | Self::Plain(_) | Self::Object(_) => {}
        }
    }

    /// Whether `null` is accepted for this type.
    fn is_nullable(&self) -> bool {
        match self {
            Self::Object(_) | Self::Optional(_) => true,
            Self::Plain(name) => name.contains('.') || *name == "null_type",
            _ => false,
        }
    }

    /// Returns the type with its parameters filled in.
    pub(super) fn fill(&self, bound: &Bindings) -> Self {
        match self {
            Self::Parameter(letter) => bound.get(letter).cloned().unwrap_or(Self::Open),
            Self::List(inner, list) => Self::List(Rc::new(inner.fill(bound)), list.clone()),
            Self::Optional(inner) => Self::Optional(Rc::new(inner.fill(bound))),
            Self::Map(key, value) => {
                Self::Map(Rc::new(key.fill(bound)), Rc::new(value.fill(bound)))
            }
            Self::Dyn | Self::Open | Self::Plain(_) | Self::Object(_) => self.clone(),
        }
    }

    /// Returns the common type of both, if there is one.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Open, kind) | (kind, Self::Open) => kind.clone(),
            (Self::Dyn, _) | (_, Self::Dyn) => Self::Dyn,
            (Self::List(a, list), Self::List(b, _)) => {
                Self::List(Rc::new(a.join(b)?), list.clone())
            }
            (Self::Optional(a), Self::Optional(b)) => Self::Optional(Rc::new(a.join(b)?)),
            (Self::Map(key, value), Self::Map(other, its)) => {
                Self::Map(Rc::new(key.join(other)?), Rc::new(value.join(its)?))
            }
            (Self::Plain("null_type"), kind) | (kind, Self::Plain("null_type"))
                if kind.is_nullable() =>
            {
                kind.clone()
            }
            _ => {
                return self
                    .takes(other, &mut Bindings::new())
                    .then(|| self.clone());
            }
        })
    }
}

/// Returns the types of the fields that rules see, by their CEL names.
fn fields_of(schema: &Schema, is_object: bool) -> BTreeMap<String, Type> {
    let visible = schema.properties.iter().filter(|(_, it)| !it.hidden);
    let types = visible.filter_map(|(name, property)| {
        let kind = match name.as_str() {
            // Of the fields of an object itself, rules see only these.
            "apiVersion" | "kind" if is_object => STRING,
            "metadata" if is_object => {
                let names = ["name", "generateName"].map(|key| (key.to_owned(), STRING));
                Type::Object(Rc::new(names.into()))
            }
            _ => Type::of(property, property.embedded)?,
        };
        Some((escape(name).into_owned(), kind))
    });
    types.collect()
}

/// Binds a parameter to a type, or checks that its binding accepts the type.
fn bind(letter: char, given: &Type, bound: &mut Bindings) -> bool {
    let name = match given {
        Type::Plain(name) => *name,
        _ => "",
    };
    let allowed = match letter {
        // Types with an order.
        'C' => given.is_scalar() || matches!(name, "string" | "bytes"),
        // Types that can be summed up.
        'S' => given.is_scalar() && !matches!(name, "bool" | "google.protobuf.Timestamp"),
        'N' | 'M' => matches!(name, "int" | "uint" | "double"),
        _ => true,
    };
    if !allowed && !given.is_open() {
        return false;
    }
    let joined = match bound.get(&letter) {
        None => given.clone(),
        Some(known) => match known.join(given) {
            Some(joined) => joined,
            None => return false,
        },
    };
    bound.insert(letter, joined);
    true
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Open => f.write_str("dyn"),
            Self::Plain("null_type") => f.write_str("null"),
            Self::Plain("google.protobuf.Duration") => f.write_str("duration"),
            Self::Plain("google.protobuf.Timestamp") => f.write_str("timestamp"),
            Self::Plain(name) => f.write_str(name),
            Self::List(items, _) => write!(f, "list({items})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Object(_) => f.write_str("object"),
            Self::Parameter(letter) => write!(f, "{letter}"),
        }
    }
}
