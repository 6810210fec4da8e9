//! Mutual authentication of agents and clients.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use okt_agent::client::{Client, ClientError, Clients, Endpoint, EndpointError};
use okt_agent::{Agent, Listen, ServeError};
use rcgen::{CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_util::task::AbortOnDropHandle;

use crate::application::{Endless, loopback, prepare};

/// An authority that signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// Returns a certificate and its key for this name, in PEM.
    fn sign(&self, name: &str, purpose: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.0).expect("a certificate");
        (signed.pem(), key.serialize_pem())
    }
}

const SERVER: ExtendedKeyUsagePurpose = ExtendedKeyUsagePurpose::ServerAuth;
const CLIENT: ExtendedKeyUsagePurpose = ExtendedKeyUsagePurpose::ClientAuth;

/// An agent for `orders.shop`, and its files.
struct CertifiedAgent {
    directory: TempDir,
    token: PathBuf,
    agents: Authority,
    operators: Authority,
    address: SocketAddr,
    _serving: AbortOnDropHandle<Result<(), ServeError>>,
}

impl CertifiedAgent {
    /// Starts an agent that requires client certificates, or else a token.
    async fn start(mutual: bool) -> Self {
        let (directory, token, with_token) = prepare();
        let (agents, operators) = (Authority::new(), Authority::new());
        let at = |name: &str| directory.path().join(name);
        fs::write(at("ca.crt"), agents.0.pem()).expect("a file");
        fs::write(at("clients.crt"), operators.0.pem()).expect("a file");
        let (certificate, key) = agents.sign("orders.shop", SERVER);
        fs::write(at("tls.crt"), certificate).expect("a file");
        fs::write(at("tls.key"), key).expect("a file");
        let (certificate, key) = (at("tls.crt"), at("tls.key"));
        let (agent, listen) = if mutual {
            let agent = Agent::new(Endless, at("journal"));
            let clients = at("clients.crt");
            (agent, loopback().mutual_tls(certificate, key, clients))
        } else {
            (with_token, loopback().tls(certificate, key))
        };
        let bound = agent.bind([listen]).await.expect("it listens");
        let address = bound.addresses().next().expect("one");
        let serving = tokio::spawn(bound.run(std::future::pending()));
        Self {
            directory,
            token,
            agents,
            operators,
            address,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, (certificate, key): (String, String)) {
        fs::write(self.at(&format!("{name}.crt")), certificate).expect("a file");
        fs::write(self.at(&format!("{name}.key")), key).expect("a file");
    }

    fn endpoint(&self) -> Endpoint {
        let url = format!("https://{}", self.address);
        let endpoint = Endpoint::parse(&url).expect("a URL");
        endpoint
            .ca_file(self.at("ca.crt"))
            .timeout(Duration::from_mins(1))
    }

    /// Returns an endpoint for the client whose certificate has this name.
    fn endpoint_of(&self, name: &str) -> Endpoint {
        let file = |extension| self.at(&format!("{name}.{extension}"));
        let endpoint = self.endpoint().server_name("orders.shop");
        endpoint.identity_files(file("crt"), file("key"))
    }
}

async fn answers(endpoint: &Endpoint) -> bool {
    let client = Client::new(endpoint).expect("a client");
    match client.status().await {
        Ok(_) => true,
        Err(ClientError::Unanswered { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_token_goes_over_tls_a_socket_or_to_loopback_and_nowhere_else() {
    let clients = Clients::default();
    let made = |endpoint: Endpoint| {
        let one = Client::new(&endpoint).map(drop);
        let many = clients.of(&endpoint).map(drop);
        assert_eq!(one.is_ok(), many.is_ok(), "{endpoint:?}");
        one
    };
    for address in [
        "http://127.0.0.1:8470",
        "http://[::1]:8470",
        "http://127.8.8.8",
        "https://orders.shop",
        "HTTPS://orders.shop",
    ] {
        let endpoint = Endpoint::parse(address).expect(address);
        assert!(made(endpoint.token("secret")).is_ok(), "{address}");
    }
    assert!(made(Endpoint::unix("/run/agent.sock").token("secret")).is_ok());
    for address in [
        "http://orders.shop:8470",
        "http://10.0.0.1",
        "http://localhost.evil.example",
        "http://localhost",
        "http://127.0.0.1.evil.example",
        "HTTP://orders.shop",
    ] {
        let endpoint = Endpoint::parse(address).expect(address);
        assert!(made(endpoint.clone()).is_ok(), "nothing is sent");
        for endpoint in [
            endpoint.clone().token("secret"),
            endpoint.token_file("/token"),
        ] {
            let error = made(endpoint).expect_err(address);
            assert!(matches!(error, EndpointError::Unsafe { .. }) && error.is_permanent());
            assert!(error.to_string().contains("only over https://"), "{error}");
        }
    }
}

#[test]
fn a_requested_verification_is_never_skipped() {
    for address in ["http://127.0.0.1:8470", "unix:/run/agent.sock"] {
        let endpoint = Endpoint::parse(address).expect(address);
        for endpoint in [
            endpoint.clone().ca_file("/ca"),
            endpoint.clone().server_name("orders.shop"),
            endpoint.identity_files("/crt", "/key"),
        ] {
            let error = Client::new(&endpoint).map(drop).expect_err(address);
            assert!(matches!(error, EndpointError::Unsafe { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn an_agent_proves_the_name_that_is_asked_for_whatever_its_address() {
    let served = CertifiedAgent::start(false).await;
    let token = |endpoint: Endpoint| endpoint.token_file(&served.token);
    assert!(answers(&token(served.endpoint().server_name("orders.shop"))).await);
    // A host that a spec names can neither stand in for another object nor be trusted by its address alone.
    assert!(!answers(&token(served.endpoint().server_name("wishes.shop"))).await);
    assert!(!answers(&token(served.endpoint())).await);
    // The same with clients that share transports, in any order.
    let clients = Clients::default();
    for (name, fits) in [
        (Some("orders.shop"), true),
        (Some("wishes.shop"), false),
        (None, false),
        (Some("orders.shop"), true),
    ] {
        let by_host = token(served.endpoint());
        let endpoint = match name {
            Some(name) => by_host.server_name(name),
            None => by_host,
        };
        let client = clients.of(&endpoint).expect("a client");
        assert_eq!(client.status().await.is_ok(), fits, "{name:?}");
    }
}

#[tokio::test]
async fn an_agent_that_requires_certificates_answers_no_other_client() {
    let served = CertifiedAgent::start(true).await;
    served.write("operator", served.operators.sign("operator", CLIENT));
    served.write("stranger", Authority::new().sign("operator", CLIENT));
    // The agents' authority is not the operators', and a server certificate is no client certificate.
    served.write("agent", served.agents.sign("orders.shop", SERVER));
    served.write("server", served.operators.sign("operator", SERVER));
    assert!(answers(&served.endpoint_of("operator")).await);
    assert!(!answers(&served.endpoint().server_name("orders.shop")).await);
    for stranger in ["stranger", "agent", "server"] {
        assert!(!answers(&served.endpoint_of(stranger)).await, "{stranger}");
    }
}

#[tokio::test]
async fn an_agent_that_requires_certificates_may_listen_everywhere_without_a_token() {
    let served = CertifiedAgent::start(true).await;
    let agent = Agent::new(Endless, served.at("other"));
    // A documentation address, so that nothing listens: it fails only after the authentication is found to be
    // sufficient.
    let everywhere = || Listen::tcp(([192, 0, 2, 1], 0).into());
    let (certificate, key) = (served.at("tls.crt"), served.at("tls.key"));
    let bound = agent.bind([everywhere().tls(&certificate, &key)]).await;
    assert!(matches!(bound, Err(ServeError::NoToken(_))));
    let agent = Agent::new(Endless, served.at("other"));
    let mutual = everywhere().mutual_tls(&certificate, &key, served.at("clients.crt"));
    let bound = agent.bind([mutual]).await;
    assert!(matches!(bound, Err(ServeError::Listen { .. })));
    let agent = Agent::new(Endless, served.at("other"));
    let no_authority = loopback().mutual_tls(&certificate, &key, served.at("token"));
    let bound = agent.bind([no_authority]).await;
    assert!(matches!(bound, Err(ServeError::Tls(_))));
}

#[tokio::test]
async fn client_certificates_and_their_authority_are_read_again() {
    let served = CertifiedAgent::start(true).await;
    let clients = Clients::default();
    served.write("operator", served.operators.sign("operator", CLIENT));
    let endpoint = served.endpoint_of("operator");
    let client = clients.of(&endpoint).expect("a client");
    assert!(client.status().await.is_ok());
    // Replace the authority.
    let next = Authority::new();
    fs::write(served.at("clients.crt"), next.0.pem()).expect("a file");
    let begun = std::time::Instant::now();
    while answers(&endpoint).await {
        let in_time = begun.elapsed() < Duration::from_mins(2);
        assert!(in_time, "the old certificate is accepted");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    served.write("operator", next.sign("operator", CLIENT));
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(11)).await;
    tokio::time::resume();
    let client = clients.of(&endpoint).expect("a client");
    assert!(client.status().await.is_ok());
}
