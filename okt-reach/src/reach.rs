//! Access to the application for handlers: commands in its containers, HTTP, and its ports from outside the cluster.
//!
//! Create a [`Reach`] once, where you create the application. It decides for all requests whether they go from inside
//! the cluster (names of Services, addresses of pods) or from outside (ports forwarded by the API server):
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use okt::Failure;
//! use okt::reach::{Http, Reach, ReachError};
//! use serde::Deserialize;
//!
//! struct Databases {
//!     reach: Reach,
//!     http: Http,
//! }
//!
//! #[derive(Deserialize)]
//! struct Health {
//!     connections: u32,
//! }
//!
//! impl Databases {
//!     fn connect(client: kube::Client) -> Self {
//!         let reach = Reach::new(client);
//!         let http = reach.http();
//!         Self { reach, http }
//!     }
//!
//!     /// A failure has the request, the status of the response, and whether a retry helps.
//!     async fn clients_of(&self, namespace: &str, name: &str) -> Result<u32, Failure> {
//!         let health = format!("http://{name}.{namespace}.svc:8080/health");
//!         let health: Health = self.http.get(health).send().await?.json()?;
//!         Ok(health.connections)
//!     }
//!
//!     async fn vacuum(&self, namespace: &str, name: &str) -> Result<(), Failure> {
//!         let pod = format!("{name}-0");
//!         let psql = self.reach.exec(namespace, &pod, ["psql", "--file=-"]);
//!         let psql = psql.container("postgres").stdin("VACUUM ANALYZE;");
//!         match psql.timeout(Duration::from_mins(10)).run().await {
//!             // `psql` could not connect: the server is not up yet.
//!             Err(ReachError::CommandFailed { code: 2, .. }) => Err(Failure::retry("Starting", "the server starts")),
//!             done => Ok(done.map(drop)?),
//!         }
//!     }
//! }
//! ```
//!
//! Permissions come from [`Watches::execs`](https://docs.rs/okt/latest/okt/struct.Watches.html#method.execs) and [`Watches::forwards`](https://docs.rs/okt/latest/okt/struct.Watches.html#method.forwards).
//!
//! | subject | module |
//! |---|---|
//! | a command in a container | `exec`, `output` |
//! | why a pod or a Service could not be reached | `error`, `diagnosis` |
//! | the pod and port of a target, from outside | `target` |
//! | a connection that the API server forwards | `forward`, `route` |
//! | one HTTP request and its response | `http`, `reply`, `http_error`, `connect` |

mod connect;
mod diagnosis;
mod error;
mod exec;
mod forward;
mod http;
mod http_error;
mod output;
mod reply;
mod route;
mod target;

use std::error::Error;
use std::fmt;

use kube::Client;
use okt_wire::texts::chain;

pub use self::error::ReachError;
pub use self::exec::Exec;
#[doc(hidden)]
pub use self::http::parsed;
pub use self::http::{Http, Request};
pub use self::http_error::{Body, HttpError};
pub use self::output::Output;
pub use self::reply::Reply;
pub use self::route::Route;
use self::target::ReachTarget;
use crate::failure::Failure;

/// The environment variable that the kubelet sets in every container of a cluster.
const IN_CLUSTER: &str = "KUBERNETES_SERVICE_HOST";

/// Access to applications in a cluster, from inside or from outside; clones are cheap.
///
/// ```
/// use okt::Failure;
/// use okt::reach::Reach;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = okt_apiserver::ApiServer::new().client();
/// let reach = Reach::inside(client.clone());
/// // For protocols other than HTTP (a database driver):
/// let route = reach.service("team-a", "db", 5432).await?;
/// assert_eq!(route.to_string(), "db.team-a.svc:5432");
///
/// // From outside, a missing target is an error before you connect.
/// let error = Reach::outside(client).service("team-a", "db", 5432).await.unwrap_err();
/// assert!(error.retry_helps());
/// assert_eq!(Failure::from(error).reason(), "TargetNotFound");
///
/// let error = reach.http().get("http://127.0.0.1:1/health").send().await.unwrap_err();
/// let failure = Failure::from(error);
/// assert_eq!(failure.reason(), "Unreachable");
/// assert!(failure.message().starts_with("GET http://127.0.0.1:1/health: cannot connect"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Reach {
    client: Client,
    outside: bool,
}

impl Reach {
    /// Creates access from inside the cluster if this process runs in a container of a cluster, else from outside.
    ///
    /// If the process runs in one cluster and works on another, use [`outside`](Self::outside).
    pub fn new(client: Client) -> Self {
        let outside = std::env::var_os(IN_CLUSTER).is_none();
        Self { client, outside }
    }

    /// Creates access from inside the cluster: by names of Services and addresses of pods.
    pub fn inside(client: Client) -> Self {
        Self {
            client,
            outside: false,
        }
    }

    /// Creates access from outside the cluster: by ports that the API server forwards.
    pub fn outside(client: Client) -> Self {
        Self {
            client,
            outside: true,
        }
    }

    /// Builds a command in a container of a pod; nothing is sent before [`run`](Exec::run).
    pub fn exec<T: Into<String>>(
        &self,
        namespace: impl Into<String>,
        pod: impl Into<String>,
        command: impl IntoIterator<Item = T>,
    ) -> Exec {
        let command = command.into_iter().map(Into::into).collect();
        Exec::new(self.client.clone(), namespace.into(), pod.into(), command)
    }

    /// Returns an HTTP client that resolves names of Services in the cluster, wherever this process runs.
    pub fn http(&self) -> Http {
        Http::new(self)
    }

    /// Returns the address of a port of a Service: `<service>.<namespace>.svc` inside the cluster (without a request),
    /// a port on the loopback interface outside.
    ///
    /// # Errors
    ///
    /// From outside, a [`ReachError`]: there is no such Service or port, none of its pods is ready, or this client may
    /// not forward ports.
    pub async fn service(
        &self,
        namespace: impl Into<String>,
        service: impl Into<String>,
        port: u16,
    ) -> Result<Route, ReachError> {
        let target = ReachTarget::service(namespace.into(), service.into(), port)?;
        if self.outside {
            Route::forwarded(self.client.clone(), target).await
        } else {
            Ok(Route::direct(target.host(), port))
        }
    }

    /// Returns the address of a port of a pod: the pod's IP inside the cluster, a port on the loopback interface
    /// outside.
    ///
    /// # Errors
    ///
    /// A [`ReachError`]: there is no such pod, it does not run, or this client may not read pods or forward ports.
    pub async fn pod(
        &self,
        namespace: impl Into<String>,
        pod: impl Into<String>,
        port: u16,
    ) -> Result<Route, ReachError> {
        let target = ReachTarget::pod(namespace.into(), pod.into(), port)?;
        if self.outside {
            Route::forwarded(self.client.clone(), target).await
        } else {
            Ok(Route::direct(target.address(&self.client).await?, port))
        }
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach")
            .field("outside", &self.outside)
            .finish_non_exhaustive()
    }
}

/// Converts an error into a failure, if it is an error of this module or has one among its causes.
pub(crate) fn failure_of(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut cause = Some(error);
    while let Some(this) = cause {
        let found = if let Some(error) = this.downcast_ref::<ReachError>() {
            Some((error.reason().to_owned(), error.retry_helps()))
        } else {
            this.downcast_ref::<HttpError>()
                .map(|error| (error.reason(), error.retry_helps()))
        };
        if let Some((reason, retry_helps)) = found {
            let message = chain(error);
            return Some(if retry_helps {
                Failure::retry(reason, message)
            } else {
                Failure::permanent(reason, message)
            });
        }
        cause = this.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("back up")]
    struct Backup(#[source] ReachError);

    #[test]
    fn a_failure_has_the_reason_of_the_error_even_if_it_is_wrapped() {
        let too_long = || ReachError::OutputTooLong {
            what: "`cat` in a/b".to_owned(),
            limit: 5,
        };
        let direct = Failure::from(too_long());
        assert_eq!(direct.reason(), "OutputTooLong");
        assert!(direct.is_permanent());
        let behind = Failure::from(Backup(too_long()));
        assert_eq!(behind.reason(), "OutputTooLong");
        assert_eq!(
            behind.message(),
            "back up: `cat` in a/b: more than 5 bytes on its standard output"
        );
        assert_eq!(Failure::from(fmt::Error).reason(), "Error");
    }
}
