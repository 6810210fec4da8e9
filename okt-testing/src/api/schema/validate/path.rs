//! Builds the paths of fields.

/// Returns the name of a path within a message.
pub(super) fn subject(path: &str) -> &str {
    if path.is_empty() { "<root>" } else { path }
}

/// Returns the path of a field.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
