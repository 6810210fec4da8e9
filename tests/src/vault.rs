//! Vaults, which are saved and restored by requests.
use std::collections::VecDeque;
use std::sync::Arc;

use kube::CustomResource;
use okt::{
    Action, Application, Desired, Failure, LifecycleSpec, Request, Requests, Status,
    lifecycle_graph,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cluster::Served;

/// The life of a vault.
#[lifecycle_graph]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VaultState {
    /// It is made.
    #[entry]
    #[child(Open)]
    Starting,
    /// It is in use.
    #[rest(idle)]
    #[child(Restoring)]
    #[child(Saving)]
    #[child(Gone)]
    Open,
    /// It is restored.
    #[visit(args = RestoreArgs, result = Restored)]
    #[trigger(Broken, on_error(attempts = 2))]
    #[trigger(Open, on_abort)]
    #[child(Open)]
    Restoring,
    /// It is saved.
    #[visit(args = SaveArgs)]
    #[child(Open)]
    Saving,
    /// Its restore has failed.
    #[rest(hold, idle)]
    #[child(Restoring)]
    #[child(Saving)]
    #[child(Open)]
    #[child(Gone)]
    Broken,
    /// It is no more.
    #[leaf(idle)]
    Gone,
}

/// What a vault is restored from.
#[derive(Request, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[request(kind = "Restore", of = Vault, state = VaultState::Restoring, ttl = "1h", schedule)]
pub struct RestoreArgs {
    /// The backup.
    pub backup: String,
}

/// What a restored vault has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// Its records.
    pub records: u32,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Where a vault is saved.
#[derive(Request, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[request(kind = "Save", of = Vault)]
pub struct SaveArgs {
    /// The bucket.
    #[serde(default)]
    pub bucket: String,
}

/// A vault.
#[derive(CustomResource, LifecycleSpec, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.okt.dev",
    version = "v1",
    kind = "Vault",
    namespaced,
    status = "Status<VaultState>"
)]
pub struct VaultSpec {
    /// The desired state.
    #[serde(default)]
    pub lifecycle: Desired<VaultState>,
}

/// What an attempt does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Do {
    /// It succeeds.
    Done,
    /// It fails.
    Fails,
    /// It fails permanently.
    GivesUp,
    /// It does not end.
    Hangs,
    /// It answers with a result that is too long.
    Talks,
}

/// The operator of vaults; clones share what they do.
#[derive(Clone, Default)]
pub struct Vaults {
    /// What the next attempts do; later ones succeed.
    pub attempts: Arc<Mutex<VecDeque<Do>>>,
    /// The id and the arguments of each attempt.
    pub log: Arc<Mutex<Vec<(String, String)>>>,
}

impl Vaults {
    async fn attempt(&self, cx: &Action<Vault>, args: &str) -> Result<Do, Failure> {
        self.log.lock().push((cx.id().to_owned(), args.to_owned()));
        let attempt = self.attempts.lock().pop_front().unwrap_or(Do::Done);
        match attempt {
            Do::Hangs => std::future::pending().await,
            Do::Fails => Err(Failure::retry("NoSpace", "the disk is full")),
            Do::GivesUp => Err(Failure::permanent("NoBucket", "there is no such bucket")),
            Do::Done | Do::Talks => Ok(attempt),
        }
    }

    /// Returns the arguments of all attempts.
    pub fn args(&self) -> Vec<String> {
        self.log
            .lock()
            .iter()
            .map(|(_, args)| args.clone())
            .collect()
    }
}

impl VaultStateHandler for Vaults {
    type Context = Action<Vault>;
    type Error = Failure;

    async fn starting(&self, _: &Action<Vault>) -> Result<vault_state::AfterStarting, Failure> {
        Ok(vault_state::AfterStarting::Open)
    }

    async fn restoring(
        &self,
        cx: &Action<Vault>,
        args: &RestoreArgs,
    ) -> Result<vault_state::AfterRestoring<Restored>, Failure> {
        let attempt = self.attempt(cx, &args.backup).await?;
        let long = if attempt == Do::Talks { 2000 } else { 0 };
        Ok(vault_state::AfterRestoring::Open(Restored {
            records: 7,
            note: "x".repeat(long),
        }))
    }

    async fn saving(
        &self,
        cx: &Action<Vault>,
        args: &SaveArgs,
    ) -> Result<vault_state::AfterSaving, Failure> {
        self.attempt(cx, &args.bucket).await?;
        Ok(vault_state::AfterSaving::Open)
    }
}

impl Application for Vaults {
    type Resource = Vault;

    fn requests(requests: Requests<Vault>) -> Requests<Vault> {
        requests.serves::<Restore>().serves::<Save>()
    }
}

impl Served for Vaults {}
