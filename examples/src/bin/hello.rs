//! This file is the smallest operator: a state enum, a resource, one handler.
//!
//! `hello crd | kubectl apply -f -`, then `hello run`.

use std::convert::Infallible;
use std::process::ExitCode;

use kube::{CustomResource, ResourceExt};
use okt_runtime::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The life of a greeting.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingState {
    /// It is being said.
    #[entry]
    #[child(Said)]
    Start,
    /// It was said.
    #[rest(idle)]
    #[child(Forgotten)]
    Said,
    /// Nobody remembers it.
    #[leaf(idle)]
    Forgotten,
}

/// What is to be said.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "Status<GreetingState>"
)]
pub struct GreetingSpec {
    /// Where the greeting should be in its life.
    #[serde(default)]
    pub lifecycle: Desired<GreetingState>,
    /// The words.
    pub text: String,
}

/// Says greetings.
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
    okt_runtime::main(|_| async { Ok::<_, Infallible>(Greeter) }).await
}
