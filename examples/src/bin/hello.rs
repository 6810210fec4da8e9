//! This file is the smallest operator: a state enum, a resource, one handler.
//!
//! `hello crd | kubectl apply -f -`, then `hello run`.

use std::convert::Infallible;
use std::process::ExitCode;

use kube::{CustomResource, ResourceExt};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lifecycle of a greeting.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingState {
    /// The operator prints the greeting.
    #[entry]
    #[child(Said)]
    Start,
    /// The greeting is printed.
    #[rest(idle)]
    #[child(Forgotten)]
    Said,
    /// The greeting is forgotten.
    #[leaf(idle)]
    Forgotten,
}

/// The desired state of a greeting.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "Status<GreetingState>"
)]
pub struct GreetingSpec {
    /// The desired lifecycle state of the greeting.
    #[serde(default)]
    pub lifecycle: Desired<GreetingState>,
    /// The text to print.
    pub text: String,
}

/// Prints greetings.
pub struct Greeter;

impl GreetingStateHandler for Greeter {
    type Context = Action<Greeting>;
    type Error = Failure;

    async fn start(&self, cx: &Action<Greeting>) -> Result<greeting_state::AfterStart, Failure> {
        let greeting = cx.object();
        println!("{}: {}", greeting.name_any(), greeting.spec.text);
        Ok(greeting_state::AfterStart::Said)
    }
}

impl Application for Greeter {
    type Resource = Greeting;
}

#[tokio::main]
async fn main() -> ExitCode {
    okt::main(|_| async { Ok::<_, Infallible>(Greeter) }).await
}
