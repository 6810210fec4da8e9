//! Chooses the API server that tests run against.

use std::env;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{Cluster, Kubeconfig, KubeconfigError, NamedCluster, NamedContext};

use super::KubernetesError;

/// The variable that names the context of `KUBECONFIG` that tests may write to, wherever it leads.
const CONTEXT: &str = "OKT_TEST_CONTEXT";

/// The variable that names a program of another release, which `.ci/window` builds.
const PROGRAM: &str = "OKT_KUBERNETES";

/// The prefixes of context names that tools for local clusters use.
///
/// A loopback address alone is not enough: a tunnel or `kubectl proxy` to a remote cluster has one
/// too.
const LOCAL: [&str; 10] = [
    "kind-",
    "k3d-",
    "minikube",
    "docker-desktop",
    "rancher-desktop",
    "orbstack",
    "colima",
    "microk8s",
    "envtest",
    "okt",
];

/// The inputs of the choice.
#[derive(Debug, Default)]
pub(super) struct Environment {
    /// `None` if `KUBECONFIG` is not set.
    pub(super) kubeconfig: Option<Result<Kubeconfig, KubeconfigError>>,
    pub(super) context: Option<String>,
    pub(super) program: Option<PathBuf>,
    pub(super) assets: Option<PathBuf>,
    pub(super) go: Option<PathBuf>,
    pub(super) cache: Option<PathBuf>,
}

#[derive(Debug)]
pub(super) enum ServerSource {
    /// A running cluster; the kubeconfig's current context is the one to use.
    Given { kubeconfig: Box<Kubeconfig> },
    /// A program that is built from `okt-apiserver/kubernetes`.
    Program { program: PathBuf },
    /// A directory with `kube-apiserver` and `etcd`.
    Assets { directory: PathBuf },
    /// The Go tool, and the directory for the built program.
    Go { go: PathBuf, cache: PathBuf },
}

impl Environment {
    pub(super) fn read() -> Self {
        let cache = match (set("XDG_CACHE_HOME"), set("HOME")) {
            (Some(cache), _) => Some(PathBuf::from(cache)),
            (None, Some(home)) => Some(Path::new(&home).join(".cache")),
            (None, None) => None,
        };
        Self {
            // An empty KUBECONFIG counts as not set.
            kubeconfig: Kubeconfig::from_env().transpose(),
            context: set(CONTEXT).and_then(|context| context.into_string().ok()),
            program: set(PROGRAM).map(PathBuf::from),
            assets: set("KUBEBUILDER_ASSETS").map(PathBuf::from),
            go: on_path("go"),
            cache: cache.map(|cache| cache.join("okt")),
        }
    }
}

/// Returns what to run; a sentence about `KUBECONFIG` goes into `notice`.
pub(super) fn choose(
    environment: &Environment,
    notice: &mut Option<String>,
) -> Result<ServerSource, KubernetesError> {
    match &environment.kubeconfig {
        None => {}
        Some(Err(error)) => *notice = Some(format!("KUBECONFIG is left alone: {error}")),
        Some(Ok(kubeconfig)) => match given(kubeconfig, environment.context.as_deref())? {
            Ok(kubeconfig) => {
                let context = kubeconfig.current_context.as_deref().unwrap_or_default();
                let sentence = format!("tests run against the context {context:?} of KUBECONFIG");
                *notice = Some(sentence);
                let kubeconfig = Box::new(kubeconfig);
                return Ok(ServerSource::Given { kubeconfig });
            }
            Err(reason) => *notice = Some(format!("KUBECONFIG is left alone: {reason}")),
        },
    }
    if let Some(program) = &environment.program {
        let program = program.clone();
        return Ok(ServerSource::Program { program });
    }
    if let Some(directory) = &environment.assets {
        let directory = directory.clone();
        return Ok(ServerSource::Assets { directory });
    }
    if let (Some(go), Some(cache)) = (&environment.go, &environment.cache) {
        let (go, cache) = (go.clone(), cache.clone());
        return Ok(ServerSource::Go { go, cache });
    }
    Err(KubernetesError::Missing)
}

/// Returns the kubeconfig with the context to use as its current one, or why it must not be used.
fn given(
    kubeconfig: &Kubeconfig,
    wanted: Option<&str>,
) -> Result<Result<Kubeconfig, String>, KubernetesError> {
    let mut kubeconfig = kubeconfig.clone();
    if let Some(wanted) = wanted {
        if cluster(&kubeconfig, wanted).is_none() {
            return Err(KubernetesError::Context(wanted.to_owned()));
        }
        kubeconfig.current_context = Some(wanted.to_owned());
        return Ok(Ok(kubeconfig));
    }
    let Some(current) = &kubeconfig.current_context else {
        return Ok(Err("it has no current context".to_owned()));
    };
    let Some(cluster) = cluster(&kubeconfig, current) else {
        return Ok(Err(format!(
            "its current context {current:?} leads to no server"
        )));
    };
    let server = cluster.server.as_deref().unwrap_or_default();
    let is_local = cluster.proxy_url.is_none()
        && is_loopback(server)
        && LOCAL.iter().any(|name| current.starts_with(name));
    if is_local {
        return Ok(Ok(kubeconfig));
    }
    Ok(Err(format!(
        "its current context {current:?} leads to {server}, which is not known to be a cluster of \
         this machine; set {CONTEXT}={current} if tests may write there"
    )))
}

/// Returns the cluster of a context, if it has a server.
fn cluster<'a>(kubeconfig: &'a Kubeconfig, context: &str) -> Option<&'a Cluster> {
    let named = |named: &&NamedContext| named.name == context;
    let context = kubeconfig.contexts.iter().find(named)?.context.as_ref()?;
    let named = |named: &&NamedCluster| named.name == context.cluster;
    let cluster = kubeconfig.clusters.iter().find(named)?.cluster.as_ref()?;
    cluster.server.is_some().then_some(cluster)
}

fn is_loopback(server: &str) -> bool {
    let Ok(uri) = server.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns the first file of this name in the `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = set("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// Returns whether a CI system runs the test.
pub(super) fn in_ci() -> bool {
    set("CI").is_some_and(|ci| ci != "false")
}

/// Returns a variable that is neither absent nor empty.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use kube::config::Kubeconfig;

    use super::{Environment, ServerSource, choose, is_loopback};
    use crate::KubernetesError;

    fn kubeconfig(context: &str, cluster: &str) -> Kubeconfig {
        let text = format!(
            "{{clusters: [{{name: c, cluster: {{{cluster}}}}}], \
             contexts: [{{name: {context}, context: {{cluster: c}}}}], current-context: {context}}}"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    fn chosen(
        environment: &Environment,
    ) -> (Result<ServerSource, KubernetesError>, Option<String>) {
        let mut notice = None;
        let source = choose(environment, &mut notice);
        (source, notice)
    }

    fn environment(context: &str, server: &str) -> Environment {
        let cluster = format!("server: '{server}'");
        Environment {
            kubeconfig: Some(Ok(kubeconfig(context, &cluster))),
            assets: Some("assets".into()),
            go: Some("go".into()),
            cache: Some("cache".into()),
            ..Environment::default()
        }
    }

    #[test]
    fn a_local_cluster_is_used() {
        let (source, notice) = chosen(&environment("kind-dev", "https://127.0.0.1:6443"));
        assert!(matches!(source, Ok(ServerSource::Given { .. })));
        assert!(notice.unwrap().contains("\"kind-dev\""));
    }

    #[test]
    fn a_remote_cluster_is_not_used_and_a_notice_says_so() {
        let (source, notice) = chosen(&environment("dev", "https://prod.example.com"));
        assert!(matches!(source, Ok(ServerSource::Assets { .. })));
        let notice = notice.unwrap();
        assert!(notice.contains("https://prod.example.com"), "{notice}");
        assert!(notice.contains("OKT_TEST_CONTEXT=dev"), "{notice}");
    }

    #[test]
    fn a_tunnel_or_proxy_to_a_remote_cluster_is_not_used() {
        let tunnel = environment("prod", "https://127.0.0.1:6443");
        let (source, _) = chosen(&tunnel);
        assert!(matches!(source, Ok(ServerSource::Assets { .. })));
        let mut proxied = environment("kind-dev", "");
        let cluster = "server: 'https://127.0.0.1:6443', proxy-url: 'http://10.0.0.1:80'";
        proxied.kubeconfig = Some(Ok(kubeconfig("kind-dev", cluster)));
        let (source, _) = chosen(&proxied);
        assert!(matches!(source, Ok(ServerSource::Assets { .. })));
    }

    #[test]
    fn a_remote_cluster_is_used_if_its_context_is_named() {
        let mut environment = environment("dev", "https://prod.example.com");
        environment.context = Some("dev".to_owned());
        let (source, _) = chosen(&environment);
        assert!(matches!(source, Ok(ServerSource::Given { .. })));
    }

    #[test]
    fn a_missing_context_is_an_error_without_fallback() {
        let mut environment = environment("dev", "https://127.0.0.1:6443");
        environment.context = Some("other".to_owned());
        let error = chosen(&environment).0.unwrap_err();
        assert!(matches!(error, KubernetesError::Context(name) if name == "other"));
    }

    #[test]
    fn without_a_kubeconfig_a_program_comes_before_assets_and_assets_before_go() {
        let mut environment = environment("dev", "");
        environment.kubeconfig = None;
        let (source, notice) = chosen(&environment);
        assert!(matches!(source, Ok(ServerSource::Assets { .. })));
        assert_eq!(notice, None);
        environment.program = Some("kubernetes".into());
        let (source, _) = chosen(&environment);
        assert!(matches!(source, Ok(ServerSource::Program { .. })));
        (environment.program, environment.assets) = (None, None);
        let (source, _) = chosen(&environment);
        assert!(matches!(source, Ok(ServerSource::Go { .. })));
        environment.go = None;
        assert!(chosen(&environment).0.unwrap_err().is_missing());
    }

    #[test]
    fn only_loopback_addresses_are_local() {
        for server in [
            "https://127.0.0.1:1",
            "http://localhost:80",
            "https://[::1]:6443",
            "https://127.9.9.9",
        ] {
            assert!(is_loopback(server), "{server}");
        }
        for server in [
            "https://10.0.0.1",
            "https://localhost.example.com",
            "https://127.0.0.1.example.com",
            "",
            "https://0.0.0.0",
        ] {
            assert!(!is_loopback(server), "{server}");
        }
    }
}
