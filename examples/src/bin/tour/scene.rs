//! This file starts the API, the operator's process and the servers, and stops all of them at the end.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use okt::crd;
use okt_examples::desk::{Desk, Trouble};
use okt_examples::notes::{Instance, Program};
use okt_examples::notes_operator::{HOME_VARIABLE, Keeper, Notes};
use okt_examples::screen;
use okt_testing::{ApiServer, Served};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_mins(5);

/// The namespace of all notebooks.
const NAMESPACE: &str = "default";

/// The processes and the API of the tour.
pub(crate) struct Scene {
    /// The user of the cluster.
    pub(crate) desk: Desk<Notes>,
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
        let desk = Desk {
            api: Api::namespaced(client, NAMESPACE),
            patience: PATIENCE,
        };
        let teller = tokio::spawn(desk.clone().print_transitions());
        let mut scene = Self {
            desk,
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

    /// Starts the operator as a process of its own; returns its pid.
    pub(crate) fn start_operator(&mut self) -> Result<u32, Trouble> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.operator_log())?;
        let operator = Command::new(std::env::current_exe()?)
            .args(["run", "--metrics-address", "127.0.0.1:0"])
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

    /// Returns the metrics of the operator's process.
    pub(crate) async fn metrics(&self) -> Result<String, Trouble> {
        let log = std::fs::read_to_string(self.operator_log())?;
        let line = log.lines().rfind(|line| line.contains("serves metrics"));
        let address = line.and_then(|line| line.split("address=").nth(1));
        let address = address.ok_or("the operator serves no metrics")?.trim();
        let answer = reqwest::get(format!("http://{address}/metrics")).await?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// Prints the end of the operator's log.
    pub(crate) fn show_operator_log(&self) {
        let log = std::fs::read_to_string(self.operator_log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        screen::note("the operator's last words:");
        for line in &lines[lines.len().saturating_sub(20)..] {
            screen::note(line);
        }
    }

    /// Stops everything that was started, in any state.
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

    /// Returns the server of a notebook.
    pub(crate) fn instance(&self, name: &str) -> Result<Instance, Trouble> {
        Ok(self.keeper.instance(NAMESPACE, name)?)
    }
}
