//! The agent of a kind's Pods as its operator describes it, and what follows from that for an object.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Container;
use kube::ResourceExt;
use okt_wire::digest::hex;
use okt_wire::object::LifecycleObject;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::resources::is_label;

/// The directory of the configuration, the token and the certificate.
pub(super) const CONFIG: &str = "/etc/okt-sidecar";
pub(super) const CONFIG_FILE: &str = "okt-sidecar.yaml";
/// The agent's part of its volume.
pub(super) const DATA: &str = "/var/lib/okt-sidecar";

/// The name of the agent's port.
pub(super) const PORT: &str = "okt-agent";

/// The keys of the configuration that follow from the Pod.
const OWN_KEYS: [&str; 6] = ["listen", "tokenFile", "tls", "data", "scratch", "object"];

/// The longest name of a Service.
const NAME_LIMIT: usize = 63;

type Addresses = dyn Fn(&str, &str) -> String + Send + Sync;
type Adjust = dyn Fn(&mut Container) + Send + Sync;

/// The agent `okt-sidecar` of an object, in the Pod of its application.
///
/// It adds the agent to the Pod's template, and declares what the agent needs in the namespace of the object: a Secret
/// with a token and a certificate that are drawn once, a `ConfigMap`, a Service, and a `NetworkPolicy` by which only the
/// namespace of the operator reaches the agent.
/// The operator trusts each agent by the certificate in its Secret: no authority exists whose key could be stolen. To
/// renew the token and the certificate, delete the Secret.
///
/// The kind is namespaced, and an object has one agent: its Pods are the one of a `StatefulSet` with one replica.
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use kube::ResourceExt;
/// use okt::k8s_openapi::api::apps::v1::StatefulSet;
/// use okt::sidecar::{AgentConfigError, AgentPods, InPods, PodAgent};
/// use okt::{Context, Declared, Delegated, Failure, Resources, Watches};
/// use serde_json::json;
/// # use kube::CustomResource;
/// # use okt::{Desired, LifecycleSpec, Status, lifecycle_graph};
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// # #[lifecycle_graph]
/// # #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// # pub enum StoreState { #[entry] #[child(Open)] Start, #[rest] #[child(End)] Open, #[leaf(idle)] End }
/// # #[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// # #[kube(group = "demo.okt.dev", version = "v1", kind = "Store", namespaced, status = "Status<StoreState>")]
/// # pub struct StoreSpec { #[serde(default)] pub lifecycle: Desired<StoreState> }
///
/// struct StorePods(PodAgent);
///
/// impl AgentPods for StorePods {
///     type Resource = Store;
///
///     fn agent(&self) -> &PodAgent {
///         &self.0
///     }
///
///     fn watches(watches: Watches<Store>) -> Watches<Store> {
///         PodAgent::watches(watches).owns::<StatefulSet>()
///     }
///
///     async fn resources(&self, cx: &Context<Store>, _: StoreState) -> Result<Resources, Failure> {
///         let name = cx.object().name_any();
///         let mut set: StatefulSet = serde_json::from_value(json!({
///             "metadata": { "name": name },
///             "spec": {
///                 "serviceName": name,
///                 // Otherwise a Pod that cannot start is never replaced by one that can.
///                 "podManagementPolicy": "Parallel",
///                 "selector": { "matchLabels": { "store": name } },
///                 "template": {
///                     "metadata": { "labels": { "store": name } },
///                     "spec": { "containers": [{ "name": "store", "image": "example.com/store:1",
///                         "ports": [{ "containerPort": 8080 }] }] },
///                 },
///                 "volumeClaimTemplates": [{
///                     "metadata": { "name": "data" },
///                     "spec": { "accessModes": ["ReadWriteOnce"],
///                         "resources": { "requests": { "storage": "1Gi" } } },
///                 }],
///             },
///         }))?;
///         let template = &mut set.spec.template;
///         // It stays until the work on the way out is done, however the object is deleted.
///         Ok(self.0.beside(cx, template)?.with(Declared::of(set).unowned().during_deletion()))
///     }
/// }
///
/// fn pods() -> Result<Delegated<InPods<StorePods>>, AgentConfigError> {
///     let config = r#"
/// probe: { http: "http://127.0.0.1:8080/state" }
/// states:
///   Start: { http: { method: POST, url: "http://127.0.0.1:8080/open" }, timeout: 1m, repeatable: true }
/// "#;
///     let agent = PodAgent::new("example.com/okt-sidecar:1", config, "data")?;
///     Ok(Delegated(InPods::of(StorePods(agent))))
/// }
///
/// #[tokio::main]
/// async fn main() -> ExitCode {
///     okt::main(|_| async { pods() }).await
/// }
/// ```
#[derive(Clone)]
pub struct PodAgent {
    pub(super) image: String,
    pub(super) config: Arc<str>,
    pub(super) volume: String,
    pub(super) listens_on: IpAddr,
    pub(super) port: u16,
    pub(super) suffix: Option<String>,
    pub(super) address: Option<Arc<Addresses>>,
    pub(super) adjust: Option<Arc<Adjust>>,
    pub(super) is_isolated: bool,
}

/// A configuration that an agent in a Pod cannot have. A retry does not help.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentConfigError {
    /// It is not a table in YAML.
    #[error("the configuration of the agent is no table in YAML: {why}")]
    Yaml {
        /// The cause.
        why: String,
    },
    /// It has a key that follows from the Pod.
    #[error("the configuration of the agent must not have `{key}`: it follows from the Pod")]
    Key {
        /// The key.
        key: &'static str,
    },
}

impl PodAgent {
    /// Creates an agent from its image, its configuration, and the volume of the Pod that keeps its journal.
    ///
    /// - The image has `/okt-sidecar` as its entry point: `okt-sidecar/Dockerfile` makes one.
    /// - The configuration is that of `docs/sidecar-config.md` without `listen`, `tokenFile`, `tls`, `data`, `scratch` and
    ///   `object`.
    /// - The volume must outlive the Pod, or the agent forgets what it has done: a claim of a `StatefulSet`. The agent
    ///   uses only its directory `okt-sidecar`.
    ///
    /// # Errors
    ///
    /// The configuration is no table, or has one of these keys. `okt-sidecar check --elsewhere` finds its other mistakes:
    /// give it the [`configuration`](Self::configuration).
    pub fn new(
        image: impl Into<String>,
        config: impl AsRef<str>,
        volume: impl Into<String>,
    ) -> Result<Self, AgentConfigError> {
        let config = config.as_ref();
        let table: Map<String, Value> = serde_saphyr::from_str(config).map_err(|error| {
            let why = error.to_string();
            AgentConfigError::Yaml { why }
        })?;
        if let Some(key) = OWN_KEYS.into_iter().find(|key| table.contains_key(*key)) {
            return Err(AgentConfigError::Key { key });
        }
        let agent = Self {
            image: image.into(),
            config: config.into(),
            volume: volume.into(),
            listens_on: Ipv4Addr::UNSPECIFIED.into(),
            port: 8470,
            suffix: None,
            address: None,
            adjust: None,
            is_isolated: true,
        };
        // The keys above are put before it: an indented table, for example, would end there.
        let whole = serde_saphyr::from_str::<Map<String, Value>>(&agent.configuration("a", "b"));
        match whole {
            Ok(whole) if table.keys().all(|key| whole.contains_key(key)) => Ok(agent),
            Ok(_) | Err(_) => {
                let why = "its keys have to stand at the beginning of their lines".to_owned();
                Err(AgentConfigError::Yaml { why })
            }
        }
    }

    /// Sets the port; 8470 by default.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Sets the address that the agent listens on in its Pod: by default all of IPv4, `0.0.0.0`; `::` in a cluster with
    /// IPv6.
    #[must_use]
    pub fn listens_on(mut self, address: impl Into<IpAddr>) -> Self {
        self.listens_on = address.into();
        self
    }

    /// Sets the end of the names of what the agent needs, by default the kind and `agent`: `orders-store-agent` has
    /// `store-agent`. Two kinds of the same name in one namespace need two.
    #[must_use]
    pub fn suffix(mut self, suffix: impl Into<String>) -> Self {
        self.suffix = Some(suffix.into());
        self
    }

    /// Sets the host and port of the agent of an object with this namespace and name, for an operator outside of the
    /// cluster; by default those of the agent's Service. The agent proves the name of that Service wherever it is. The
    /// `NetworkPolicy` then admits everybody to the agent, who still needs its token.
    #[must_use]
    pub fn reached_at(
        mut self,
        address: impl Fn(&str, &str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.address = Some(Arc::new(address));
        self
    }

    /// Changes the agent's container, e.g. its resources or its volumes; with [`inside`](Self::inside) the
    /// container that copies the program.
    #[must_use]
    pub fn container(mut self, change: impl Fn(&mut Container) + Send + Sync + 'static) -> Self {
        self.adjust = Some(Arc::new(change));
        self
    }

    /// Declares no `NetworkPolicy`.
    ///
    /// The one by default refuses what is neither for the agent and from the namespace of the operator, nor for a port
    /// that a container of the Pod names.
    #[must_use]
    pub fn without_network_policy(mut self) -> Self {
        self.is_isolated = false;
        self
    }

    /// Returns the complete configuration of the agent of an object with this namespace and name.
    pub fn configuration(&self, namespace: &str, name: &str) -> String {
        let at = |path: &str| format!("{CONFIG}/{path}");
        let object = json!({ "namespace": namespace, "name": name });
        let listen = SocketAddr::new(self.listens_on, self.port);
        let own = [
            ("listen", json!(listen.to_string())),
            ("tokenFile", json!(at("token"))),
            (
                "tls",
                json!({ "certificate": at("tls.crt"), "key": at("tls.key") }),
            ),
            // Below the volume's directory, which belongs to root.
            ("data", json!(format!("{DATA}/agent"))),
            ("object", object),
        ];
        // JSON is YAML.
        let mut lines = own.map(|(key, value)| format!("{key}: {value}")).to_vec();
        lines.push(self.config.to_string());
        lines.join("\n")
    }
}

impl PodAgent {
    /// Returns the name of what the agent of an object needs: `orders-store-agent`. A Service cannot have every name that
    /// an object can have; a hash replaces the others.
    pub(super) fn name_of<K: LifecycleObject>(&self, object: &K) -> String {
        let own = object.name_any();
        let suffix = match &self.suffix {
            Some(suffix) => suffix.clone(),
            None => format!("{}-agent", K::kind(&()).to_lowercase()),
        };
        let name = format!("{own}-{suffix}");
        let begins = own.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && name.len() <= NAME_LIMIT && is_label(&name) {
            name
        } else {
            format!(
                "agent-{}",
                short_hash(&format!("{own}/{}/{suffix}", K::group(&())))
            )
        }
    }
}

/// Formats the agent without its configuration, which may hold secrets.
impl fmt::Debug for PodAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodAgent")
            .field("image", &self.image)
            .field("volume", &self.volume)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// Returns the namespace and the name of an object.
pub(super) fn placed<K: LifecycleObject>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Returns the beginning of a hash, long enough that no two texts share it by chance.
pub(super) fn short_hash(text: &str) -> String {
    hex(&Sha256::digest(text))[..32].to_owned()
}
