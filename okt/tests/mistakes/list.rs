//! The mistakes.

use super::Mistake;

/// The mistakes that were made on purpose, and some that are likely.
pub(super) const MISTAKES: &[Mistake] = &[
    Mistake(
        "no LifecycleSpec on the spec",
        "CustomResource, LifecycleSpec, Clone",
        "CustomResource, Clone",
    ),
    Mistake(
        "no Clone on the spec",
        "LifecycleSpec, Clone, Debug, Serialize",
        "LifecycleSpec, Debug, Serialize",
    ),
    Mistake(
        "no Debug on the spec",
        "LifecycleSpec, Clone, Debug, Serialize",
        "LifecycleSpec, Clone, Serialize",
    ),
    Mistake(
        "no Serialize on the spec",
        "Debug, Serialize, Deserialize, JsonSchema",
        "Debug, Deserialize, JsonSchema",
    ),
    Mistake(
        "no Deserialize on the spec",
        "Debug, Serialize, Deserialize, JsonSchema",
        "Debug, Serialize, JsonSchema",
    ),
    Mistake(
        "no JsonSchema on the spec",
        "Deserialize, JsonSchema)]\n#[kube",
        "Deserialize)]\n#[kube",
    ),
    Mistake(
        "no CustomResource on the spec",
        "#[derive(CustomResource, LifecycleSpec",
        "#[derive(LifecycleSpec",
    ),
    Mistake("no okt::crates on the spec", "#[okt::crates]\n", ""),
    Mistake(
        "okt::crates below the derives",
        "#[okt::crates]\n#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]\n",
        "#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]\n#[okt::crates]\n",
    ),
    Mistake(
        "no status in the resource",
        "    namespaced,\n    status = \"Status<ServerState>\"\n",
        "    namespaced\n",
    ),
    Mistake(
        "a status of one's own",
        "status = \"Status<ServerState>\"",
        "status = \"ServerStatus\"",
    ),
    Mistake(
        "the status of another type",
        "status = \"Status<ServerState>\"",
        "status = \"Status<ServerSpec>\"",
    ),
    Mistake(
        "no lifecycle field",
        "    /// The desired state.\n    #[serde(default)]\n    pub lifecycle: Desired<ServerState>,\n",
        "",
    ),
    Mistake(
        "the lifecycle field without Desired",
        "pub lifecycle: Desired<ServerState>",
        "pub lifecycle: ServerState",
    ),
    Mistake(
        "the lifecycle field is optional",
        "pub lifecycle: Desired<ServerState>",
        "pub lifecycle: Option<Desired<ServerState>>",
    ),
    Mistake("no lifecycle_graph on the enum", "#[lifecycle_graph]\n", ""),
    Mistake(
        "no Copy on the enum",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq)]",
        "#[derive(Clone, Debug, PartialEq, Eq)]",
    ),
    Mistake(
        "no PartialEq on the enum",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq)]",
        "#[derive(Clone, Copy, Debug)]",
    ),
    Mistake(
        "no derives on the enum",
        "#[derive(Clone, Copy, Debug, PartialEq, Eq)]\n",
        "",
    ),
    Mistake(
        "an edge to a misspelt state",
        "#[child(Ready)]\n    Starting",
        "#[child(Redy)]\n    Starting",
    ),
    Mistake(
        "a misspelt attribute",
        "    #[child(Gone)]\n    Stopping",
        "    #[chidl(Gone)]\n    Stopping",
    ),
    Mistake(
        "a misspelt option",
        "on_error(attempts = 3)",
        "on_eror(attempts = 3)",
    ),
    Mistake("no leaf", "    #[leaf(idle)]\n", "    #[rest(idle)]\n"),
    Mistake("no entry", "    #[entry]\n", ""),
    Mistake(
        "a desired state without a route",
        "    #[no_route(Ready, Updating, reason = \"a broken server is replaced\")]\n",
        "",
    ),
    Mistake(
        "a handler is missing",
        "    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {\n        Ok(server_state::AfterStopping::Next)\n    }\n",
        "",
    ),
    Mistake(
        "a handler for an idle state",
        "    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {",
        "    async fn broken(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {\n        Ok(server_state::AfterStopping::Next)\n    }\n\n    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {",
    ),
    Mistake(
        "an answer that no edge allows",
        "Ok(server_state::AfterStarting::Ready)",
        "Ok(server_state::AfterStarting::Updating)",
    ),
    Mistake(
        "the state as the answer",
        "Ok(server_state::AfterStarting::Ready)",
        "Ok(ServerState::Ready)",
    ),
    Mistake(
        "Stay in a passing state",
        "Ok(server_state::AfterStopping::Next)",
        "Ok(server_state::AfterStopping::Stay)",
    ),
    Mistake(
        "a handler is not async",
        "    async fn stopping(",
        "    fn stopping(",
    ),
    Mistake(
        "a handler takes a Context",
        "    async fn stopping(&self, _: &Action<Server>)",
        "    async fn stopping(&self, _: &Context<Server>)",
    ),
    Mistake(
        "no handler trait at all",
        "impl ServerStateHandler for Servers {\n    type Context = Action<Server>;\n    type Error = Failure;\n",
        "impl Servers {",
    ),
    Mistake(
        "the context of another resource",
        "    type Context = Action<Server>;",
        "    type Context = Action<Pod>;",
    ),
    Mistake(
        "an error that is no Failure",
        "    type Error = Failure;",
        "    type Error = String;",
    ),
    Mistake(
        "the spec as the resource",
        "    type Resource = Server;",
        "    type Resource = ServerSpec;",
    ),
    Mistake(
        "an observation of another state",
        "Observation::in_state(ServerState::Ready)",
        "Observation::in_state(\"Ready\")",
    ),
    Mistake(
        "main makes the operator without a result",
        "Ok::<_, Infallible>(Servers)",
        "Servers",
    ),
];
