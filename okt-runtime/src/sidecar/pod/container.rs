//! The agent's container in a Pod, and its volumes.

use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapProjection, Container, ContainerPort, EmptyDirVolumeSource,
    HTTPGetAction, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ProjectedVolumeSource,
    ResourceRequirements, SeccompProfile, SecretProjection, SecurityContext, Volume, VolumeMount,
    VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::settings::{CONFIG, CONFIG_FILE, DATA, PORT, PodAgent};

/// The directory with the program, in a container of another image.
const PROGRAM: &str = "/okt";

/// The name of the container and of the volume with the configuration.
const AGENT: &str = "okt-sidecar";
const PROGRAM_VOLUME: &str = "okt-sidecar-program";

/// The user of the agent's image, in whose group the volumes are.
const USER: i64 = 65532;

/// Adds the agent as a native sidecar. The error says why it cannot be that.
pub(super) fn beside(agent: &PodAgent, template: &mut PodTemplateSpec) -> Result<(), String> {
    let pod = template.spec.get_or_insert_default();
    has_room(agent, pod)?;
    let mut container = Container {
        restart_policy: Some("Always".to_owned()),
        args: Some(run()),
        ports: Some(vec![port(agent)]),
        // The application starts once the agent answers.
        startup_probe: Some(alive(agent.port, 1, 60)),
        liveness_probe: Some(alive(agent.port, 10, 6)),
        volume_mounts: Some(mounts(agent)),
        ..restricted(agent)
    };
    if let Some(adjust) = &agent.adjust {
        adjust(&mut container);
    }
    // The other ones may need the agent.
    pod.init_containers
        .get_or_insert_default()
        .insert(0, container);
    // Without it, the volume belongs to root alone.
    let security = pod
        .security_context
        .get_or_insert_with(PodSecurityContext::default);
    if security.fs_group.is_none() {
        security.fs_group = Some(USER);
        // Files of the application keep their modes, and a large volume is mounted at once.
        security.fs_group_change_policy = Some("OnRootMismatch".to_owned());
    }
    Ok(())
}

/// Makes the agent the first process of a container. The error says why it cannot be that.
pub(super) fn inside(
    agent: &PodAgent,
    template: &mut PodTemplateSpec,
    name: &str,
) -> Result<(), String> {
    let pod = template.spec.get_or_insert_default();
    has_room(agent, pod)?;
    let Some(container) = pod.containers.iter_mut().find(|it| it.name == name) else {
        return Err(format!("the Pod has no container `{name}`"));
    };
    if container.command.is_some() || container.args.is_some() {
        return Err(format!(
            "the container `{name}` has a command of its own: the agent starts the application, by the `application` of \
             its configuration"
        ));
    }
    if container.liveness_probe.is_some() || container.startup_probe.is_some() {
        return Err(format!(
            "the container `{name}` has a liveness or a startup probe: the kubelet would end the agent when it stops the \
             application; leave them out, and the agent has its own"
        ));
    }
    container.command = Some(vec![format!("{PROGRAM}/{AGENT}")]);
    container.args = Some(run());
    container.ports.get_or_insert_default().push(port(agent));
    let own = container.volume_mounts.get_or_insert_default();
    own.extend(mounts(agent));
    own.push(mounted(PROGRAM_VOLUME, PROGRAM));
    container.liveness_probe = Some(alive(agent.port, 10, 6));
    let mut copy = Container {
        args: Some(vec!["install".to_owned(), PROGRAM.to_owned()]),
        volume_mounts: Some(vec![mounted(PROGRAM_VOLUME, PROGRAM)]),
        ..restricted(agent)
    };
    if let Some(adjust) = &agent.adjust {
        adjust(&mut copy);
    }
    pod.init_containers.get_or_insert_default().insert(0, copy);
    pod.volumes.get_or_insert_default().push(Volume {
        name: PROGRAM_VOLUME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
    Ok(())
}

/// Refuses a Pod in which a name or the port of the agent is taken.
fn has_room(agent: &PodAgent, pod: &PodSpec) -> Result<(), String> {
    let volumes = pod.volumes.iter().flatten().map(|it| it.name.as_str());
    if let Some(name) = volumes
        .into_iter()
        .find(|it| [AGENT, PROGRAM_VOLUME].contains(it))
    {
        return Err(format!("the Pod has a volume `{name}` already"));
    }
    let mut containers = pod.init_containers.iter().flatten().chain(&pod.containers);
    containers.try_for_each(|container| {
        let name = &container.name;
        if name == AGENT {
            return Err(format!("the Pod has a container `{name}` already"));
        }
        let is_taken = |it: &ContainerPort| {
            let is_tcp = it.protocol.as_deref().is_none_or(|it| it == "TCP");
            is_tcp && it.container_port == i32::from(agent.port)
        };
        if container.ports.iter().flatten().any(is_taken) {
            return Err(format!(
                "the container `{name}` has the port {} of the agent",
                agent.port
            ));
        }
        Ok(())
    })
}

/// Adds the volume with what the agent reads: its configuration, its token and its certificate, by the name of both
/// objects that have them.
pub(super) fn mount(template: &mut PodTemplateSpec, name: &str) {
    let pod: &mut PodSpec = template.spec.get_or_insert_default();
    let sources = vec![
        VolumeProjection {
            config_map: Some(ConfigMapProjection {
                name: name.to_owned(),
                ..ConfigMapProjection::default()
            }),
            ..VolumeProjection::default()
        },
        VolumeProjection {
            secret: Some(SecretProjection {
                name: name.to_owned(),
                ..SecretProjection::default()
            }),
            ..VolumeProjection::default()
        },
    ];
    pod.volumes.get_or_insert_default().push(Volume {
        name: AGENT.to_owned(),
        projected: Some(ProjectedVolumeSource {
            sources: Some(sources),
            ..ProjectedVolumeSource::default()
        }),
        ..Volume::default()
    });
}

fn run() -> Vec<String> {
    vec!["run".to_owned(), format!("{CONFIG}/{CONFIG_FILE}")]
}

fn port(agent: &PodAgent) -> ContainerPort {
    ContainerPort {
        name: Some(PORT.to_owned()),
        container_port: agent.port.into(),
        ..ContainerPort::default()
    }
}

fn mounts(agent: &PodAgent) -> Vec<VolumeMount> {
    let mut data = mounted(&agent.volume, DATA);
    data.sub_path = Some(AGENT.to_owned());
    let mut config = mounted(AGENT, CONFIG);
    config.read_only = Some(true);
    vec![config, data]
}

fn mounted(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

/// Returns the probe whether the agent runs, and never whether the application does.
fn alive(port: u16, period_seconds: i32, failure_threshold: i32) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some("/livez".to_owned()),
            port: IntOrString::Int(port.into()),
            scheme: Some("HTTPS".to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(period_seconds),
        timeout_seconds: Some(5),
        failure_threshold: Some(failure_threshold),
        ..Probe::default()
    }
}

/// Returns a container of the agent's image that passes the `restricted` standard of Pod security.
fn restricted(agent: &PodAgent) -> Container {
    let requests = [("cpu", "10m"), ("memory", "32Mi")];
    let requests = requests.map(|(name, value)| (name.to_owned(), Quantity(value.to_owned())));
    Container {
        name: AGENT.to_owned(),
        image: Some(agent.image.clone()),
        resources: Some(ResourceRequirements {
            requests: Some(requests.into()),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                drop: Some(vec!["ALL".to_owned()]),
                ..Capabilities::default()
            }),
            read_only_root_filesystem: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".to_owned(),
                ..SeccompProfile::default()
            }),
            ..SecurityContext::default()
        }),
        ..Container::default()
    }
}
