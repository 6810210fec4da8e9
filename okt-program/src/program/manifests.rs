//! The subcommands `crd`, `rbac` and `manifests`: the objects that install a program, as YAML, as a chart for helm, or for
//! kustomize.

use std::path::Path;

use clap::ValueEnum;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use okt_runtime::__program::is_label;
use serde::Serialize;
use serde_json::Value;

use super::command_line::{Manifests, PolicyKind};
use super::run::NAME_LIMIT;
use super::{Operators, own_account, own_name, part, stream};
use crate::in_use::InUse;
use crate::install::account::ServiceAccount;
use crate::install::bundle::Bundle;
use crate::install::chart::{ACCOUNT_NAME, HelmChart, RELEASE_NAMESPACE, WATCHED_NAMESPACE};
use crate::install::generated::{Writer, yaml};
use crate::install::kustomize;
use crate::install::manifests::Installation;
use crate::install::rbac::{Rbac, lease_roles, metrics_roles, webhook_roles};
use crate::install::webhooks::{KindWebhooks, WebhookService};

/// The longest name of a service account, in bytes: a Service has a word behind it.
const ACCOUNT_LIMIT: usize = 63 - "-metrics".len();

impl Operators {
    /// Returns the CRDs, each merged with the CRD in use; the webhooks are in the namespace of `account`.
    fn definitions(
        &self,
        union: Option<&Path>,
        account: Option<&ServiceAccount>,
    ) -> Result<Vec<CustomResourceDefinition>, String> {
        let webhook = account.map(|it| WebhookService::of(&own_name(), &it.namespace));
        let in_use = union.map(InUse::read).transpose()?;
        let names: Vec<_> = self.parts.iter().map(|part| part.crd_name()).collect();
        let olds = match &in_use {
            Some(in_use) => in_use.of(&names)?,
            None => vec![None; names.len()],
        };
        let mut definitions = Vec::new();
        for (part, old) in self.parts.iter().zip(olds) {
            let mut crds = part.definitions(old)?;
            if let Some(webhook) = &webhook {
                for crd in &mut crds {
                    webhook.name_in(crd);
                }
            }
            definitions.extend(crds);
        }
        Ok(definitions)
    }

    /// Returns the CRDs as one YAML stream.
    pub(super) fn printed_definitions(
        &self,
        union: Option<&Path>,
        account: Option<&ServiceAccount>,
    ) -> Result<String, String> {
        yaml_stream(&self.definitions(union, account)?)
    }

    /// Returns the roles of all operators, in the order in which they are applied.
    pub(super) fn roles(
        &self,
        namespaces: &[String],
        account: Option<&ServiceAccount>,
        (secure, verbs): (bool, bool),
    ) -> Result<Vec<Value>, String> {
        let limit = self.limit(namespaces);
        let mut all = Vec::new();
        for part in &self.parts {
            all.push(part.roles(limit(&**part), account)?);
        }
        if let Some(account) = account {
            let program = own_name();
            all.push(lease_roles(&program, account));
            all.extend(secure.then(|| metrics_roles(&program, account)));
            let asked = self.webhooks();
            all.extend((!asked.is_empty()).then(|| webhook_roles(&program, &asked, account)));
        }
        let verbs = self.parts.iter().filter(|_| verbs);
        all.extend(verbs.map(|part| part.verb_roles()));
        objects(&all)
    }

    /// Returns the roles of all operators as one YAML stream.
    pub(super) fn printed_roles(
        &self,
        namespaces: &[String],
        account: Option<&ServiceAccount>,
        with: (bool, bool),
    ) -> Result<String, String> {
        yaml_stream(&self.roles(namespaces, account, with)?)
    }

    /// Returns what the API server asks this program.
    fn webhooks(&self) -> Vec<KindWebhooks> {
        part::webhooks(self.parts.iter().map(|part| &**part))
    }

    fn policies(&self, kind: PolicyKind, account: &ServiceAccount) -> Vec<Value> {
        let parts = self.parts.iter();
        parts
            .flat_map(|part| part.policies(kind, account))
            .collect()
    }

    /// Prints the manifests that install the program, or writes them where they are asked for; returns what to print.
    pub(super) fn manifests(&self, mut asked: Manifests) -> Result<String, String> {
        asked.namespace = once(asked.namespace);
        asked.policy = once(asked.policy);
        let asked = &asked;
        let account = asked.service_account.clone().map_or_else(own_account, Ok)?;
        check_names(&own_name(), &account.name)?;
        self.note_policies_that_are_none(asked, &account);
        if let Some(directory) = &asked.helm {
            return self.write_chart(asked, account, directory);
        }
        if let Some(directory) = &asked.bundle {
            return self.write_bundle(asked, &account, directory);
        }
        let groups = self.groups(asked, &account)?;
        if let Some(directory) = &asked.kustomize {
            let writer = Writer::of(&format!("{} manifests --kustomize", own_name()));
            let installation = self.installation(asked, &account);
            let files = kustomize::files(&writer, &installation, &groups);
            let written = writer.write(directory, &files, None)?;
            let base = shell_word(&directory.join("base"));
            let apply = format!("kubectl apply --server-side -k {base}");
            return Ok(report(&written, "install it", &apply));
        }
        let texts = groups.into_iter().map(|(_, text)| Ok(text));
        stream(texts.filter(|text| text != &Ok(String::new())))
    }

    /// Returns the manifests in the order in which they are applied, as groups of YAML documents with their names.
    fn groups(
        &self,
        asked: &Manifests,
        account: &ServiceAccount,
    ) -> Result<Vec<(&'static str, String)>, String> {
        let installation = self.installation(asked, account);
        let states = asked.policy.contains(&PolicyKind::States);
        let with = (asked.metrics_secure, states);
        let policies = asked.policy.iter();
        let policies: Vec<_> = policies
            .flat_map(|kind| self.policies(*kind, account))
            .collect();
        let mut place = Vec::new();
        // An existing namespace may hold more than this operator: the manifests must neither label nor delete it.
        if asked.service_account.is_none() {
            place.push(installation.namespace());
        }
        place.push(installation.service_account());
        let mut operator = vec![installation.deployment()];
        operator.extend(installation.disruption_budget());
        operator.extend(installation.metrics_service());
        operator.extend(installation.webhook_service());
        let mut webhooks = Vec::new();
        if let Some(service) = &installation.webhooks {
            let all = self.webhooks().into_iter();
            webhooks.extend(all.flat_map(|it| it.configurations(service, &asked.namespace)));
        }
        let mut around = Vec::new();
        around.extend(
            installation
                .service_monitor()
                .filter(|_| asked.service_monitor),
        );
        around.extend(
            installation
                .network_policy()
                .filter(|_| asked.network_policy),
        );
        Ok(vec![
            ("account", yaml_stream(&place)?),
            (
                "definitions",
                self.printed_definitions(asked.union.as_deref(), Some(account))?,
            ),
            (
                "roles",
                self.printed_roles(&asked.namespace, Some(account), with)?,
            ),
            ("policies", yaml_stream(&policies)?),
            ("operator", yaml_stream(&operator)?),
            ("webhooks", yaml_stream(&webhooks)?),
            ("monitoring", yaml_stream(&around)?),
        ])
    }

    fn installation<'a>(
        &self,
        asked: &'a Manifests,
        account: &'a ServiceAccount,
    ) -> Installation<'a> {
        Installation {
            account,
            image: &asked.image,
            namespaces: &asked.namespace,
            replicas: asked.replicas,
            shards: asked.shards.to_string(),
            serves: cfg!(feature = "serve"),
            secure: asked.metrics_secure,
            webhooks: (!self.webhooks().is_empty())
                .then(|| WebhookService::of(&own_name(), &account.namespace)),
        }
    }

    fn write_chart(
        &self,
        asked: &Manifests,
        account: ServiceAccount,
        directory: &Path,
    ) -> Result<String, String> {
        let home = account.namespace;
        // The Deployment has the name of the account that runs it by default.
        let named = ServiceAccount {
            namespace: RELEASE_NAMESPACE.to_owned(),
            name: account.name,
        };
        let account = ServiceAccount {
            namespace: RELEASE_NAMESPACE.to_owned(),
            name: ACCOUNT_NAME.to_owned(),
        };
        let watched = [WATCHED_NAMESPACE.to_owned()];
        // As for `run`: a program that has only cluster-scoped kinds cannot be limited.
        let can_be_limited = self.parts.iter().any(|part| !part.is_cluster_scoped());
        if !can_be_limited && !asked.namespace.is_empty() {
            // The error that `manifests` has without a chart.
            self.roles(&asked.namespace, None, (false, false))?;
        }
        let limited = || self.roles(&watched, Some(&account), (false, false));
        let limited_roles = can_be_limited.then(limited).transpose()?;
        let namespaces: &[String] = if can_be_limited { &watched } else { &[] };
        let service = WebhookService::of(&own_name(), RELEASE_NAMESPACE);
        let configurations = self.webhooks().into_iter();
        let configurations = configurations.flat_map(|it| it.configurations(&service, namespaces));
        let metrics =
            cfg!(feature = "secure-metrics").then(|| metrics_roles(&own_name(), &account));
        let policies = self.all_policies(&account)?;
        let default_policies = asked.policy.iter().map(|kind| kind_name(*kind));
        let default_policies = default_policies
            .filter(|name| policies.iter().any(|(it, _)| it == name))
            .collect();
        let definitions = self.definitions(asked.union.as_deref(), Some(&account))?;
        let chart = HelmChart {
            installation: self.installation(asked, &named),
            definitions: values(&definitions)?,
            roles: self.roles(&[], Some(&account), (false, false))?,
            limited_roles,
            metrics_roles: objects(metrics.as_slice())?,
            policies,
            default_policies,
            configurations: configurations.collect(),
            monitored: asked.service_monitor,
            guarded: asked.network_policy,
        };
        let writer = Writer::of(&format!("{} manifests --helm", own_name()));
        let written = writer.write(directory, &chart.files(&writer)?, None)?;
        let install = format!(
            "helm upgrade --install {} {} --namespace {home} --create-namespace",
            own_name(),
            shell_word(directory)
        );
        Ok(report(&written, "install it", &install))
    }

    fn write_bundle(
        &self,
        asked: &Manifests,
        account: &ServiceAccount,
        directory: &Path,
    ) -> Result<String, String> {
        let definitions = self.definitions(asked.union.as_deref(), Some(account))?;
        let bundle = Bundle {
            installation: self.installation(asked, account),
            definitions: values(&definitions)?,
            roles: self.roles(&[], Some(account), (asked.metrics_secure, false))?,
            webhooks: self.webhooks(),
            monitored: asked.service_monitor,
        };
        let writer = Writer::of(&format!("{} manifests --bundle", own_name()));
        let files = bundle.files(&writer, directory)?;
        let written = writer.write(directory, &files, Some("manifests"))?;
        let check = format!("operator-sdk bundle validate {}", shell_word(directory));
        Ok(report(&written, "check it", &check))
    }

    /// Says which policies are asked for that no kind of this program has.
    fn note_policies_that_are_none(&self, asked: &Manifests, account: &ServiceAccount) {
        for kind in &asked.policy {
            if self.policies(*kind, account).is_empty() {
                eprintln!(
                    "note: no kind of this program has policies of the kind `{}`",
                    kind_name(*kind)
                );
            }
        }
    }

    /// Returns the admission policies of all kinds that this program has, each with its roles.
    fn all_policies(&self, account: &ServiceAccount) -> Result<Vec<(String, Vec<Value>)>, String> {
        let mut all = Vec::new();
        for kind in PolicyKind::value_variants() {
            let mut policies = self.policies(*kind, account);
            if policies.is_empty() {
                continue;
            }
            if *kind == PolicyKind::States {
                let roles: Vec<_> = self.parts.iter().map(|part| part.verb_roles()).collect();
                policies.extend(objects(&roles)?);
            }
            all.push((kind_name(*kind), policies));
        }
        Ok(all)
    }
}

/// Returns what is given, each of it once.
fn once<T: PartialEq>(given: Vec<T>) -> Vec<T> {
    let mut once = Vec::new();
    for it in given {
        if !once.contains(&it) {
            once.push(it);
        }
    }
    once
}

/// Refuses names after which not all objects can be named.
fn check_names(program: &str, account: &str) -> Result<(), String> {
    if !is_label(program) || program.len() > NAME_LIMIT {
        return Err(format!(
            "the leases are named after the program, and `{program}` is no name for that: at most {NAME_LIMIT} lower case letters, digits and `-`"
        ));
    }
    if !is_label(account) || account.len() > ACCOUNT_LIMIT {
        return Err(format!(
            "the Deployment and its Services are named after the service account, and `{account}` is no name for them: at most {ACCOUNT_LIMIT} lower case letters, digits and `-`"
        ));
    }
    Ok(())
}

/// Returns a path as a word for a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if text.bytes().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the name of a kind of policy on the command line.
fn kind_name(kind: PolicyKind) -> String {
    let named = kind.to_possible_value();
    named.map_or_else(String::new, |it| it.get_name().to_owned())
}

fn values(definitions: &[CustomResourceDefinition]) -> Result<Vec<Value>, String> {
    let values = definitions.iter().map(serde_json::to_value);
    let values: Result<_, _> = values.collect();
    values.map_err(|error| error.to_string())
}

fn objects(roles: &[Rbac]) -> Result<Vec<Value>, String> {
    let all: Result<Vec<_>, _> = roles.iter().map(Rbac::objects).collect();
    Ok(all.map_err(|error| error.to_string())?.concat())
}

fn yaml_stream(objects: &[impl Serialize]) -> Result<String, String> {
    stream(objects.iter().map(yaml))
}

/// Returns what was done with which files, and a command for what comes next.
fn report(done: &[String], next: &str, command: &str) -> String {
    format!("{}\n\nTo {next}:\n  {command}\n", done.join("\n"))
}
