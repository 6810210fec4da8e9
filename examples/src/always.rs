//! This module keeps one object in the cluster that must always exist and that no other object declares.
//!
//! `docs/resources.md` explains when to use it.

use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How long to wait after a failure before the next attempt.
const PAUSE: Duration = Duration::from_secs(10);

/// Creates an object whenever no object with its name exists; never writes an existing one.
///
/// It never ends: spawn it where the operator connects.
///
/// ```no_run
/// # use kube::Api;
/// # use okt_examples::always::always;
/// # use okt_examples::claims::{ZoneClaims, Zone, ZoneSpec};
/// # use std::future::ready;
/// # async fn example() -> std::process::ExitCode {
/// okt::main(|client| {
///     let root = Zone::new("root", ZoneSpec { domain: "example.com".to_owned() });
///     tokio::spawn(always(Api::all(client), root));
///     ready(Ok::<_, std::io::Error>(ZoneClaims))
/// })
/// # .await }
/// ```
pub async fn always<K>(objects: Api<K>, object: K) -> Infallible
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned + Send + 'static,
{
    let name = object.name_any();
    loop {
        let missing = |there: Option<&K>| there.is_none();
        let waited = await_condition(objects.clone(), &name, missing).await;
        let made = match waited {
            Ok(_) => match objects.create(&PostParams::default(), &object).await {
                // Another client was faster.
                Err(kube::Error::Api(status)) if status.is_already_exists() => continue,
                made => made.map(drop).map_err(|error| error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        };
        match made {
            Ok(()) => tracing::info!(name, "made: there was none"),
            Err(error) => {
                tracing::warn!(name, "cannot be kept: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
