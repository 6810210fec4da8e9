//! The kind `Widget`: its resource and its operator.

mod operator;
mod resource;
mod service;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::{Ready, ready};

use okt::kube::Client;
use okt::{AsResource, Delegated};

use self::operator::Keeper;

/// Returns the operator. Make it an `async fn` to connect to the service.
pub fn connect(_cluster: Client) -> Ready<Result<Delegated<AsResource<Keeper>>, Infallible>> {
    ready(Ok(Delegated(AsResource(Keeper::default()))))
}
