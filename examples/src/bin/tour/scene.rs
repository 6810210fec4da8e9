//! This file sets the scene: the API, the operator's process, the servers, and an end that leaves nothing behind.

use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use okt_examples::notes::{Instance, Program};
use okt_examples::notes_operator::{HOME_VARIABLE, Keeper, Notes, NotesState};
use okt_examples::screen::{self, Wait};
use okt_runtime::{Position, crd};
use okt_testing::{ApiServer, Served};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// Whatever ends a tour early.
pub(crate) type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The namespace of all notebooks.
const NAMESPACE: &str = "default";

/// Everything that runs.
pub(crate) struct Scene {
    pub(crate) api: Api<Notes>,
    pub(crate) keeper: Keeper,
    pub(crate) kubeconfig: PathBuf,
    directory: TempDir,
    served: Served,
    operator: Option<Child>,
    teller: JoinHandle<()>,
}

impl Scene {
    /// Starts the API and the operator.
    pub(crate) async fn set() -> Result<Self, Trouble> {
        let directory = tempfile::Builder::new().prefix("okt-tour-").tempdir()?;
        let server = ApiServer::new();
        let served = server.serve().await?;
        let kubeconfig = directory.path().join("kubeconfig");
        served.write_kubeconfig(&kubeconfig)?;
        let client = server.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        crds.create(&PostParams::default(), &crd::<Notes>()?)
            .await?;
        let program = Program {
            exe: std::env::current_exe()?,
            args: vec!["serve".into()],
        };
        let api: Api<Notes> = Api::namespaced(client, NAMESPACE);
        let teller = tokio::spawn(tell_transitions(api.clone()));
        let mut scene = Self {
            api,
            keeper: Keeper::new(directory.path(), program),
            kubeconfig,
            directory,
            served,
            operator: None,
            teller,
        };
        scene.start_operator()?;
        Ok(scene)
    }

    /// The address of the API.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.served.address())
    }

    /// Starts the operator as a process of its own; gives its pid.
    pub(crate) fn start_operator(&mut self) -> Result<u32, Trouble> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.operator_log())?;
        let operator = Command::new(std::env::current_exe()?)
            .arg("run")
            .env("KUBECONFIG", &self.kubeconfig)
            .env(HOME_VARIABLE, self.directory.path())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()?;
        let pid = operator.id().unwrap_or_default();
        self.operator = Some(operator);
        Ok(pid)
    }

    /// Kills the operator with SIGKILL.
    pub(crate) async fn kill_operator(&mut self) -> Result<(), Trouble> {
        if let Some(mut operator) = self.operator.take() {
            operator.kill().await?;
        }
        Ok(())
    }

    fn operator_log(&self) -> PathBuf {
        self.directory.path().join("operator.log")
    }

    /// Prints the end of what the operator said.
    pub(crate) fn show_operator_log(&self) {
        let log = std::fs::read_to_string(self.operator_log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        screen::note("the operator's last words:");
        for line in &lines[lines.len().saturating_sub(20)..] {
            screen::note(line);
        }
    }

    /// Stops everything that was started, whatever state it is in.
    pub(crate) async fn strike(mut self) {
        if let Err(error) = self.kill_operator().await {
            screen::trouble(&format!("cannot stop the operator: {error}"));
        }
        let data = self.directory.path().join("data").join(NAMESPACE);
        let names = data.read_dir().into_iter().flatten().flatten();
        for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
            let killed = match self.instance(&name) {
                Ok(server) => server.kill().await.map_err(Trouble::from),
                Err(error) => Err(error),
            };
            if let Err(error) = killed {
                screen::trouble(&format!("cannot stop the server of {name}: {error}"));
            }
        }
        self.teller.abort();
        self.served.shutdown().await;
    }

    /// The server of a notebook.
    pub(crate) fn instance(&self, name: &str) -> Result<Instance, Trouble> {
        Ok(self.keeper.instance(NAMESPACE, name)?)
    }

    /// Creates a notebook.
    pub(crate) async fn create(&self, name: &str, spec: Value) -> Result<(), Trouble> {
        let notes: Notes = serde_json::from_value(json!({
            "apiVersion": "demo.okt.dev/v1",
            "kind": "Notes",
            "metadata": { "name": name },
            "spec": spec,
        }))?;
        self.api.create(&PostParams::default(), &notes).await?;
        Ok(())
    }

    /// Changes a notebook as `kubectl patch --type merge` does.
    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Result<(), Trouble> {
        self.api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Changes the lifecycle field of a notebook.
    pub(crate) async fn wish(&self, name: &str, lifecycle: Value) -> Result<(), Trouble> {
        self.patch(name, json!({ "spec": { "lifecycle": lifecycle } }))
            .await
    }

    /// A notebook as it is now.
    pub(crate) async fn get(&self, name: &str) -> Result<Notes, Trouble> {
        Ok(self.api.get(name).await?)
    }

    /// Waits until something is so of a notebook.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        so: impl Fn(&Notes) -> bool,
    ) -> Result<Notes, Trouble> {
        let what = format!("{name} {what}");
        wait(&what, async || {
            let notes = self.api.get_opt(name).await?;
            Ok(notes.filter(|notes| so(notes)))
        })
        .await
    }

    /// Waits until a notebook is in a state.
    pub(crate) async fn until_in(&self, name: &str, state: NotesState) -> Result<Notes, Trouble> {
        self.until(name, &format!("is in {state:?}"), |notes| {
            at(notes) == Some(state)
        })
        .await
    }

    /// Waits until a notebook is ready in a state.
    pub(crate) async fn until_ready(
        &self,
        name: &str,
        state: NotesState,
    ) -> Result<Notes, Trouble> {
        let what = format!("is ready in {state:?}");
        self.until(name, &what, |notes| {
            at(notes) == Some(state)
                && condition(notes, "Ready").is_some_and(|c| c.status == "True")
        })
        .await
    }

    /// Waits until a notebook is gone.
    pub(crate) async fn until_gone(&self, name: &str) -> Result<(), Trouble> {
        wait(&format!("{name} is gone"), async || {
            Ok(self.api.get_opt(name).await?.is_none().then_some(()))
        })
        .await
    }
}

/// Waits for something, and says so when it takes long.
pub(crate) async fn wait<T, F>(what: &str, ask: impl Fn() -> F) -> Result<T, Trouble>
where
    F: Future<Output = Result<Option<T>, Trouble>>,
{
    let mut wait = Wait::new(what);
    loop {
        if let Some(found) = ask().await? {
            return Ok(found);
        }
        if wait.elapsed() > PATIENCE {
            return Err(format!("waited {} s in vain until {what}", PATIENCE.as_secs()).into());
        }
        wait.tick();
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// The position of a notebook.
pub(crate) fn position(notes: &Notes) -> Option<&Position<NotesState>> {
    notes.status.as_ref()?.lifecycle.as_ref()
}

/// The state of a notebook.
pub(crate) fn at(notes: &Notes) -> Option<NotesState> {
    position(notes)?.state.known()
}

/// A condition of a notebook.
pub(crate) fn condition<'a>(notes: &'a Notes, name: &str) -> Option<&'a Condition> {
    let conditions = &notes.status.as_ref()?.conditions;
    conditions.iter().find(|condition| condition.type_ == name)
}

/// Prints every transition from the history, so that none is missed between two events.
async fn tell_transitions(api: Api<Notes>) {
    let told = std::sync::Mutex::new(std::collections::BTreeMap::new());
    let events = watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let telling = events.try_for_each(|notes| {
        let name = notes.name_any();
        if let (Some(position), Ok(mut told)) = (position(&notes), told.lock()) {
            let last = told.entry(notes.uid().unwrap_or_default()).or_insert(0);
            for step in &position.history {
                if step.transition > *last {
                    *last = step.transition;
                    screen::transition(&name, &step.from, &step.to, &step.cause, &position.trail);
                }
            }
        }
        std::future::ready(Ok(()))
    });
    if let Err(error) = telling.await {
        screen::trouble(&format!("cannot watch the notebooks: {error}"));
    }
}
