//! Names from specs: each refers to an object in the namespace of the referring object, or to none.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;

use super::kind::ResourceKind;

/// The namespace and name of an object.
pub(crate) type Name = (Option<String>, String);

/// The key of an object: the index of its kind among the owned kinds, its namespace and its name.
pub(crate) type Key = (usize, Option<String>, String);

/// Where an object is in the cluster.
#[derive(Clone, Copy)]
pub(super) struct ResourcePlace<'a> {
    pub(super) kind: &'a ResourceKind,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
}

/// The highest number of invalid names that are logged, so that users cannot flood the log.
const LOGGED: usize = 1000;

/// The longest part of a text that the log shows, in characters.
const SHOWN: usize = 80;

/// Returns the namespace and name of a referenced object: in `namespace`, else in the namespace of the referring one.
///
/// Returns none if no such object can exist: the name is invalid, or a namespaced kind has no valid namespace.
pub(crate) fn placed(
    kind: &ResourceKind,
    own: Option<&str>,
    namespace: Option<&str>,
    name: &str,
) -> Option<Name> {
    if !is_name(name) {
        return None;
    }
    if !kind.namespaced {
        return Some((None, name.to_owned()));
    }
    let namespace = namespace.or(own).filter(|it| is_label(it))?;
    Some((Some(namespace.to_owned()), name.to_owned()))
}

/// Returns whether a text can be a name of some kind: one segment of a URL path.
///
/// Most kinds allow fewer names, but Kubernetes has names with colons and capital letters (roles, addresses).
pub(crate) fn is_name(text: &str) -> bool {
    let breaks_out = |c: char| matches!(c, '/' | '%') || c.is_control() || c.is_whitespace();
    !matches!(text, "" | "." | "..") && !text.contains(breaks_out)
}

/// Invalid names; OKT logs each once.
#[derive(Debug, Default)]
pub(crate) struct Misnamed(Mutex<BTreeSet<u64>>);

/// Whether to log a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Logged {
    Now,
    /// Log it as the last one.
    Last,
    No,
}

impl Misnamed {
    /// Logs that an object refers to an invalid name; an empty text is not an error.
    pub(crate) fn log(&self, who: &Name, kind: &ResourceKind, namespace: Option<&str>, name: &str) {
        if name.is_empty() {
            return;
        }
        let logged = self.note(kind, namespace, name);
        if logged == Logged::No {
            return;
        }
        let (in_namespace, object) = who;
        let in_namespace = in_namespace.as_deref().unwrap_or_default();
        let text: String = name.chars().take(SHOWN).collect();
        tracing::warn!(
            object, namespace = in_namespace, %kind, text,
            "the object refers to nothing: no object beside it can have this name; correct the spec, \
             or declare `refers_across` where other namespaces may be reached"
        );
        if logged == Logged::Last {
            tracing::warn!("further texts that are no names are not logged");
        }
    }

    fn note(&self, kind: &ResourceKind, namespace: Option<&str>, name: &str) -> Logged {
        let mut hasher = DefaultHasher::new();
        (kind, namespace, name).hash(&mut hasher);
        let mut noted = self.0.lock();
        if noted.len() >= LOGGED || !noted.insert(hasher.finish()) {
            Logged::No
        } else if noted.len() == LOGGED {
            Logged::Last
        } else {
            Logged::Now
        }
    }
}

/// Returns whether a text can be the name of a namespace (RFC 1123).
pub fn is_label(text: &str) -> bool {
    let of_it = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let hangs = text.starts_with('-') || text.ends_with('-');
    (1..=63).contains(&text.len()) && text.bytes().all(of_it) && !hangs
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Secret};

    use super::*;

    #[test]
    fn a_text_names_an_object_beside_its_own_or_nothing() {
        let (secret, node) = (ResourceKind::of::<Secret>(), ResourceKind::of::<Node>());
        let beside = |text: &str| placed(&secret, Some("own"), None, text);
        let name = |text: &str| Some((Some("own".to_owned()), text.to_owned()));
        for text in ["a", "a.b-c", "system:node", "2001:db8::1", "x.y"] {
            assert_eq!(beside(text), name(text), "{text}");
        }
        for text in ["", ".", "..", "a/b", "/a", "a/", "%2f", "a b", "a\n", "a\0"] {
            assert_eq!(beside(text), None, "{text}");
            assert_eq!(placed(&node, None, None, text), None, "{text}");
            assert_eq!(
                placed(&secret, Some("own"), Some(text), "a"),
                None,
                "{text}"
            );
        }
        assert_eq!(
            placed(&secret, None, None, "a"),
            None,
            "it has no namespace"
        );
        let other = (Some("other".to_owned()), "a".to_owned());
        assert_eq!(
            placed(&secret, Some("own"), Some("other"), "a"),
            Some(other)
        );
        let of_cluster = Some((None, "a".to_owned()));
        assert_eq!(placed(&node, Some("own"), Some("other"), "a"), of_cluster);
    }

    #[test]
    fn an_invalid_name_is_logged_once_and_the_log_is_limited() {
        let misnamed = Misnamed::default();
        let kind = ResourceKind::of::<Secret>();
        let note = |text: &str| misnamed.note(&kind, None, text);
        assert_eq!((note("a/b"), note("a/b")), (Logged::Now, Logged::No));
        let flood: Vec<_> = (0..2 * LOGGED).map(|it| note(&format!("a/{it}"))).collect();
        assert_eq!(
            flood.iter().filter(|it| **it == Logged::Now).count(),
            LOGGED - 2
        );
        assert_eq!(flood.iter().filter(|it| **it == Logged::Last).count(), 1);
        assert_eq!(misnamed.0.lock().len(), LOGGED);
    }
}
