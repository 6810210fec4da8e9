//! An error and its causes as one text.

use std::error::Error;

/// Joins an error and its causes, without repetitions.
///
/// ```
/// #[derive(Debug, thiserror::Error)]
/// #[error("read the port")]
/// struct PortError(#[from] std::num::ParseIntError);
///
/// let error = PortError::from("x".parse::<u16>().unwrap_err());
/// let text = okt_agent::with_causes(&error);
/// assert_eq!(text, "read the port: invalid digit found in string");
/// ```
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let deeper = cause.to_string();
        if !text.contains(&deeper) {
            text = format!("{text}: {deeper}");
        }
        source = cause.source();
    }
    text
}
