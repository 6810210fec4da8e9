//! The mistakes: each is a line of `operator.rs` that is not what it should be.

/// Each has a description, what stands in the operator (`-`), and what stands there instead (`+`); a place where nothing
/// stands instead is removed with its line. A few are more errors than usual (`!`: how many there may be, and why).
pub(super) const MISTAKES: &str = r#"
no LifecycleSpec on the spec
-CustomResource, LifecycleSpec, Clone
+CustomResource, Clone

no Clone on the spec
-LifecycleSpec, Clone, Debug, Serialize
+LifecycleSpec, Debug, Serialize

no Debug on the spec
-LifecycleSpec, Clone, Debug, Serialize
+LifecycleSpec, Clone, Serialize

no Serialize on the spec
-Debug, Serialize, Deserialize, JsonSchema
+Debug, Deserialize, JsonSchema

no Deserialize on the spec
-Debug, Serialize, Deserialize, JsonSchema
+Debug, Serialize, JsonSchema

no JsonSchema on the spec
-Deserialize, JsonSchema)]
-#[kube
+Deserialize)]
+#[kube

no CustomResource on the spec
-#[derive(CustomResource, LifecycleSpec
+#[derive(LifecycleSpec

no okt::crates on the spec
!60 other derives do not find their crates; the first error says what to do
-#[okt::crates]

okt::crates below the derives
!30 other derives do not find their crates; the first error says what to do
-#[okt::crates]
-#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
+#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
+#[okt::crates]

no status in the resource
-    namespaced,
-    status = "Status<ServerState>"
+    namespaced

a status of one's own
-status = "Status<ServerState>"
+status = "ServerStatus"

the status of another type
-status = "Status<ServerState>"
+status = "Status<ServerSpec>"

no lifecycle field
-    /// The desired state.
-    #[serde(default)]
-    pub lifecycle: Desired<ServerState>,

the lifecycle field without Desired
-pub lifecycle: Desired<ServerState>
+pub lifecycle: ServerState

the lifecycle field is optional
-pub lifecycle: Desired<ServerState>
+pub lifecycle: Option<Desired<ServerState>>

no lifecycle_graph on the enum
!40 the compiler reports each attribute of a state
-#[lifecycle_graph]

no Copy on the enum
-#[derive(Clone, Copy, Debug, PartialEq, Eq)]
+#[derive(Clone, Debug, PartialEq, Eq)]

no PartialEq on the enum
-#[derive(Clone, Copy, Debug, PartialEq, Eq)]
+#[derive(Clone, Copy, Debug)]

no derives on the enum
!25 each use of a state needs them, and there may be some above the attribute, which the macro does not see
-#[derive(Clone, Copy, Debug, PartialEq, Eq)]

an edge to a misspelt state
-#[child(Ready)]
-    Starting
+#[child(Redy)]
+    Starting

a misspelt attribute
-    #[child(Gone)]
-    Stopping
+    #[chidl(Gone)]
+    Stopping

a misspelt option
-on_error(attempts = 3)
+on_eror(attempts = 3)

no leaf
-    #[leaf(idle)]
+    #[rest(idle)]

no entry
-    #[entry]

a desired state without a route
-    #[no_route(Ready, Updating, reason = "a broken server is replaced")]

a handler is missing
-    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {
-        Ok(server_state::AfterStopping::Next)
-    }

a handler for an idle state
-    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {
+    async fn broken(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {
+        Ok(server_state::AfterStopping::Next)
+    }
+
+    async fn stopping(&self, _: &Action<Server>) -> Result<server_state::AfterStopping, Failure> {

an answer that no edge allows
-Ok(server_state::AfterStarting::Ready)
+Ok(server_state::AfterStarting::Updating)

the state as the answer
-Ok(server_state::AfterStarting::Ready)
+Ok(ServerState::Ready)

Stay in a passing state
-Ok(server_state::AfterStopping::Next)
+Ok(server_state::AfterStopping::Stay)

a handler is not async
-    async fn stopping(
+    fn stopping(

a handler takes a Context
-    async fn stopping(&self, _: &Action<Server>)
+    async fn stopping(&self, _: &Context<Server>)

no handler trait at all
-impl ServerStateHandler for Servers {
-    type Context = Action<Server>;
-    type Error = Failure;
+impl Servers {

the context of another resource
!8 each handler has the type that the trait does not
-    type Context = Action<Server>;
+    type Context = Action<Pod>;

an error that is no Failure
!4 each handler has the type that the trait does not
-    type Error = Failure;
+    type Error = String;

the spec as the resource
!12 each trait of a resource, and each method that names it
-    type Resource = Server;
+    type Resource = ServerSpec;

an observation of another state
-Observation::in_state(ServerState::Ready)
+Observation::in_state("Ready")

main makes the operator without a result
-Ok::<_, Infallible>(Servers)
+Servers
"#;
