//! Why the API server refuses a request, and what to do about it: quotas, namespaces that go, webhooks, policies and roles
//! answer with the same code.

use kube::core::Status;

/// Who refuses a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The roles of the operator.
    Roles,
    /// A `ResourceQuota`.
    Quota,
    /// A `LimitRange`.
    Limits,
    /// The namespace is being deleted.
    Terminating,
    /// An admission webhook.
    Webhook,
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// The Pod Security Standard of the namespace.
    PodSecurity,
    /// Something else, which the message names.
    Other,
}

impl Refusal {
    /// Returns who refuses a request that was answered with a failure.
    pub fn of(status: &Status) -> Self {
        let causes = status.details.as_ref().map_or(&[][..], |it| &it.causes);
        if causes.iter().any(|it| it.reason == "NamespaceTerminating") {
            return Self::Terminating;
        }
        Self::of_message(&status.message)
    }

    /// Returns who refuses a request, by its message. The words are those of kube-apiserver 1.36 (`apiserver/pkg/admission`
    /// and `plugin/pkg/admission`, `endpoints/handlers/responsewriters`); each stands behind the name of the object, so that
    /// nothing that a user has chosen is taken for it.
    pub fn of_message(message: &str) -> Self {
        if message.starts_with("admission webhook \"") {
            return Self::Webhook;
        }
        let Some((_, why)) = message.split_once("is forbidden: ") else {
            return Self::Other;
        };
        let begins = |words: &[&str]| words.iter().any(|word| why.starts_with(word));
        if begins(&["exceeded quota: ", "failed quota: "]) {
            Self::Quota
        } else if begins(&["unable to create new content in namespace "]) {
            Self::Terminating
        } else if begins(&["violates PodSecurity "]) {
            Self::PodSecurity
        } else if begins(&["ValidatingAdmissionPolicy "]) {
            Self::Policy
        } else if begins(&["maximum ", "minimum ", "[maximum ", "[minimum "])
            && why.contains(" usage per ")
        {
            Self::Limits
        } else if begins(&["User \"", "user \""]) || begins(&["cannot set blockOwnerDeletion "]) {
            Self::Roles
        } else {
            Self::Other
        }
    }

    /// Returns what a person can do; nothing if only the message knows.
    pub fn advice(self) -> Option<&'static str> {
        match self {
            Self::Roles => Some("apply the roles that the subcommand `rbac` prints"),
            Self::Quota => Some("raise the quota of the namespace, or ask for less"),
            Self::Limits => Some("change the LimitRange of the namespace, or what is asked for"),
            Self::Terminating => Some(
                "nothing can be made in a namespace that is being deleted; it ends with the namespace",
            ),
            Self::Webhook => {
                Some("the admission webhook decides it: see its configuration and its log")
            }
            Self::Policy => Some("a ValidatingAdmissionPolicy of the cluster decides it"),
            Self::PodSecurity => {
                Some("change the Pod Security Standard of the namespace, or what the Pods ask for")
            }
            Self::Other => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_refuses_is_told_by_what_the_api_server_says() {
        for (message, refusal) in [
            (
                r#"databases.demo.okt.dev "db" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "databases/status" in API group "demo.okt.dev" in the namespace "a""#,
                Refusal::Roles,
            ),
            (
                "deployments.apps \"a\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>",
                Refusal::Roles,
            ),
            (
                r#"pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"#,
                Refusal::Quota,
            ),
            (
                r#"pods "a" is forbidden: failed quota: q: must specify limits.cpu for: web"#,
                Refusal::Quota,
            ),
            (
                r#"pods "a" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, minimum memory usage per Container is 1Gi, but request is 1Mi]"#,
                Refusal::Limits,
            ),
            (
                r#"configmaps "a" is forbidden: unable to create new content in namespace b because it is being terminated"#,
                Refusal::Terminating,
            ),
            (
                r#"admission webhook "check.example.com" denied the request: pods "a" is forbidden: exceeded quota: x"#,
                Refusal::Webhook,
            ),
            (
                r#"pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false"#,
                Refusal::PodSecurity,
            ),
            (
                r#"deployments.apps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"#,
                Refusal::Policy,
            ),
            (
                r#"pods "a" is forbidden: error looking up service account b/c: serviceaccount "c" not found"#,
                Refusal::Other,
            ),
            ("exceeded quota: not by the API server", Refusal::Other),
            ("", Refusal::Other),
        ] {
            assert_eq!(Refusal::of_message(message), refusal, "{message}");
        }
    }
}
