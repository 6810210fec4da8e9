//! The text of an object, compressed while it is at rest: the text that all objects with a lifecycle have in common is left
//! out.

use std::borrow::Cow;
use std::fmt;

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

/// The compression dictionary: the text that all objects have in common, in the order of a server.
const COMMON: &str = concat!(
    r#"{"apiVersion":"okt.dev/v1","kind":"","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":""},"#,
    r#""creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["okt.dev/lifecycle"],"#,
    r#""generation":1,"labels":{"app.kubernetes.io/name":"","app.kubernetes.io/instance":""},"name":"","namespace":"default","#,
    r#""ownerReferences":[],"resourceVersion":"1","uid":"00000000-0000-4000-8000-000000000000"},"spec":{"lifecycle":{"state":"","#,
    r#""request":"","visit":{"request":"","state":""}}},"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","#,
    r#""message":"","observedGeneration":1,"reason":"","status":"True","type":"Available"},"#,
    r#"{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"the object is in the desired state","observedGeneration":1,"#,
    r#""reason":"","status":"False","type":"Deleting"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"","#,
    r#""observedGeneration":1,"reason":"NotPaused","status":"False","type":"Paused"},"#,
    r#"{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"","observedGeneration":1,"reason":"","status":"True","type":"Ready"}],"#,
    r#""lifecycle":{"action":{"attempt":1,"failure":{"message":"","reason":""},"generation":1,"id":"","leaving":true,"message":"","phase":"Done","#,
    r#""startedAt":"2026-01-01T00:00:00Z"},"changed":"","desired":{"reached":true,"state":"","transition":1},"#,
    r#""graph":"sha256:","history":[{"at":"2026-01-01T00:00:00Z","cause":"Next","from":"","to":"","transition":1},"#,
    r#"{"at":"2026-01-01T00:00:00Z","cause":"DesiredState","from":"","to":"","transition":2}],"jumps":0,"revision":"","rounds":0,"#,
    r#""since":"2026-01-01T00:00:00Z","state":"","trail":">","transition":3,"visit":{"outcome":"Reached","request":"","state":"","transition":1}},"#,
    r#""observedGeneration":1}}"#,
);

/// A text that can be compressed.
#[derive(Clone)]
pub(crate) enum Packed {
    /// As it is: an object in progress soon has another version, and compressing each costs more than all decisions.
    Plain(Box<str>),
    /// Compressed.
    Compressed(Box<[u8]>),
}

impl Packed {
    /// Compresses a text.
    pub(crate) fn new(text: &str) -> Self {
        let compressed = compress_prepend_size_with_dict(text.as_bytes(), COMMON.as_bytes());
        Self::Compressed(compressed.into())
    }

    /// Compresses the text, if it is not compressed.
    pub(crate) fn pack(&mut self) {
        if let Self::Plain(text) = self {
            *self = Self::new(text);
        }
    }

    /// Returns its size in bytes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Compressed(bytes) => bytes.len(),
        }
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Compressed(bytes) => {
                decompress_size_prepended_with_dict(bytes, COMMON.as_bytes())
                    .ok()
                    .and_then(|text| String::from_utf8(text).ok())
                    .expect("what was packed can be unpacked")
                    .into()
            }
        }
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_text_takes_few_bytes_and_nothing_is_lost() {
        for text in [
            "",
            "{}",
            COMMON,
            &"\u{e4}".repeat(5000),
            &COMMON.replace("2026", "2031"),
        ] {
            let mut packed = Packed::Plain(text.into());
            assert_eq!((&*packed.text(), packed.len()), (text, text.len()));
            packed.pack();
            assert_eq!(
                (&*packed.text(), packed.len()),
                (text, Packed::new(text).len())
            );
        }
        assert!(Packed::new(COMMON).len() < 40);
    }
}
