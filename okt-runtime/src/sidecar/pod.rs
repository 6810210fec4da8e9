//! The agent of an object in its Pod: the container, and what the container needs in the cluster.
//!
//! | content | file |
//! |---|---|
//! | the agent as its operator describes it, its names and its configuration | `settings` |
//! | the agent's token and certificate, and the operator's way to it | `access` |
//! | the container in the Pod | `container` |

mod access;
mod container;
mod settings;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMap, PodTemplateSpec, Secret, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use okt_reach::Failure;
use okt_wire::keys::{AGENT_CONFIG_ANNOTATION, AGENT_LABEL};
use okt_wire::object::LifecycleObject;

pub use self::settings::{AgentConfigError, PodAgent};
use self::settings::{CONFIG_FILE, PORT, placed, short_hash};
use crate::author::context::Context;
use crate::resources::{Declared, Resources, Watches};

impl PodAgent {
    /// Declares the kinds that an agent needs.
    pub fn watches<K: LifecycleObject>(watches: Watches<K>) -> Watches<K> {
        watches
            .owns::<Secret>()
            .owns::<ConfigMap>()
            .owns::<Service>()
            .owns::<NetworkPolicy>()
    }

    /// Adds the agent to a Pod as a native sidecar: it starts before the containers of the application, and ends after
    /// them (Kubernetes 1.29). It reaches the application over the loopback interface and the volumes that they share.
    ///
    /// Returns the resources that the agent needs; apply them before the Pod's.
    ///
    /// # Errors
    ///
    /// Permanent: [`watches`](Self::watches) is not declared, the kind is cluster-scoped, or the Pod has something of the
    /// agent's names or its port already. A retry helps if no key can be drawn.
    pub fn beside<K: LifecycleObject>(
        &self,
        cx: &Context<K>,
        template: &mut PodTemplateSpec,
    ) -> Result<Resources, Failure> {
        let added = container::beside(self, template);
        added.map_err(bad_pod)?;
        self.resources(cx, template)
    }

    /// Makes the agent the first process of a container: it starts and stops the application (`application` of its
    /// configuration), with the programs of the container's image and as the container's user.
    ///
    /// A container before all others copies the agent's program to where this one finds it.
    /// Returns the resources that the agent needs; apply them before the Pod's.
    ///
    /// # Errors
    ///
    /// As for [`beside`](Self::beside); also if the Pod has no such container, or the container has a command or a probe by
    /// which the kubelet would end it: the agent has work to do while the application is stopped.
    pub fn inside<K: LifecycleObject>(
        &self,
        cx: &Context<K>,
        template: &mut PodTemplateSpec,
        container: &str,
    ) -> Result<Resources, Failure> {
        let added = container::inside(self, template, container);
        added.map_err(bad_pod)?;
        self.resources(cx, template)
    }

    /// Declares what the agent needs, and leads from the Pod to it.
    fn resources<K: LifecycleObject>(
        &self,
        cx: &Context<K>,
        template: &mut PodTemplateSpec,
    ) -> Result<Resources, Failure> {
        let name = self.name_of(cx.object());
        let (namespace, own) = placed(cx.object());
        if namespace.is_empty() {
            return Err(bad_pod("the kind must be namespaced".to_owned()));
        }
        let config = self.configuration(&namespace, &own);
        container::mount(template, &name);
        let about = template.metadata.get_or_insert_default();
        let labels = about.labels.get_or_insert_default();
        labels.insert(AGENT_LABEL.to_owned(), name.clone());
        let annotations = about.annotations.get_or_insert_default();
        annotations.insert(AGENT_CONFIG_ANNOTATION.to_owned(), short_hash(&config));

        let metadata = ObjectMeta {
            name: Some(name.clone()),
            ..ObjectMeta::default()
        };
        let map = ConfigMap {
            metadata: metadata.clone(),
            data: Some([(CONFIG_FILE.to_owned(), config)].into()),
            ..ConfigMap::default()
        };
        let service = self.service(metadata.clone());
        let secret = access::secret(cx, metadata.clone(), &access::host(&name, &namespace))?;
        // The agent has work to do until the end, whoever deletes what first.
        let to_the_end = |declared: Declared| declared.unowned().during_deletion();
        let resources = Resources::new()
            // The work of a state needs it.
            .with(to_the_end(Declared::of(secret).once().ready().prunable()))
            .with(to_the_end(Declared::of(map)))
            .with(to_the_end(Declared::of(service)));
        if !self.is_isolated {
            return Ok(resources);
        }
        let policy = NetworkPolicy {
            metadata,
            spec: Some(self.isolation(cx.client().default_namespace(), &name, template)),
        };
        Ok(resources.with(to_the_end(Declared::of(policy))))
    }

    /// Leads to the agent of a Pod, under the name of all that it needs.
    fn service(&self, metadata: ObjectMeta) -> Service {
        let name = metadata.name.clone().unwrap_or_default();
        Service {
            metadata,
            spec: Some(ServiceSpec {
                selector: Some(selector(&name)),
                // The agent of a Pod that is not ready has work to do.
                publish_not_ready_addresses: Some(true),
                ports: Some(vec![ServicePort {
                    name: Some("agent".to_owned()),
                    port: self.port.into(),
                    ..ServicePort::default()
                }]),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }

    /// Admits the operator to the agent, and everybody to the ports of the application.
    fn isolation(
        &self,
        operator: &str,
        name: &str,
        template: &PodTemplateSpec,
    ) -> NetworkPolicySpec {
        let labelled = |labels| {
            let match_labels = Some(labels);
            LabelSelector {
                match_labels,
                ..LabelSelector::default()
            }
        };
        let port = |port: i32, protocol: &str| NetworkPolicyPort {
            port: Some(IntOrString::Int(port)),
            protocol: Some(protocol.to_owned()),
            ..NetworkPolicyPort::default()
        };
        let in_namespace = (
            "kubernetes.io/metadata.name".to_owned(),
            operator.to_owned(),
        );
        let peer = NetworkPolicyPeer {
            namespace_selector: Some(labelled([in_namespace].into())),
            ..NetworkPolicyPeer::default()
        };
        let mut ingress = vec![NetworkPolicyIngressRule {
            // An operator outside of the cluster is in no namespace.
            from: self.address.is_none().then(|| vec![peer]),
            ports: Some(vec![port(self.port.into(), "TCP")]),
        }];
        let pod = template.spec.iter();
        let containers = pod.flat_map(|it| {
            it.containers
                .iter()
                .chain(it.init_containers.iter().flatten())
        });
        let ports: Vec<NetworkPolicyPort> = containers
            .flat_map(|it| it.ports.iter().flatten())
            .filter(|it| it.name.as_deref() != Some(PORT))
            .map(|it| port(it.container_port, it.protocol.as_deref().unwrap_or("TCP")))
            .collect();
        if !ports.is_empty() {
            ingress.push(NetworkPolicyIngressRule {
                ports: Some(ports),
                ..NetworkPolicyIngressRule::default()
            });
        }
        NetworkPolicySpec {
            pod_selector: Some(labelled(selector(name))),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(ingress),
            ..NetworkPolicySpec::default()
        }
    }
}

fn bad_pod(why: String) -> Failure {
    Failure::permanent("BadAgentPod", why)
}

fn selector(name: &str) -> BTreeMap<String, String> {
    [(AGENT_LABEL.to_owned(), name.to_owned())].into()
}
