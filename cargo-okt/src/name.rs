//! The names of a project, checked so that none breaks its code or is refused by a cluster.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use heck::ToUpperCamelCase;
use okt_apiserver::builtin_kinds;
use okt_syntax::source::identifier;

use crate::template;

/// The longest name, in bytes: the namespace is the name plus `-system`, and a cluster limits its length.
const NAME_LIMIT: usize = 56;

/// The longest kind, in bytes: its plural must be a DNS label.
const KIND_LIMIT: usize = 60;

/// The longest group, in bytes: the longest DNS name, less the plural that precedes it in the name of a CRD.
const GROUP_LIMIT: usize = 253 - 64;

/// Names that Cargo refuses for a program, or uses for its directories.
const OF_CARGO: [&str; 9] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "proc-macro",
    "std",
    "test",
];

/// Names that a file on Windows cannot have.
const OF_WINDOWS: [&str; 4] = ["aux", "con", "nul", "prn"];

/// Names that Rust has in scope everywhere, or that derives write without a path.
const OF_RUST: &str = "AsMut AsRef Box Clone Copy Debug Default Drop Eq Err Extend Fn FnMut FnOnce From Future Hash Into Iterator \
    None Ok Option Ord PartialEq PartialOrd Result Send Sized Some String Sync ToString Unpin Vec";

/// Returns whether a text is a name in Rust, without `r#`.
pub(crate) fn is_identifier(text: &str) -> bool {
    identifier(text).is_some_and(|name| name == text)
}

/// The name of the package, its program and its service account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name(String);

impl Name {
    /// Derives the name of a project from its directory.
    pub(crate) fn of(path: &Path) -> Result<Self, String> {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name else {
            return Err(format!(
                "{} does not end in a name; name the directory to be made, e.g. `order-operator`",
                path.display()
            ));
        };
        let letters = name.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        });
        let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
        let ends = !name.ends_with(['-', '_']);
        if !letters || !begins || !ends || name.len() > NAME_LIMIT {
            return Err(format!(
                "`{name}` cannot be the name of an operator: at most {NAME_LIMIT} lower case letters, digits, `-` and `_`, a letter first and no `-` or `_` last"
            ));
        }
        if !is_identifier(&name.replace('-', "_")) {
            return Err(format!("`{name}` is a word of Rust; try `{name}-operator`"));
        }
        let dashed = name.replace('_', "-");
        let spelled = dashed.as_str();
        let port = |of: &str| spelled.strip_prefix(of).is_some_and(|rest| rest.len() == 1);
        if OF_CARGO.contains(&spelled)
            || OF_WINDOWS.contains(&spelled)
            || port("com")
            || port("lpt")
            // Two packages of one name and two paths cannot be in one build.
            || spelled.starts_with("okt-")
            || template::depends_on(spelled)
        {
            return Err(format!(
                "`{name}` is taken, by Cargo, by Windows or by a crate that the operator needs; try `{name}-operator`"
            ));
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of an operator's objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KindName(String);

impl KindName {
    /// Derives the kind from the name of an operator (e.g. `Order` from `order-operator`).
    pub(crate) fn named_after(name: &Name) -> Result<Self, String> {
        let Name(name) = name;
        let of = name
            .strip_suffix("operator")
            .unwrap_or(name)
            .trim_end_matches(['-', '_']);
        let kind = if of.is_empty() { name } else { of }.to_upper_camel_case();
        kind.parse()
            .map_err(|why| format!("{why}; `--kind` names another one"))
    }

    /// Returns the kind as written in the code.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KindName {
    type Err = String;

    fn from_str(kind: &str) -> Result<Self, String> {
        let begins = kind.starts_with(|first: char| first.is_ascii_uppercase());
        let letters = kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !begins || !letters || kind.len() > KIND_LIMIT {
            return Err(format!(
                "`{kind}` is no kind: at most {KIND_LIMIT} letters and digits in UpperCamelCase, e.g. `Order`"
            ));
        }
        // `List` is of kubectl alone.
        let mut taken = builtin_kinds().chain([("List", "lists")]);
        let lower = kind.to_lowercase();
        let plural = format!("{lower}s");
        let names_it = |(own, all): &(&str, &str)| {
            own.to_lowercase() == lower || [&*lower, &plural].contains(all)
        };
        if let Some((own, _)) = taken.find(names_it) {
            return Err(format!(
                "Kubernetes has a kind `{own}`, and kubectl would take one for the other; choose another name, e.g. `Managed{kind}`"
            ));
        }
        if !is_identifier(kind)
            || OF_RUST.split(' ').any(|name| name == kind)
            || template::has_a_name_of(kind)
        {
            return Err(format!(
                "the kind `{kind}` would be taken for something else in the code of the operator"
            ));
        }
        Ok(Self(kind.to_owned()))
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The API group of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiGroup(String);

impl FromStr for ApiGroup {
    type Err = String;

    fn from_str(group: &str) -> Result<Self, String> {
        let is_label = |label: &str| {
            let of_it =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            let hangs = label.starts_with('-') || label.ends_with('-');
            (1..=63).contains(&label.len()) && label.bytes().all(of_it) && !hangs
        };
        let labels: Vec<_> = group.split('.').collect();
        if labels.len() < 2
            || !labels.iter().all(|label| is_label(label))
            || group.len() > GROUP_LIMIT
        {
            return Err(format!(
                "`{group}` is no API group: a name of DNS with at least one dot, at most {GROUP_LIMIT} characters, e.g. `shop.example.com`"
            ));
        }
        let below = |domain: &str| {
            let host = group.strip_suffix(domain);
            host.is_some_and(|host| host.is_empty() || host.ends_with('.'))
        };
        if below("k8s.io") || below("kubernetes.io") {
            return Err(format!(
                "`{group}` belongs to Kubernetes, which takes no CRD there without its approval; take a domain of yours"
            ));
        }
        Ok(Self(group.to_owned()))
    }
}

impl fmt::Display for ApiGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
