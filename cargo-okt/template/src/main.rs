//! The operator of `Widget` objects: `run`, `crd`, `rbac` or `manifests`.

mod operator;
mod resource;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::process::ExitCode;

use crate::operator::Keeper;

#[tokio::main]
async fn main() -> ExitCode {
    // Connect here to everything that the operator needs; the argument is a client of the cluster.
    okt::main(|_| async { Ok::<_, Infallible>(Keeper) }).await
}
