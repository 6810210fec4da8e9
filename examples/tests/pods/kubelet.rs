//! A stand-in for the node of a cluster: it runs the containers of `StatefulSets` as real processes of this machine.
//!
//! There are no images and no mounts. An image is a table of paths: a container finds `/scripts` where the table says.
//! The same holds for the paths of volumes: they are replaced in commands, and in files of `ConfigMaps`.
//! The network is the loopback interface.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, Pod, PodSpec, PodTemplateSpec, Secret, Volume, VolumeMount,
};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use okt_examples::desk::Trouble;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::sleep;

const POLL: Duration = Duration::from_millis(100);

/// What a name of an image stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    /// The first words of a container without a command.
    pub(crate) entry_point: Vec<String>,
    /// Where the paths of the image are on this machine.
    pub(crate) paths: Vec<(String, PathBuf)>,
}

/// The node.
pub(crate) struct Kubelet {
    client: Client,
    namespace: String,
    images: BTreeMap<String, Image>,
    /// Below it are the volumes, and the logs of the containers.
    root: PathBuf,
    pods: BTreeMap<String, RunningPod>,
}

struct RunningPod {
    template: PodTemplateSpec,
    /// In the order of their start.
    containers: Vec<RunningContainer>,
}

struct RunningContainer {
    container: Container,
    process: Child,
}

impl Kubelet {
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        images: impl IntoIterator<Item = (&'static str, Image)>,
        root: &Path,
    ) -> Self {
        let images = images.into_iter();
        Self {
            client,
            namespace: namespace.to_owned(),
            images: images
                .map(|(name, image)| (name.to_owned(), image))
                .collect(),
            root: root.to_owned(),
            pods: BTreeMap::new(),
        }
    }

    /// Runs until an error.
    pub(crate) async fn run(mut self) -> Trouble {
        loop {
            match self.step().await {
                Err(error) if !has_gone(&error) => return error,
                Ok(()) | Err(_) => sleep(POLL).await,
            }
        }
    }

    /// Brings all Pods to what the `StatefulSets` say.
    async fn step(&mut self) -> Result<(), Trouble> {
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let sets = sets.list(&ListParams::default()).await?;
        let is_wanted = |set: &&StatefulSet| {
            set.metadata.deletion_timestamp.is_none() && set.spec.replicas != Some(0)
        };
        let wanted: BTreeMap<String, &StatefulSet> = (sets.items.iter().filter(is_wanted))
            .map(|set| (format!("{}-0", set.name_any()), set))
            .collect();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let there = pods.list(&ListParams::default()).await?;
        let is_there = |name: &String| there.items.iter().any(|pod| pod.name_any() == *name);
        let is_right = |name: &String, pod: &RunningPod| {
            let set = wanted.get(name);
            is_there(name) && set.is_some_and(|set| set.spec.template == pod.template)
        };
        let wrong = |(name, pod)| (!is_right(name, pod)).then(|| name.clone());
        let wrong: Vec<String> = self.pods.iter().filter_map(wrong).collect();
        for name in wrong {
            self.end(&name).await?;
        }
        for (name, set) in wanted {
            if self.pods.contains_key(&name) {
                self.keep(&name).await?;
            } else {
                self.begin(&name, set).await?;
            }
        }
        Ok(())
    }

    async fn begin(&mut self, name: &str, set: &StatefulSet) -> Result<(), Trouble> {
        let template = set.spec.template.clone();
        let spec = template.spec.clone().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut complete = spec.clone();
        for claim in set.spec.volume_claim_templates.iter().flatten() {
            let claim = claim.name_any();
            complete.volumes.get_or_insert_default().push(Volume {
                name: claim.clone(),
                persistent_volume_claim: Some(serde_json::from_value(
                    json!({ "claimName": format!("{claim}-{name}") }),
                )?),
                ..Volume::default()
            });
        }
        // Whoever is admitted by the server and its types is a Pod that a cluster would run.
        let pod = Pod {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..template.metadata.clone().unwrap_or_default()
            },
            spec: Some(complete.clone()),
            ..Pod::default()
        };
        if !self.provide(name, &complete).await? {
            return Ok(());
        }
        match pods.create(&PostParams::default(), &pod).await {
            Err(kube::Error::Api(error)) if error.is_already_exists() => {}
            created => drop(created?),
        }
        self.let_the_group_in(name, &complete)?;
        let mut containers = Vec::new();
        for container in spec.init_containers.iter().flatten() {
            let mut process = self.start(name, &complete, container)?;
            if container.restart_policy.as_deref() == Some("Always") {
                listens(container).await;
                let container = container.clone();
                containers.push(RunningContainer { container, process });
            } else {
                let ended = tokio::task::spawn_blocking(move || process.wait()).await??;
                if !ended.success() {
                    let said = self.said(name);
                    return Err(format!("{}: {ended}\n{said}", container.name).into());
                }
            }
        }
        for container in &spec.containers {
            let process = self.start(name, &complete, container)?;
            let container = container.clone();
            containers.push(RunningContainer { container, process });
        }
        let pod = RunningPod {
            template,
            containers,
        };
        self.pods.insert(name.to_owned(), pod);
        self.report(name, set.metadata.generation).await
    }

    /// Says that the Pod and its set are ready.
    async fn report(&self, name: &str, generation: Option<i64>) -> Result<(), Trouble> {
        let params = PatchParams::default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let status = json!({ "status": { "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }] } });
        pods.patch_status(name, &params, &Patch::Merge(status))
            .await?;
        let sets: Api<StatefulSet> = Api::namespaced(self.client.clone(), &self.namespace);
        let set = name.trim_end_matches("-0");
        let status = json!({ "status": { "replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "updatedReplicas": 1, "observedGeneration": generation } });
        sets.patch_status(set, &params, &Patch::Merge(status))
            .await?;
        Ok(())
    }

    /// Restarts the containers that have ended, and brings the volumes up to date.
    async fn keep(&mut self, name: &str) -> Result<(), Trouble> {
        let Some(mut pod) = self.pods.remove(name) else {
            return Ok(());
        };
        let spec = pod.template.spec.clone().unwrap_or_default();
        self.provide(name, &spec).await?;
        for running in &mut pod.containers {
            if running.process.try_wait()?.is_some() {
                running.process = self.start(name, &spec, &running.container)?;
            }
        }
        self.pods.insert(name.to_owned(), pod);
        Ok(())
    }

    /// Ends the containers, sidecars last, and deletes the Pod.
    async fn end(&mut self, name: &str) -> Result<(), Trouble> {
        let Some(mut pod) = self.pods.remove(name) else {
            return Ok(());
        };
        while let Some(mut running) = pod.containers.pop() {
            if let Some(process) = Pid::from_raw(running.process.id().cast_signed()) {
                // It may have ended on its own.
                let _ = kill_process(process, Signal::TERM);
            }
            tokio::task::spawn_blocking(move || running.process.wait()).await??;
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let now = DeleteParams::default().grace_period(0);
        match pods.delete(name, &now).await {
            Err(kube::Error::Api(error)) if error.is_not_found() => Ok(()),
            deleted => {
                deleted?;
                Ok(())
            }
        }
    }

    fn start(&self, pod: &str, spec: &PodSpec, container: &Container) -> io::Result<Child> {
        let image = container.image.as_ref().and_then(|it| self.images.get(it));
        let image = image.unwrap_or_else(|| panic!("there is no image {:?}", container.image));
        let places = self.places(pod, container, image);
        let command = container.command.clone();
        let mut words = command.unwrap_or_else(|| image.entry_point.clone());
        words.extend(container.args.iter().flatten().cloned());
        let words: Vec<String> = words.iter().map(|word| placed(word, &places)).collect();
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.root.join(format!("{pod}.log")))?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let security = spec.security_context.clone().unwrap_or_default();
        if let (Some(user), true) = (security.run_as_user, rustix::process::geteuid().is_root()) {
            let group = security.run_as_group.unwrap_or(user);
            command.uid(number(user)).gid(number(group));
        }
        command.spawn()
    }

    /// Makes the directories of a Pod's volumes, and writes what the cluster has for them. Returns whether it has all;
    /// what is gone stays as it is.
    async fn provide(&self, pod: &str, spec: &PodSpec) -> Result<bool, Trouble> {
        let mut has_all = true;
        let group = spec.security_context.as_ref().and_then(|it| it.fs_group);
        let containers = spec
            .init_containers
            .iter()
            .flatten()
            .chain(&spec.containers);
        for container in containers.clone() {
            for mount in container.volume_mounts.iter().flatten() {
                directory(&self.of_mount(pod, mount), group)?;
            }
        }
        let with_config = |it: &&Container| {
            let mut mounts = it.volume_mounts.iter().flatten();
            mounts.any(|mount| mount.name == "okt-sidecar")
        };
        for volume in spec.volumes.iter().flatten() {
            let Some(projected) = &volume.projected else {
                continue;
            };
            let at = self.root.join(pod).join(&volume.name);
            let container = containers.clone().find(with_config);
            let places = container.map_or_else(Vec::new, |container| {
                let image = &self.images[container.image.as_deref().unwrap_or_default()];
                self.places(pod, container, image)
            });
            for source in projected.sources.iter().flatten() {
                if let Some(map) = &source.config_map {
                    let maps: Api<ConfigMap> =
                        Api::namespaced(self.client.clone(), &self.namespace);
                    let data = maps.get_opt(&map.name).await?.and_then(|it| it.data);
                    has_all &= data.is_some();
                    for (file, text) in data.unwrap_or_default() {
                        write(&at.join(file), placed(&text, &places).as_bytes())?;
                    }
                }
                if let Some(secret) = &source.secret {
                    let secrets: Api<Secret> =
                        Api::namespaced(self.client.clone(), &self.namespace);
                    let data = secrets.get_opt(&secret.name).await?.and_then(|it| it.data);
                    has_all &= data.is_some();
                    for (file, bytes) in data.unwrap_or_default() {
                        write(&at.join(file), &bytes.0)?;
                    }
                }
            }
        }
        Ok(has_all)
    }

    /// Gives the group of the volumes what the kubelet gives it at each mount, whatever the files had before.
    fn let_the_group_in(&self, pod: &str, spec: &PodSpec) -> Result<(), Trouble> {
        let group = spec.security_context.as_ref().and_then(|it| it.fs_group);
        for claim in spec.volumes.iter().flatten() {
            if claim.persistent_volume_claim.is_some() {
                let at = self.root.join(pod).join(&claim.name);
                open_to_group(&at, group.map(number))?;
            }
        }
        Ok(())
    }

    /// Returns where the paths in a container are on this machine, the longest first.
    fn places(&self, pod: &str, container: &Container, image: &Image) -> Vec<(String, PathBuf)> {
        let mounts = container.volume_mounts.iter().flatten();
        let mut places: Vec<(String, PathBuf)> = mounts
            .map(|mount| (mount.mount_path.clone(), self.of_mount(pod, mount)))
            .chain(image.paths.iter().cloned())
            .collect();
        places.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        places
    }

    fn of_mount(&self, pod: &str, mount: &VolumeMount) -> PathBuf {
        let volume = self.root.join(pod).join(&mount.name);
        match &mount.sub_path {
            Some(path) => volume.join(path),
            None => volume,
        }
    }

    /// Returns what the containers of a Pod have printed.
    fn said(&self, pod: &str) -> String {
        fs::read_to_string(self.root.join(format!("{pod}.log"))).unwrap_or_default()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        for running in self.pods.values_mut().flat_map(|pod| &mut pod.containers) {
            // It may have ended on its own.
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
    }
}

/// Returns whether an object went while the node looked at it.
fn has_gone(error: &Trouble) -> bool {
    let error = error.downcast_ref::<kube::Error>();
    matches!(error, Some(kube::Error::Api(status)) if status.is_not_found())
}

/// Waits until a sidecar listens, as its startup probe does.
async fn listens(container: &Container) {
    let port = container.ports.iter().flatten().next();
    let port = port.map_or(0, |it| it.container_port);
    while TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap_or_default()))
        .await
        .is_err()
    {
        sleep(POLL).await;
    }
}

/// Makes a directory that a group may write, like a volume.
fn directory(path: &Path, group: Option<i64>) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        directory(parent, group)?;
    }
    fs::create_dir(path)?;
    if let (Some(group), true) = (group, rustix::process::geteuid().is_root()) {
        chown(path, None, Some(number(group)))?;
    }
    fs::set_permissions(path, Permissions::from_mode(0o2775))
}

fn open_to_group(path: &Path, group: Option<u32>) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    if about.is_symlink() {
        return Ok(());
    }
    if rustix::process::geteuid().is_root() {
        chown(path, None, group)?;
    }
    let added = if about.is_dir() { 0o2770 } else { 0o660 };
    fs::set_permissions(
        path,
        Permissions::from_mode(about.permissions().mode() | added),
    )?;
    if about.is_dir() {
        for entry in fs::read_dir(path)? {
            open_to_group(&entry?.path(), group)?;
        }
    }
    Ok(())
}

/// Writes a file at once, as the kubelet does, if its content differs.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|it| it == content) {
        return Ok(());
    }
    let new = path.with_extension("new");
    fs::write(&new, content)?;
    fs::rename(&new, path)
}

/// Returns a text with the paths of this machine.
fn placed(text: &str, places: &[(String, PathBuf)]) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(first) = rest.chars().next() {
        let place = places.iter().find(|(path, _)| {
            let after = rest
                .strip_prefix(path.as_str())
                .and_then(|it| it.chars().next());
            rest.starts_with(path.as_str())
                && after.is_none_or(|it| !it.is_alphanumeric() && !"-_.".contains(it))
        });
        let taken = if let Some((path, here)) = place {
            out += &here.to_string_lossy();
            path.len()
        } else {
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    out
}

fn number(id: i64) -> u32 {
    u32::try_from(id).expect("a number of a user")
}
