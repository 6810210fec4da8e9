//! The certificate that the replicas of a program share, in a Secret.
//!
//! Whichever replica sees first that it is due makes the next one, and writes it on the version that it has read: of two
//! replicas one gives in. A certificate is renewed after two thirds of its time, so each replica has the new one long
//! before the old one ends. A new authority is trusted first; only later does it sign.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use okt_serve::tls::{RustlsConfig, ServerConfig, authority, config_of_pem, signed, warn_once};
use okt_wire::keys::{RENEW_AUTHORITY_KEY, RENEW_CERTIFICATE_KEY};
use okt_wire::scope::with_name;
use okt_wire::texts::api_message;
use tokio::sync::watch;
use tokio::time::sleep;

use super::definitions::take;
use crate::install::webhooks::WebhookService;

/// The files of the Secret, as cert-manager names them, and the key of the authority.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";

/// The name of all authorities: clients find the right one by its key.
const NAME: &str = "okt-webhooks";

/// How many times as long as a certificate an authority is valid.
const AUTHORITY_TIMES: u32 = 40;

/// How long a new authority is only trusted, at most.
const TRUSTED_FIRST: Duration = Duration::from_mins(5);

/// How often the Secret is read, at most.
const READ: Duration = Duration::from_secs(10);

/// The certificate in the Secret, as this replica has read it.
pub(super) struct SharedCertificate {
    service: WebhookService,
    valid: Duration,
    secret: Secret,
}

impl SharedCertificate {
    /// Reads the certificate, or makes the first one.
    ///
    /// # Errors
    ///
    /// Why there is none. A retry helps once the API server lets the program read and write it.
    pub(super) async fn get(
        client: &Client,
        service: &WebhookService,
        valid: Duration,
    ) -> Result<Self, String> {
        let mut certificate = Self {
            service: service.clone(),
            valid,
            secret: Secret::default(),
        };
        // Another replica may make it at the same time.
        for _ in 0..2 {
            if certificate.renew(client).await? {
                break;
            }
        }
        Ok(certificate)
    }

    /// Returns the configuration of a server with it.
    ///
    /// # Errors
    ///
    /// Why it cannot be used; a retry helps once the Secret has changed.
    pub(super) fn config(&self) -> Result<ServerConfig, String> {
        let file = |name| content(&self.secret, name);
        config_of_pem(file(CERTIFICATE), file(KEY)).map_err(|(_, why)| {
            let name = &self.service.name;
            format!("cannot use the certificate in the secret {name}: {why}; delete it, and a new one is made")
        })
    }

    /// Renews the certificate when it is due, and takes what other replicas have made.
    pub(super) async fn keep(
        mut self,
        client: &Client,
        tls: &RustlsConfig,
        trusted: &watch::Sender<Vec<u8>>,
    ) {
        let mut logged = String::new();
        loop {
            take(trusted, content(&self.secret, AUTHORITY));
            sleep(READ.min(self.valid / 12)).await;
            let before = content(&self.secret, CERTIFICATE).to_vec();
            let taken = match self.renew(client).await {
                Ok(_) if before == content(&self.secret, CERTIFICATE) => Ok(()),
                Ok(_) => self.config().map(|config| {
                    tls.reload_from_config(Arc::new(config));
                    tracing::info!(secret = self.service.name, "took the new certificate");
                }),
                Err(why) => Err(why),
            };
            warn_once(&mut logged, taken);
        }
    }

    /// Reads the Secret, and writes the next certificate if it is due. Returns whether there is one now.
    async fn renew(&mut self, client: &Client) -> Result<bool, String> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &self.service.namespace);
        let name = &self.service.name;
        let cannot = |what: &str, error: &kube::Error| {
            let namespace = &self.service.namespace;
            format!(
                "cannot {what} the secret {name} in {namespace}: {}",
                api_message(error)
            )
        };
        let listing: ListParams = with_name(name);
        let found = api
            .list(&listing)
            .await
            .map_err(|error| cannot("read", &error))?;
        let found = found.items.into_iter().next();
        let next = next(found.as_ref(), &self.service, self.valid, Timestamp::now());
        let next = next.map_err(|error| format!("cannot make a certificate: {error}"))?;
        let Some(next) = next else {
            self.secret = found.unwrap_or_default();
            return Ok(true);
        };
        let parameters = PostParams::default();
        let written = if found.is_some() {
            api.replace(name, &parameters, &next).await
        } else {
            api.create(&parameters, &next).await
        };
        match written {
            Ok(written) => {
                self.secret = written;
                Ok(true)
            }
            // Another replica was faster; its certificate is read the next time.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(cannot("write", &error)),
        }
    }
}

/// Returns the next content of the Secret; none if it may stay.
fn next(
    secret: Option<&Secret>,
    service: &WebhookService,
    valid: Duration,
    now: Timestamp,
) -> io::Result<Option<Secret>> {
    let mut next = secret.cloned().unwrap_or_else(|| empty(service));
    let begin = SystemTime::now();
    let until = |time: Duration| begin.checked_add(time).unwrap_or(begin);
    let due = |key: &str| {
        let time = secret.and_then(|it| it.metadata.annotations.as_ref()?.get(key));
        time.and_then(|it| it.parse::<Timestamp>().ok())
    };
    let is_due = |time: Option<Timestamp>| time.is_none_or(|it| it <= now);
    let has = |name| secret.is_some_and(|it| !content(it, name).is_empty());
    let (mut changed, mut renew, mut renew_authority) =
        (false, due(RENEW_CERTIFICATE_KEY), due(RENEW_AUTHORITY_KEY));
    if is_due(renew_authority) || !has(AUTHORITY) || !has(AUTHORITY_KEY) {
        let pair = authority(NAME, until(valid.saturating_mul(AUTHORITY_TIMES)))?;
        // The one before stays trusted.
        let before = first_certificate(content(&next, AUTHORITY));
        let trusted = [pair.certificate.as_bytes(), before].concat();
        set(&mut next, AUTHORITY, trusted);
        set(&mut next, AUTHORITY_KEY, pair.key.into_bytes());
        renew_authority = Some(after(now, valid.saturating_mul(AUTHORITY_TIMES / 2)));
        let trusted = after(now, TRUSTED_FIRST.min(valid / 4));
        renew = renew.map(|it| it.min(trusted));
        changed = true;
    }
    if is_due(renew) || ![CERTIFICATE, KEY, AUTHORITY].into_iter().all(has) {
        let key = String::from_utf8_lossy(content(&next, AUTHORITY_KEY)).into_owned();
        let pair = signed((NAME, &key), &names(service), until(valid))?;
        set(&mut next, CERTIFICATE, pair.certificate.into_bytes());
        set(&mut next, KEY, pair.key.into_bytes());
        renew = Some(after(now, valid / 3 * 2));
        changed = true;
    }
    if !changed {
        return Ok(None);
    }
    let times = [
        (RENEW_CERTIFICATE_KEY, renew),
        (RENEW_AUTHORITY_KEY, renew_authority),
    ];
    let times = times
        .into_iter()
        .filter_map(|(key, time)| Some((key.to_owned(), time?.to_string())));
    next.metadata
        .annotations
        .get_or_insert_default()
        .extend(times);
    Ok(Some(next))
}

/// Returns the Secret of the webhooks without a certificate.
fn empty(service: &WebhookService) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(service.name.clone()),
            namespace: Some(service.namespace.clone()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        ..Secret::default()
    }
}

/// Returns the names for which the certificate is.
fn names(service: &WebhookService) -> [String; 3] {
    let in_cluster = format!("{}.{}.svc", service.name, service.namespace);
    // The others are for a program beside the API server, outside of the cluster.
    [in_cluster, "localhost".to_owned(), "127.0.0.1".to_owned()]
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    now.saturating_add(time).unwrap_or(Timestamp::MAX)
}

fn content<'a>(secret: &'a Secret, name: &str) -> &'a [u8] {
    let found = secret.data.as_ref().and_then(|data| data.get(name));
    found.map_or(&[], |ByteString(bytes)| bytes)
}

fn set(secret: &mut Secret, name: &str, content: Vec<u8>) {
    let data: &mut BTreeMap<_, _> = secret.data.get_or_insert_default();
    data.insert(name.to_owned(), ByteString(content));
}

/// Returns the first certificate of a file of PEM, which is the present one.
fn first_certificate(file: &[u8]) -> &[u8] {
    const END: &[u8] = b"-----END CERTIFICATE-----\n";
    let end = file
        .windows(END.len())
        .position(|it| it.eq_ignore_ascii_case(END));
    end.map_or(&[], |at| &file[..at.saturating_add(END.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: Duration = Duration::from_hours(24 * 90);

    fn service() -> WebhookService {
        WebhookService::of("tents", "tents-system")
    }

    fn made(secret: Option<&Secret>, now: Timestamp) -> Option<Secret> {
        next(secret, &service(), VALID, now).expect("it is made")
    }

    fn days(days: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * days)
    }

    fn changed(before: &Secret, after: &Secret) -> Vec<&'static str> {
        let names = [CERTIFICATE, KEY, AUTHORITY, AUTHORITY_KEY];
        let differs = |name: &&str| content(before, name) != content(after, name);
        names.into_iter().filter(differs).collect()
    }

    #[test]
    fn a_certificate_is_renewed_after_two_thirds_of_its_time_under_the_same_authority() {
        let first = made(None, days(0)).expect("the first one");
        assert_eq!(made(Some(&first), days(59)), None);
        let second = made(Some(&first), days(60)).expect("it is due");
        assert_eq!(changed(&first, &second), [CERTIFICATE, KEY]);
        assert_eq!(made(Some(&second), days(119)), None);
    }

    #[test]
    fn a_new_authority_is_trusted_before_it_signs_and_the_one_before_it_stays_trusted() {
        let first = made(None, days(0)).expect("the first one");
        let fresh = made(Some(&first), days(1799)).expect("the certificate is due");
        let second = made(Some(&fresh), days(1800)).expect("the authority is due");
        assert_eq!(changed(&fresh, &second), [AUTHORITY, AUTHORITY_KEY]);
        assert!(content(&second, AUTHORITY).ends_with(content(&first, AUTHORITY)));
        let soon = days(1800) + SignedDuration::from_mins(5);
        let third = made(Some(&second), soon).expect("the new authority signs");
        assert_eq!(changed(&second, &third), [CERTIFICATE, KEY]);
        // Only the last two are trusted.
        let last = made(Some(&third), days(3601)).expect("the authority is due again");
        let marks = String::from_utf8_lossy(content(&last, AUTHORITY))
            .matches("BEGIN")
            .count();
        assert_eq!(marks, 2);
    }

    #[test]
    fn a_secret_that_lacks_something_or_is_of_somebody_else_is_completed() {
        let first = made(None, days(0)).expect("the first one");
        let mut damaged = first.clone();
        set(&mut damaged, KEY, Vec::new());
        let mended = made(Some(&damaged), days(1)).expect("it is made anew");
        assert_eq!(changed(&first, &mended), [CERTIFICATE, KEY]);
        damaged = first;
        damaged.metadata.annotations = None;
        let mended = made(Some(&damaged), days(1)).expect("it is made anew");
        assert!(
            mended
                .metadata
                .annotations
                .expect("some")
                .contains_key(RENEW_CERTIFICATE_KEY)
        );
    }
}
