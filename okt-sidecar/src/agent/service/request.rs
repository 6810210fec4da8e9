//! Rule 1: what a request must say, whatever it asks for.

use axum::extract::Path;
use axum::extract::rejection::{PathRejection, QueryRejection};

use crate::wire::{ActionId, ActionRequest, Code, Problem};

/// What is answered and recorded again and again must be short, the input apart.
pub(super) fn bounded(request: &ActionRequest) -> Result<(), Problem> {
    let mut texts = vec![
        ("state", request.state.as_str(), 1, 128),
        ("owner.uid", &request.owner.uid, 1, 128),
        ("owner.name", &request.owner.name, 0, 253),
        ("owner.namespace", &request.owner.namespace, 0, 253),
        (
            "graph",
            request.graph.as_deref().unwrap_or_default(),
            0,
            256,
        ),
    ];
    texts.extend((request.from.iter()).map(|state| ("from", state.as_str(), 1, 128)));
    for (field, text, least, most) in texts {
        if !(least..=most).contains(&text.len()) {
            let detail = format!("{field} has to be {least} to {most} bytes long");
            return Err(Problem::new(Code::BadRequest, detail));
        }
    }
    if request.from.len() > 1024 {
        return Err(Problem::new(Code::BadRequest, "from names too many states"));
    }
    Ok(())
}

/// The id in a path.
pub(super) fn action_id(id: Result<Path<String>, PathRejection>) -> Result<ActionId, Problem> {
    let bad = |error: String| Problem::new(Code::BadRequest, error);
    let Path(id) = id.map_err(|error| bad(error.body_text()))?;
    id.parse::<ActionId>()
        .map_err(|error| bad(error.to_string()))
}

/// What is wrong with the part of a path that follows the question mark.
#[expect(clippy::needless_pass_by_value, reason = "it is used in map_err")]
pub(super) fn bad_query(error: QueryRejection) -> Problem {
    Problem::new(Code::BadRequest, error.body_text())
}
