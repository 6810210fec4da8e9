//! The roles: the minimum that an operator needs, and roles for the users of its kind.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{CustomResourceExt, Resource};
use serde::Serialize;
use serde_json::Value;

use okt_core::Lifecycle;
use okt_runtime::__program::{ResourceKind, ServedKind, WatchedKinds};
use okt_runtime::{Application, OperatorError, Requests, StateOf, Watches};

use super::account::ServiceAccount;
use super::policy;
use super::webhooks::KindWebhooks;

/// The API group of roles.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The namespace of the events about cluster-scoped objects.
const EVENTS_OF_CLUSTER_SCOPED: &str = "default";

/// The roles of an operator and of the users of its kind, as [`rbac`] returns them.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Rbac {
    /// The cluster role of the operator, and the roles `:view`, `:edit` and `:approve` of the users.
    pub cluster_roles: Vec<ClusterRole>,
    /// The roles of the operator in single namespaces.
    pub roles: Vec<Role>,
    /// The bindings of the service account to its cluster roles.
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// The bindings of the service account to its roles.
    pub role_bindings: Vec<RoleBinding>,
}

impl Rbac {
    /// Returns all objects as JSON, in the order in which they are applied.
    ///
    /// # Errors
    ///
    /// None is known: all these objects serialize.
    pub fn objects(&self) -> Result<Vec<Value>, serde_json::Error> {
        fn all<T: Serialize>(
            objects: &[T],
        ) -> impl Iterator<Item = Result<Value, serde_json::Error>> {
            objects.iter().map(serde_json::to_value)
        }
        all(&self.cluster_roles)
            .chain(all(&self.roles))
            .chain(all(&self.cluster_role_bindings))
            .chain(all(&self.role_bindings))
            .collect()
    }

    /// Adds other roles.
    #[cfg(feature = "cli")]
    pub(crate) fn add(&mut self, other: Self) {
        self.cluster_roles.extend(other.cluster_roles);
        self.roles.extend(other.roles);
        self.cluster_role_bindings
            .extend(other.cluster_role_bindings);
        self.role_bindings.extend(other.role_bindings);
    }

    fn grant(&mut self, name: &str, place: Option<&str>, rules: Vec<PolicyRule>) {
        match place {
            None => self.cluster_roles.push(ClusterRole {
                metadata: meta(name, None),
                rules: Some(rules),
                ..ClusterRole::default()
            }),
            Some(namespace) => self.roles.push(Role {
                metadata: meta(name, Some(namespace)),
                rules: Some(rules),
            }),
        }
    }

    /// Binds all roles so far to the account.
    fn bind(&mut self, account: &ServiceAccount) {
        let subject = Subject {
            kind: "ServiceAccount".to_owned(),
            name: account.name.clone(),
            namespace: Some(account.namespace.clone()),
            ..Subject::default()
        };
        let to = |kind: &str, metadata: &ObjectMeta| RoleRef {
            #[allow(
                clippy::useless_conversion,
                reason = "an `Option` in the types of Kubernetes 1.36 and newer, a `String` in older ones"
            )]
            api_group: GROUP.to_owned().into(),
            kind: kind.to_owned(),
            name: metadata.name.clone().unwrap_or_default(),
        };
        for role in &self.cluster_roles {
            self.cluster_role_bindings.push(ClusterRoleBinding {
                metadata: role.metadata.clone(),
                role_ref: to("ClusterRole", &role.metadata),
                subjects: Some(vec![subject.clone()]),
            });
        }
        for role in &self.roles {
            self.role_bindings.push(RoleBinding {
                metadata: role.metadata.clone(),
                role_ref: to("Role", &role.metadata),
                subjects: Some(vec![subject.clone()]),
            });
        }
    }
}

/// Returns the minimal roles for the operator of an application, and roles for people who view or edit its objects.
///
/// An operator limited to `namespaces` gets a role in each of them; none means the whole cluster.
/// With an `account` the bindings are included; you create the account itself.
/// The users' roles `<plural>.<group>:view` and `:edit` join the cluster's own `view`, `edit` and `admin`. The role
/// `:approve` joins none: bind it to those who may approve plans, where [`approval_policy`](crate::approval_policy) asks
/// for it.
/// The roles cover the kinds that [`watches`](Application::watches) declares as owned, referred to or reached. Add
/// roles for other requests of your handlers, and [`lease_roles`] if there are several replicas.
///
/// # Errors
///
/// [`OperatorError::ClusterScoped`] if namespaces are given for a cluster-scoped kind; leave them out.
///
/// ```no_run
/// # fn example<A: okt::Application>() -> Result<(), Box<dyn std::error::Error>> {
/// let roles = okt::rbac::<A>(&["team-a"], Some(&"ops/databases".parse()?))?;
/// for object in roles.objects()? {
///     println!("{object}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn rbac<A: Application>(
    namespaces: &[impl AsRef<str>],
    account: Option<&ServiceAccount>,
) -> Result<Rbac, OperatorError> {
    let crd = A::Resource::crd();
    let cluster_scoped = crd.spec.scope == "Cluster";
    if cluster_scoped && !namespaces.is_empty() {
        return Err(OperatorError::ClusterScoped(crd.spec.names.kind));
    }
    let plural = A::Resource::plural(&());
    let names = KindNames {
        crd: A::Resource::crd_name(),
        group: &A::Resource::group(&()),
        plural: &plural,
    };
    let watches = A::watches(Watches::default()).kinds;
    let served = A::requests(Requests::default()).kinds;
    let requests: Vec<PolicyRule> = served.iter().flat_map(served_by_operator).collect();
    let others = |of: fn(&ResourceKind) -> bool| beside(&watches, of);
    let operator = format!("{}:operator", names.crd);
    let mut rbac = Rbac::default();
    let mut cluster = vec![names.definition()];
    if cluster_scoped {
        cluster.extend(names.objects());
        cluster.extend(requests.iter().cloned());
        cluster.extend(others(|_| true));
        cluster.extend(reached(&watches));
        rbac.grant(&operator, Some(EVENTS_OF_CLUSTER_SCOPED), vec![events()]);
    } else if namespaces.is_empty() {
        cluster.extend(names.objects());
        cluster.extend(requests.iter().cloned());
        cluster.extend(others(|_| true));
        cluster.extend(reached(&watches));
        cluster.push(events());
    } else {
        cluster.extend(others(|kind| !kind.namespaced));
    }
    // A namespace that is given twice counts once.
    let namespaces: BTreeSet<&str> = namespaces.iter().map(AsRef::as_ref).collect();
    for namespace in namespaces {
        let mut rules = Vec::from(names.objects());
        rules.extend(requests.iter().cloned());
        rules.extend(others(|kind| kind.namespaced));
        rules.extend(reached(&watches));
        rules.push(events());
        rbac.grant(&operator, Some(namespace), rules);
    }
    rbac.grant(&operator, None, cluster);
    if let Some(account) = account {
        rbac.bind(account);
    }
    // Added after the bindings, because these are for people.
    rbac.cluster_roles.extend([names.view(), names.edit()]);
    if StateOf::<A>::GRAPH.has_approvals() {
        let name = format!("{}:approve", names.crd);
        rbac.grant(
            &name,
            None,
            vec![rule(names.group, &[names.plural], &[policy::VERB])],
        );
    }
    let beside = served
        .iter()
        .flat_map(|it| [Some(&it.kind), it.schedule.as_ref()]);
    for kind in beside.flatten() {
        let crd = format!("{}.{}", kind.api.plural, kind.api.group);
        let names = KindNames {
            crd: &crd,
            group: &kind.api.group,
            plural: &kind.api.plural,
        };
        rbac.cluster_roles.extend([names.view(), names.edit()]);
    }
    Ok(rbac)
}

/// Returns the role for the leases of the replicas of a program, in the namespace of its service account, and its
/// binding. A [`Membership`](okt_runtime::Membership) needs it.
///
/// ```
/// let roles = okt::lease_roles("databases", &"ops/databases".parse()?);
/// assert_eq!(roles.roles[0].metadata.name.as_deref(), Some("databases:leases"));
/// # Ok::<(), okt::ServiceAccountError>(())
/// ```
pub fn lease_roles(program: &str, account: &ServiceAccount) -> Rbac {
    const VERBS: [&str; 5] = ["list", "watch", "create", "patch", "delete"];
    let mut rbac = Rbac::default();
    let leases = rule("coordination.k8s.io", &["leases"], &VERBS);
    let name = format!("{program}:leases");
    rbac.grant(&name, Some(&account.namespace), vec![leases]);
    rbac.bind(account);
    rbac
}

/// Returns the roles for metrics that only those may read whom the API server permits (`serve_securely` of
/// [`Monitoring`](okt_runtime::Monitoring), feature `secure-metrics`): one for the service account of the program, with its binding, and
/// `<program>:metrics-reader`, which you bind to whoever reads the metrics, such as the service account of Prometheus.
///
/// ```
/// let roles = okt::metrics_roles("databases", &"ops/databases".parse()?);
/// let names: Vec<_> = roles.cluster_roles.iter().filter_map(|role| role.metadata.name.as_deref()).collect();
/// assert_eq!(names, ["databases:metrics", "databases:metrics-reader"]);
/// # Ok::<(), okt::ServiceAccountError>(())
/// ```
pub fn metrics_roles(program: &str, account: &ServiceAccount) -> Rbac {
    let mut rbac = Rbac::default();
    let reviews = vec![
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule(
            "authorization.k8s.io",
            &["subjectaccessreviews"],
            &["create"],
        ),
    ];
    rbac.grant(&format!("{program}:metrics"), None, reviews);
    rbac.bind(account);
    // Added after the binding, because it is for others.
    let read = PolicyRule {
        non_resource_urls: Some(vec!["/metrics".to_owned()]),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    };
    rbac.grant(&format!("{program}:metrics-reader"), None, vec![read]);
    rbac
}

/// Returns the roles for the verbs that [`verb_policy`](crate::verb_policy) asks for: `<plural>.<group>:use` may ask for
/// every state and visit, `:operate` may also pause and abandon. Bind them beside `:edit`; a role of your own may have
/// some of the verbs. Nothing for an application without a lifecycle.
///
/// ```no_run
/// # fn example<A: okt::Application>() {
/// for role in okt::verb_roles::<A>().cluster_roles {
///     println!("{:?}", role.metadata.name);
/// }
/// # }
/// ```
pub fn verb_roles<A: Application>() -> Rbac {
    let mut rbac = Rbac::default();
    let (plural, group) = (A::Resource::plural(&()), A::Resource::group(&()));
    let states: Vec<_> = policy::verbs(StateOf::<A>::GRAPH).collect();
    if states.is_empty() {
        return rbac;
    }
    for (name, more) in [("use", &[][..]), ("operate", &["pause", "abandon"])] {
        let verbs: Vec<_> = states
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        let rules = vec![rule(&group, &[&plural], &verbs)];
        rbac.grant(&format!("{}:{name}", A::Resource::crd_name()), None, rules);
    }
    rbac
}

/// Returns the role for the certificate of the webhooks of a program, in the namespace of its service account, the role
/// that lets the objects trust it by which the API server finds the webhooks of these kinds, and their bindings.
///
/// ```no_run
/// # use okt::Application;
/// # fn example<A: Application>() -> Result<(), okt::ServiceAccountError> {
/// let kinds = [okt::KindWebhooks::of::<A>()];
/// let roles = okt::webhook_roles("tents", &kinds, &"ops/tents".parse()?);
/// assert_eq!(roles.roles[0].metadata.name.as_deref(), Some("tents:webhooks"));
/// # Ok(())
/// # }
/// ```
pub fn webhook_roles(program: &str, kinds: &[KindWebhooks], account: &ServiceAccount) -> Rbac {
    const TRUST: [&str; 3] = ["list", "watch", "patch"];
    let mut rbac = Rbac::default();
    let name = format!("{program}:webhooks");
    let own = |rule: PolicyRule, names: Vec<String>| PolicyRule {
        resource_names: Some(names),
        ..rule
    };
    let secret = vec![format!("{program}-webhook")];
    let certificate = vec![
        own(rule("", &["secrets"], &["list", "update"]), secret),
        // The name of what does not exist yet cannot be permitted.
        rule("", &["secrets"], &["create"]),
    ];
    rbac.grant(&name, Some(&account.namespace), certificate);
    let of = |group: &str, resource: &str, asks: fn(&KindWebhooks) -> bool| {
        let kinds = kinds.iter().filter(|kind| asks(kind));
        let names: Vec<_> = kinds.map(|kind| kind.crd.to_owned()).collect();
        (!names.is_empty()).then(|| own(rule(group, &[resource], &TRUST), names))
    };
    let admission = "admissionregistration.k8s.io";
    let rules = [
        of("apiextensions.k8s.io", "customresourcedefinitions", |it| {
            it.converts
        }),
        of(admission, "mutatingwebhookconfigurations", |it| {
            it.completes
        }),
        of(admission, "validatingwebhookconfigurations", |it| {
            it.validates
        }),
    ];
    rbac.grant(&name, None, rules.into_iter().flatten().collect());
    rbac.bind(account);
    rbac
}

/// Returns the rules for the other kinds of an operator that `of` selects, one for each kind.
fn beside(watches: &WatchedKinds, of: fn(&ResourceKind) -> bool) -> Vec<PolicyRule> {
    const OWNED: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];
    const REFERRED: [&str; 2] = ["list", "watch"];
    let referred = watches.referred.iter().map(|it| &it.kind);
    let mapped = watches.mapped.iter().map(|it| &it.kind);
    let mut only_referred: Vec<&ResourceKind> = Vec::new();
    for kind in referred.chain(mapped) {
        if !watches.owned.contains(kind) && !only_referred.contains(&kind) {
            only_referred.push(kind);
        }
    }
    let owned = watches.owned.iter().map(|kind| (kind, &OWNED[..]));
    owned
        .chain(only_referred.into_iter().map(|kind| (kind, &REFERRED[..])))
        .filter(|(kind, _)| of(kind))
        .map(|(kind, verbs)| rule(&kind.api.group, &[&kind.api.plural], verbs))
        .collect()
}

/// Returns the rules for a kind of requests, and for its schedules.
fn served_by_operator(served: &ServedKind) -> Vec<PolicyRule> {
    let kind = &served.kind.api;
    let status = |plural: &str| rule(&kind.group, &[&format!("{plural}/status")], &["patch"]);
    // `patch` is for the label of finished ones, `delete` for those whose time is over.
    let mut verbs = vec!["list", "watch", "patch", "delete"];
    verbs.extend(served.schedule.iter().map(|_| "create"));
    let mut rules = vec![
        rule(&kind.group, &[&kind.plural], &verbs),
        status(&kind.plural),
    ];
    if let Some(schedule) = &served.schedule {
        let plural = &schedule.api.plural;
        rules.push(rule(&kind.group, &[plural], &["list", "watch"]));
        rules.push(status(plural));
    }
    rules
}

/// Returns the rules for handlers that access pods.
fn reached(watches: &WatchedKinds) -> Vec<PolicyRule> {
    // A WebSocket begins as a GET; since Kubernetes 1.35 the server requires `create` as well.
    const CONNECT: [&str; 2] = ["get", "create"];
    let mut rules = Vec::new();
    if watches.execs {
        rules.push(rule("", &["pods"], &["get"]));
        rules.push(rule("", &["pods/exec"], &CONNECT));
    }
    if watches.forwards {
        rules.push(rule("", &["pods"], &["get", "list"]));
        rules.push(rule("", &["services"], &["get"]));
        rules.push(rule("", &["pods/portforward"], &CONNECT));
    }
    rules
}

/// The names of the kind in rules.
struct KindNames<'a> {
    crd: &'a str,
    group: &'a str,
    plural: &'a str,
}

impl KindNames<'_> {
    /// Returns the rule for the CRD. A list and a watch of a single named object are allowed by its name.
    fn definition(&self) -> PolicyRule {
        PolicyRule {
            resource_names: Some(vec![self.crd.to_owned()]),
            ..rule(
                "apiextensions.k8s.io",
                &["customresourcedefinitions"],
                &["list", "watch"],
            )
        }
    }

    fn objects(&self) -> [PolicyRule; 3] {
        let (status, finalizers) = (self.sub("status"), self.sub("finalizers"));
        [
            // `patch` is for the finalizer.
            rule(self.group, &[self.plural], &["list", "watch", "patch"]),
            rule(self.group, &[&status], &["patch"]),
            // Owner references that block deletion need it on clusters that check this (OpenShift does).
            rule(self.group, &[&finalizers], &["update"]),
        ]
    }

    fn view(&self) -> ClusterRole {
        self.of_people(
            "view",
            &["view", "edit", "admin"],
            &["get", "list", "watch"],
        )
    }

    fn edit(&self) -> ClusterRole {
        let verbs = ["create", "update", "patch", "delete", "deletecollection"];
        self.of_people("edit", &["edit", "admin"], &verbs)
    }

    fn of_people(&self, name: &str, joined: &[&str], verbs: &[&str]) -> ClusterRole {
        let label = |role: &&str| (format!("{GROUP}/aggregate-to-{role}"), "true".to_owned());
        let labels: BTreeMap<_, _> = joined.iter().map(label).collect();
        ClusterRole {
            metadata: ObjectMeta {
                labels: Some(labels),
                ..meta(&format!("{}:{name}", self.crd), None)
            },
            rules: Some(vec![rule(self.group, &[self.plural], verbs)]),
            ..ClusterRole::default()
        }
    }

    fn sub(&self, subresource: &str) -> String {
        format!("{}/{subresource}", self.plural)
    }
}

fn events() -> PolicyRule {
    rule("events.k8s.io", &["events"], &["create", "patch"])
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

fn meta(name: &str, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    }
}
