//! The kind `Widget`: its resource and its operator.

mod operator;
mod resource;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::{Ready, ready};

use okt::kube::Client;

use self::operator::Keeper;

/// Returns the operator. Make it an `async fn` to connect to what the handlers need.
pub fn connect(_cluster: Client) -> Ready<Result<Keeper, Infallible>> {
    ready(Ok(Keeper))
}
