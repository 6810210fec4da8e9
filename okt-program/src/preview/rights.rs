//! The rights that the service account of an operator lacks: the API server is asked about each.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::PostParams;
use kube::{Api, Client};
use okt_wire::texts::api_message;

use crate::install::account::ServiceAccount;
use crate::install::rbac::Rbac;

/// How many questions are asked at once.
const CONCURRENT: usize = 8;

/// Returns the rights of these roles that an account lacks, in words.
///
/// Boxed, so that everything in it is compiled here, and not once more for each application.
///
/// # Errors
///
/// Why the API server does not answer. Asking needs the right to create subjectaccessreviews.
pub(super) fn lacking<'a>(
    client: &'a Client,
    roles: &'a Rbac,
    account: &'a ServiceAccount,
) -> BoxFuture<'a, Result<Vec<String>, String>> {
    async move {
        let api: Api<SubjectAccessReview> = Api::all(client.clone());
        let questions = stream::iter(asked(roles).into_iter().map(|right| {
            let (api, review) = (&api, right.review(account));
            async move {
                let answer = api.create(&PostParams::default(), &review).await;
                (right, answer)
            }
        }));
        let mut answers = questions.buffered(CONCURRENT);
        // The verbs that are lacking, by what they are for.
        let mut lacking: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some((right, answer)) = answers.next().await {
            let review = answer.map_err(|error| api_message(&error))?;
            if !review.status.is_some_and(|status| status.allowed) {
                let verbs = lacking.entry(right.what()).or_default();
                verbs.push(right.verb);
            }
        }
        let lacking = lacking.into_iter();
        let words = lacking.map(|(what, verbs)| format!("{} {what}", verbs.join(", ")));
        Ok(words.collect())
    }
    .boxed()
}

/// One verb on one resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    namespace: Option<String>,
    group: String,
    resource: String,
    verb: String,
    name: Option<String>,
}

/// Returns the rights that the roles of the account give; roles without a binding are for people.
fn asked(roles: &Rbac) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    let bound: Vec<_> = roles
        .cluster_role_bindings
        .iter()
        .map(|it| &it.role_ref.name)
        .collect();
    for role in &roles.cluster_roles {
        if role
            .metadata
            .name
            .as_ref()
            .is_some_and(|name| bound.contains(&name))
        {
            add(&mut rights, None, role.rules.as_deref().unwrap_or_default());
        }
    }
    for role in &roles.roles {
        let namespace = role.metadata.namespace.as_deref();
        add(
            &mut rights,
            namespace,
            role.rules.as_deref().unwrap_or_default(),
        );
    }
    rights
}

fn add(rights: &mut BTreeSet<Right>, namespace: Option<&str>, rules: &[PolicyRule]) {
    for rule in rules {
        let names: Vec<Option<String>> = match rule.resource_names.as_deref() {
            None | Some([]) => vec![None],
            Some(names) => names.iter().cloned().map(Some).collect(),
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    for name in &names {
                        rights.insert(Right {
                            namespace: namespace.map(str::to_owned),
                            group: group.clone(),
                            resource: resource.clone(),
                            verb: verb.clone(),
                            name: name.clone(),
                        });
                    }
                }
            }
        }
    }
}

impl Right {
    fn review(&self, account: &ServiceAccount) -> SubjectAccessReview {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, sub)) => (resource, Some(sub.to_owned())),
            None => (&*self.resource, None),
        };
        let ServiceAccount { namespace, name } = account;
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{namespace}:{name}")),
                groups: Some(vec![
                    "system:serviceaccounts".to_owned(),
                    format!("system:serviceaccounts:{namespace}"),
                    "system:authenticated".to_owned(),
                ]),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(self.group.clone()),
                    name: self.name.clone(),
                    namespace: self.namespace.clone(),
                    resource: Some(resource.to_owned()),
                    subresource,
                    verb: Some(self.verb.clone()),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }

    /// Returns what the right is for, in words (e.g. `deployments.apps in the namespace demo`).
    fn what(&self) -> String {
        let (resource, sub) = match self.resource.split_once('/') {
            Some((resource, sub)) => (resource, format!("/{sub}")),
            None => (&*self.resource, String::new()),
        };
        let dot = if self.group.is_empty() { "" } else { "." };
        let mut words = format!("{resource}{dot}{}{sub}", self.group);
        if let Some(name) = &self.name {
            words.push_str(&format!(" {name}"));
        }
        if let Some(namespace) = &self.namespace {
            words.push_str(&format!(" in the namespace {namespace}"));
        }
        words
    }
}
