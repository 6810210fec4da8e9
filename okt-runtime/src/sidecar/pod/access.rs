//! How an operator and the agent in a Pod trust each other: a token, and a certificate that the agent is known by.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use okt_agent::client::{Endpoint, EndpointError};
use okt_reach::Failure;
use okt_wire::digest::hex;
use okt_wire::object::LifecycleObject;
use sha2::{Digest, Sha256};

use super::settings::{PodAgent, placed};
use crate::author::context::Context;
use crate::sidecar::outcome;

const TOKEN: &str = "token";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// Returns the name of the agent's Service, for which its certificate is.
pub(super) fn host(name: &str, namespace: &str) -> String {
    format!("{name}.{namespace}.svc")
}

/// Returns the agent's Secret as it is, or one with another token and certificate if there is none.
pub(super) fn secret<K: LifecycleObject>(
    cx: &Context<K>,
    metadata: ObjectMeta,
    host: &str,
) -> Result<Secret, Failure> {
    let name = metadata.name.clone().unwrap_or_default();
    let data = match existing(cx, &name)? {
        Some(secret) => secret.data,
        None => Some(drawn(host)?),
    };
    Ok(Secret {
        metadata,
        data,
        ..Secret::default()
    })
}

type Data = std::collections::BTreeMap<String, ByteString>;

fn drawn(host: &str) -> Result<Data, Failure> {
    let failed = |why: String| {
        Failure::retry(
            "AgentKey",
            format!("no key can be made for the agent: {why}"),
        )
    };
    let made = generate(host).map_err(failed)?;
    let data = [TOKEN, CERTIFICATE, KEY].into_iter().zip(made);
    Ok(data
        .map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
        .collect())
}

/// Makes a token, and a certificate with its key.
#[cfg(any(feature = "aws-lc-rs", feature = "ring"))]
fn generate(host: &str) -> Result<[String; 3], String> {
    let text = |error: rcgen::Error| error.to_string();
    let own = rcgen::generate_simple_self_signed([host.to_owned()]).map_err(text)?;
    // A key of its own is what the crypto provider has of randomness.
    let random = rcgen::KeyPair::generate().map_err(text)?;
    let token = Sha256::digest(random.serialize_der());
    Ok([hex(&token), own.cert.pem(), own.signing_key.serialize_pem()])
}

// `okt-agent` does not compile without a provider, and says so.
#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
fn generate(_: &str) -> Result<[String; 3], String> {
    Err("no crypto provider is chosen".to_owned())
}

fn existing<K: LifecycleObject>(cx: &Context<K>, name: &str) -> Result<Option<Secret>, Failure> {
    let mut secrets = cx.owned::<Secret>()?.into_iter();
    Ok(secrets.find(|it| it.metadata.name.as_deref() == Some(name)))
}

/// What helps if somebody has changed the Secret.
const MEND: &str = ": delete it, and OKT makes another one";

fn unusable(name: &str, why: &str) -> Failure {
    Failure::retry(
        "AgentSecret",
        format!("the Secret {name} of the agent {why}"),
    )
}

impl PodAgent {
    /// Returns what an error of a client means whose token and certificate are of the Secret.
    pub(in crate::sidecar) fn misuse<K: LifecycleObject>(
        &self,
        object: &K,
        error: &EndpointError,
    ) -> Failure {
        unusable(
            &self.name_of(object),
            &format!("cannot be used: {error}{MEND}"),
        )
    }

    /// Returns the operator's way to the agent of an object.
    pub(in crate::sidecar) fn endpoint<K: LifecycleObject>(
        &self,
        cx: &Context<K>,
    ) -> Result<Endpoint, Failure> {
        let name = self.name_of(cx.object());
        let (namespace, own) = placed(cx.object());
        let unusable = |why: &str| unusable(&name, why);
        let secret = existing(cx, &name)?.ok_or_else(|| unusable("does not exist yet"))?;
        let text = |key: &str| {
            let value = secret.data.as_ref().and_then(|data| data.get(key));
            let value = value.ok_or_else(|| unusable(&format!("has no `{key}`{MEND}")))?;
            let text = String::from_utf8(value.0.clone()).unwrap_or_default();
            match text.trim() {
                "" => Err(unusable(&format!("has a `{key}` that is no text{MEND}"))),
                text => Ok(text.to_owned()),
            }
        };
        let host = host(&name, &namespace);
        let address = match &self.address {
            Some(address) => address(&namespace, &own),
            None => format!("{host}:{}", self.port),
        };
        let endpoint = Endpoint::parse(&format!("https://{address}"))
            .map_err(|error| outcome::of_endpoint(&error))?;
        Ok(endpoint
            .server_name(host)
            .ca_pem(text(CERTIFICATE)?)
            .token(text(TOKEN)?))
    }
}
