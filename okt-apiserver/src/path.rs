//! Reads the path and the query of a request.

use std::collections::BTreeMap;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestTarget {
    Resource(ResourcePath),
    /// Any other path, as its segments.
    Other(Vec<String>),
}

/// The path of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

impl RequestTarget {
    pub(crate) fn parse(path: &str) -> Self {
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(decode)
            .collect();
        let words: Vec<&str> = segments.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => resource("", version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                resource(group, version, rest)
            }
            _ => None,
        }
        .map_or(Self::Other(segments), Self::Resource)
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Option<ResourcePath> {
    let base = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        ..ResourcePath::default()
    };
    let own = |text: &&str| Some((*text).to_owned());
    match rest {
        ["watch", ..] => None,
        // The subresources of a namespace look like kinds within the namespace.
        ["namespaces", name, subresource @ ("status" | "finalize")] if group.is_empty() => {
            Some(ResourcePath {
                plural: "namespaces".to_owned(),
                name: own(name),
                subresource: own(subresource),
                ..base
            })
        }
        ["namespaces", namespace, plural, more @ ..] if more.len() <= 2 => Some(ResourcePath {
            plural: (*plural).to_owned(),
            namespace: own(namespace),
            name: more.first().and_then(own),
            subresource: more.get(1).and_then(own),
            ..base
        }),
        [plural, more @ ..] if more.len() <= 2 => Some(ResourcePath {
            plural: (*plural).to_owned(),
            name: more.first().and_then(own),
            subresource: more.get(1).and_then(own),
            ..base
        }),
        _ => None,
    }
}

fn decode(segment: &str) -> String {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8_lossy()
        .into_owned()
}

/// The parameters of a request; except for lists, the first value of a name counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let mut parameters: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (key, value) in form_urlencoded::parse(query.as_bytes()).into_owned() {
            parameters.entry(key).or_default().push(value);
        }
        Self(parameters)
    }

    /// Returns the query without a parameter.
    pub(crate) fn without(mut self, key: &str) -> Self {
        self.0.remove(key);
        self
    }

    pub(crate) fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.first(key).unwrap_or_default()
    }

    /// Whether a flag is set: to any value other than `0` and `false`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        let word = self.first(key);
        word.is_some_and(|word| word != "0" && !word.eq_ignore_ascii_case("false"))
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.text(key).parse().ok()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }
}
