//! The smallest operator: a state enum, a resource, one handler.

use std::convert::Infallible;
use std::process::ExitCode;

use okt::kube::{CustomResource, ResourceExt};
use okt::schemars::JsonSchema;
use okt::serde::{Deserialize, Serialize};
use okt::{Action, Application, Desired, Failure, LifecycleSpec, Status, lifecycle_graph};

/// The lifecycle of a greeting.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingState {
    /// The operator prints the greeting.
    #[entry]
    #[child(Said)]
    Start,

    /// The greeting is printed; the object stays here until it is deleted.
    #[rest(idle)]
    #[child(Forgotten)]
    Said,

    /// The greeting is forgotten.
    #[leaf(idle)]
    Forgotten,
}

/// The spec of a greeting.
#[okt::crates]
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "Status<GreetingState>"
)]
pub struct GreetingSpec {
    /// The desired state.
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
