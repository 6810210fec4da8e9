//! The connection to a cluster, as kubectl finds it.

use std::path::PathBuf;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use okt_wire::api_timeout::limit_answers;
use okt_wire::texts::chain;

use crate::error::Error;

/// The options of kubectl that choose a cluster and a user.
#[derive(Args)]
pub(crate) struct ClusterOptions {
    /// The kubeconfig file [default: as kubectl, $KUBECONFIG or ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig file.
    #[arg(long, global = true, value_name = "NAME", help_heading = "Cluster")]
    context: Option<String>,
    /// The namespace [default: that of the context]
    #[arg(
        short,
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Cluster"
    )]
    pub(crate) namespace: Option<String>,
    /// Act as this user.
    #[arg(
        long = "as",
        global = true,
        value_name = "USER",
        help_heading = "Cluster"
    )]
    user: Option<String>,
    /// Act as a member of this group; may be repeated.
    #[arg(
        long = "as-group",
        global = true,
        value_name = "GROUP",
        requires = "user",
        help_heading = "Cluster"
    )]
    groups: Vec<String>,
}

impl ClusterOptions {
    /// Returns a client, whose default namespace is the chosen one.
    pub(crate) async fn client(&self) -> Result<Client, Error> {
        let unknown = |error: &dyn std::error::Error| {
            let text = chain(error);
            // The lines below quote the file, which may have a token there.
            let why = text.lines().next().unwrap_or_default();
            Error::Failed(format!(
                "cannot find a cluster: {why}; `kubectl config get-contexts` shows those of your kubeconfig"
            ))
        };
        let mut config = if self.kubeconfig.is_none() && self.context.is_none() {
            Config::infer().await.map_err(|error| unknown(&error))?
        } else {
            let read = match &self.kubeconfig {
                Some(path) => Kubeconfig::read_from(path),
                None => Kubeconfig::read(),
            };
            let kubeconfig = read.map_err(|error| unknown(&error))?;
            let options = KubeConfigOptions {
                context: self.context.clone(),
                ..KubeConfigOptions::default()
            };
            let config = Config::from_custom_kubeconfig(kubeconfig, &options);
            config.await.map_err(|error| unknown(&error))?
        };
        // kube would repeat a request that the server refuses for now, without a word about why.
        config.default_retry = false;
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups =
                Some(self.groups.clone()).filter(|groups| !groups.is_empty());
        }
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        let address = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| {
            Error::Failed(format!("cannot connect to {address}: {}", chain(&error)))
        })?;
        Ok(limit_answers(client))
    }
}
