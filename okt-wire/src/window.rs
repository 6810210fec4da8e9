//! A window of a calendar, as a type for a spec.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A time that comes again by a calendar, and how long it lasts: a type for a spec.
///
/// ```
/// # use okt_wire::window::Window;
/// let saturday: Window = serde_json::from_str(
///     r#"{ "start": "0 2 * * 6", "duration": "4h", "timeZone": "Europe/Berlin" }"#,
/// )?;
/// assert_eq!(saturday.time_zone, "Europe/Berlin");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it begins, as five fields: minute, hour, day of the month, month, day of the week.
    pub start: String,
    /// How long it lasts (e.g. `4h`), at most seven days.
    pub duration: String,
    /// The time zone of `start`, by its name in the database of IANA.
    #[serde(default = "utc")]
    pub time_zone: String,
}

fn utc() -> String {
    "Etc/UTC".to_owned()
}

impl JsonSchema for Window {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "required": ["start", "duration"],
            "properties": {
                "start": {
                    "type": "string",
                    "description": "When it begins: minute, hour, day of the month, month, day of the week.",
                    "maxLength": 256,
                    "pattern": r"^\s*\S+(\s+\S+){4}\s*$",
                },
                "duration": {
                    "type": "string",
                    "description": "How long it lasts (e.g. 4h), at most seven days.",
                    "maxLength": 32,
                },
                "timeZone": {
                    "type": "string",
                    "description": "The time zone of `start`.",
                    "maxLength": 64,
                    "default": "Etc/UTC",
                },
            },
        })
    }
}
