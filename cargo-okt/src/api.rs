//! `cargo okt api`: a Kubernetes API without a cluster, for kubectl and for any operator.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use okt_apiserver::{ApiServer, Served, controllers};
use serde_json::Value;

use crate::output::print;

/// The field manager of the objects that the files declare: that of `kubectl apply --server-side`, so that a later apply of
/// a changed file is no conflict.
const MANAGER: &str = "kubectl";

/// Serve a Kubernetes API on this machine, without a cluster: for kubectl and for operators in any language.
///
/// The API keeps its objects in memory, and forgets them when it ends. It has no authentication, so it listens on
/// 127.0.0.1 only.
#[derive(Args)]
pub(crate) struct Serve {
    /// YAML or JSON files with the first objects, or directories of them; `-` is the standard input. CRDs come first.
    files: Vec<PathBuf>,
    /// The port [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Serve over TLS, with a certificate that the kubeconfig trusts.
    #[arg(long)]
    tls: bool,
    /// The kubeconfig to write; it is removed at the end.
    #[arg(long, default_value = "okt-api.kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Bring workloads (Pods, Deployments, Jobs, ..) and volume claims to ready, as the controllers of a cluster do.
    #[arg(long)]
    controllers: bool,
}

/// An object of a file.
struct FileObject {
    /// The file and the number of the document, for messages.
    place: String,
    value: Value,
}

impl Serve {
    /// Serves the API until Ctrl-C.
    pub(crate) async fn run(self) -> Result<(), String> {
        // What this API does not serve.
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_writer(io::stderr)
            .init();
        let objects = read_all(&self.files)?;
        if self.kubeconfig.exists() {
            return Err(format!(
                "{} exists already: another API may use it; remove it, or name another file with `--kubeconfig`",
                self.kubeconfig.display()
            ));
        }
        let server = ApiServer::new();
        let client = server.client_named(MANAGER);
        let made = apply_all(&client, objects).await?;
        let served = if self.tls {
            server.serve_tls_on(self.port).await
        } else {
            server.serve_on(self.port).await
        };
        let served =
            served.map_err(|error| format!("cannot listen on port {}: {error}", self.port))?;
        if self.controllers {
            for controller in [
                controllers::kubelet(),
                controllers::deployment_controller(),
                controllers::job_controller(),
            ] {
                tokio::spawn(controller.run(server.client_named("controllers")));
            }
        }
        let stopped = stop().map_err(|error| format!("cannot wait for Ctrl-C: {error}"))?;
        let written = WrittenFile::at(&self.kubeconfig, &served)?;
        print(&report(&served, &written, &made))?;
        stopped.await;
        Ok(())
    }
}

/// Completes at Ctrl-C, at SIGTERM, and when the terminal is closed.
fn stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate, mut closed) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = closed.recv() => {}
        }
    })
}

/// The kubeconfig, which is removed with this value.
struct WrittenFile(PathBuf);

impl WrittenFile {
    fn at(path: &Path, served: &Served) -> Result<Self, String> {
        let written = served.write_kubeconfig(path);
        written.map_err(|error| error.to_string())?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Self(path))
    }
}

impl Drop for WrittenFile {
    fn drop(&mut self) {
        // A user may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

fn report(served: &Served, kubeconfig: &WrittenFile, made: &[String]) -> String {
    let made = match made {
        [] => "It has no objects but the usual namespaces.".to_owned(),
        made => format!("It has: {}.", made.join(", ")),
    };
    format!(
        "The API listens on {}. {made}
It keeps everything in memory until you press Ctrl-C.

To use it, in another terminal:
  export KUBECONFIG={}
  kubectl get namespaces
",
        served.url(),
        kubeconfig.0.display(),
    )
}

/// Reads the objects of all files, in order.
fn read_all(files: &[PathBuf]) -> Result<Vec<FileObject>, String> {
    let mut objects = Vec::new();
    for file in files {
        if file == Path::new("-") {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| format!("cannot read the standard input: {error}"))?;
            read("the standard input", &text, &mut objects)?;
            continue;
        }
        for file in files_in(file)? {
            let place = file.display().to_string();
            let text = fs::read_to_string(&file)
                .map_err(|error| format!("cannot read {place}: {error}"))?;
            read(&place, &text, &mut objects)?;
        }
    }
    Ok(objects)
}

/// Returns a file, or the YAML and JSON files of a directory, by name.
fn files_in(path: &Path) -> Result<Vec<PathBuf>, String> {
    let wrong = |error: io::Error| format!("cannot read {}: {error}", path.display());
    if !fs::metadata(path).map_err(wrong)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(wrong)?;
    let found: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut files = found.map_err(wrong)?;
    files.retain(|file| {
        let extension = file.extension().and_then(|it| it.to_str());
        matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file()
    });
    if files.is_empty() {
        return Err(format!(
            "{} has no .yaml, .yml or .json file",
            path.display()
        ));
    }
    files.sort();
    Ok(files)
}

/// Reads the documents of a text; a list counts as its items.
fn read(place: &str, text: &str, objects: &mut Vec<FileObject>) -> Result<(), String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| format!("{place} is no YAML: {error}"))?;
    for (index, value) in documents.into_iter().enumerate() {
        let place = format!("{place}, document {}", index + 1);
        match value {
            Value::Null => {}
            Value::Object(mut list) if list.contains_key("items") => {
                let Some(Value::Array(all)) = list.remove("items") else {
                    return Err(format!("{place}: `items` is no list"));
                };
                objects.extend(all.into_iter().map(|value| FileObject {
                    place: place.clone(),
                    value,
                }));
            }
            value => objects.push(FileObject { place, value }),
        }
    }
    Ok(())
}

/// Applies the objects, those that others need first; returns how many of each kind there are.
async fn apply_all(client: &Client, mut objects: Vec<FileObject>) -> Result<Vec<String>, String> {
    objects.sort_by_key(|object| match object.value["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    let mut made: Vec<(String, usize)> = Vec::new();
    for object in objects {
        let kind = apply(client, &object.value)
            .await
            .map_err(|why| format!("{}: {why}", object.place))?;
        match made.iter_mut().find(|(made, _)| *made == kind) {
            Some((_, count)) => *count += 1,
            None => made.push((kind, 1)),
        }
    }
    let made = made
        .into_iter()
        .map(|(kind, count)| format!("{count} {kind}"));
    Ok(made.collect())
}

/// Applies an object, and its status if it has one; returns its kind.
async fn apply(client: &Client, value: &Value) -> Result<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&value["apiVersion"]), text(&value["kind"]));
    let name = text(&value["metadata"]["name"]);
    if version.is_empty() || kind.is_empty() || name.is_empty() {
        return Err("an object has an `apiVersion`, a `kind` and a `metadata.name`".to_owned());
    }
    let (group, number) = version.split_once('/').unwrap_or(("", &version));
    let gvk = GroupVersionKind::gvk(group, number, &kind);
    let (api, capabilities) = pinned_kind(client, &gvk)
        .await
        .map_err(|_| format!("there is no kind {kind} in {version}; add the file with its CRD"))?;
    let objects: Api<DynamicObject> = match (capabilities.scope, &value["metadata"]["namespace"]) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &api),
        (Scope::Namespaced, Value::String(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &api)
        }
        (Scope::Namespaced, _) => Api::namespaced_with(client.clone(), "default", &api),
    };
    let params = PatchParams::apply(MANAGER).force();
    let refused = |error: kube::Error| match error {
        kube::Error::Api(status) => status.message,
        error => error.to_string(),
    };
    let applied = objects.patch(&name, &params, &Patch::Apply(value)).await;
    applied.map_err(refused)?;
    if value.get("status").is_some() {
        let status = serde_json::json!({
            "apiVersion": version, "kind": kind,
            "metadata": { "name": name }, "status": value["status"],
        });
        let status = Patch::Apply(&status);
        match objects.patch_status(&name, &params, &status).await {
            // A kind without the subresource has its status in the object.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(refused(error)),
            Ok(_) => {}
        }
    }
    Ok(kind)
}
