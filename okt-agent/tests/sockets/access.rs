//! Who may connect: tokens, Unix sockets, certificates.

use std::fs;
use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use okt_agent::{Agent, Listen, ServeError};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::task::AbortOnDropHandle;

use crate::application::{Beside, Endless, TOKEN, loopback, prepare};
use crate::wire::{Answer, ask, exchange, request, status, with_token, work};

/// Waits until a condition holds.
async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_mins(2);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn only_the_right_token_opens_and_health_needs_none() {
    let beside = Beside::on_loopback().await;
    let wrong = [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer s3cre\r\n",
        "Authorization: Bearer s3crett\r\n",
        "Authorization: Basic s3cret\r\n",
        "Authorization: Bearer s3cret\r\nAuthorization: Bearer s3cret\r\n",
    ];
    let address = beside.address();
    for lines in wrong {
        let protected = "/lifecycle /lifecycle/v1/status /lifecycle/v2/status /nowhere /metrics";
        for path in protected.split(' ') {
            let answer = ask(address, &with_token("GET", path, "", lines)).await;
            assert_eq!(answer.status, 401, "{path} {lines}");
            let is_refused = answer.body.contains(r#""code":"Unauthorized""#);
            assert!(is_refused, "{answer:?}");
        }
        for path in ["/livez", "/readyz"] {
            let answer = ask(address, &with_token("GET", path, "", lines)).await;
            assert_eq!(answer.status, 200, "{path} {answer:?}");
        }
        // The body is not even read.
        let long = "x".repeat(9 << 20);
        let put = with_token("PUT", "/lifecycle/v1/actions/a", &long, lines);
        let answer = exchange(TcpStream::connect(address).await.unwrap(), &put).await;
        assert!(answer.is_none_or(|answer| answer.status == 401));
    }
    assert_eq!(status(address).await.status, 200);
    beside.stop().await;
}

#[tokio::test]
async fn a_token_that_changes_is_taken_and_one_that_vanishes_is_revoked() {
    let beside = Beside::on_loopback().await;
    let address = beside.address();
    let lines = "Authorization: Bearer other\r\n";
    let text = with_token("GET", "/lifecycle", "", lines);
    let answers = async |status| {
        let what = format!("the answer is {status}");
        until(&what, || async {
            ask(address, &text).await.status == status
        })
        .await;
    };
    fs::write(&beside.token, "other").unwrap();
    answers(200).await;
    let old = status(address).await.status;
    assert_eq!(old, 401, "the old token is refused");
    fs::remove_file(&beside.token).unwrap();
    answers(401).await;
    fs::write(&beside.token, "other").unwrap();
    answers(200).await;
    beside.stop().await;
}

#[tokio::test]
async fn on_loopback_without_a_token_only_requests_to_this_machine_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::new(Endless, directory.path());
    let bound = agent.bind([loopback()]).await.unwrap();
    let address = bound.addresses().next().unwrap();
    let _serving = AbortOnDropHandle::new(tokio::spawn(bound.run(pending())));
    let asked = async |line: &str, hosts: &[&str]| {
        let mut text = format!("{line} HTTP/1.1\r\n");
        for host in hosts {
            text += &format!("Host: {host}\r\n");
        }
        ask(address, &(text + "Connection: close\r\n\r\n")).await
    };
    // The owner of a name can make it point to this address, and a browser would then send their page's requests here.
    for hosts in [
        &["evil.example"][..],
        &["evil.example:8470"],
        &["localhost.evil.example"],
        &["127.0.0.1.evil.example"],
        &["10.0.0.1"],
        &[],
        &["localhost", "evil.example"],
        &["localhost@evil.example"],
    ] {
        let answer = asked("GET /lifecycle/v1/status", hosts).await;
        assert_eq!(answer.status, 421, "{hosts:?} {answer:?}");
        let is_refused = answer.body.contains(r#""code":"ForeignHost""#);
        assert!(is_refused, "{answer:?}");
    }
    let whole = asked("GET http://evil.example/lifecycle", &["localhost"]).await;
    assert_eq!(whole.status, 421);
    let local = "localhost LOCALHOST:1 127.0.0.1 127.0.0.1:8470 [::1] [::1]:8470";
    for host in local.split(' ') {
        assert_eq!(asked("GET /lifecycle", &[host]).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn an_agent_without_a_token_listens_on_loopback_only() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        let listen = Listen::tcp(address.parse().unwrap());
        let agent = Agent::new(Endless, directory.path());
        let refused = agent.bind([listen]).await;
        assert!(matches!(refused, Err(ServeError::NoToken(_))), "{address}");
    }
    let (directory, token, agent) = prepare();
    fs::write(&token, "\n").unwrap();
    let refused = agent.bind([loopback()]).await;
    let is_refused = matches!(refused, Err(ServeError::Token(_)));
    assert!(is_refused, "an empty token");
    drop(directory);
}

#[tokio::test]
async fn a_unix_socket_is_for_its_user_and_a_stale_one_is_taken_over() {
    let place = |directory: &tempfile::TempDir| directory.path().join("agent.sock");
    let beside = Beside::start(
        |agent| agent,
        |directory| {
            // A killed agent leaves its socket.
            drop(UnixListener::bind(place(directory)).unwrap());
            vec![Listen::unix(place(directory)), loopback()]
        },
    )
    .await;
    let path = place(&beside.directory);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stream = UnixStream::connect(&path).await.unwrap();
    let text = with_token("GET", "/lifecycle", "", "");
    assert_eq!(exchange(stream, &text).await.unwrap().status, 200);

    // The agent replaces neither a socket in use nor another file.
    let (other, _token, agent) = prepare();
    let refused = agent.bind([Listen::unix(&path)]).await;
    assert!(matches!(refused, Err(ServeError::Listen { .. })));
    let file = other.path().join("token");
    let agent = Agent::new(Endless, other.path());
    let refused = agent.bind([Listen::unix(&file)]).await;
    assert!(matches!(refused, Err(ServeError::Listen { .. })));
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), TOKEN);

    let directory = beside.stop().await;
    assert!(!place(&directory).exists(), "the agent removes its socket");
}

/// Returns a certificate for `agent` and its key.
fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["agent".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

async fn over_tls(address: std::net::SocketAddr, trusted: &str) -> Option<Answer> {
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("agent").unwrap();
    let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp);
    exchange(
        tls.await.ok()?,
        &request("PUT", "/lifecycle/v1/actions/a", &work()),
    )
    .await
}

#[tokio::test]
async fn a_certificate_is_used_and_read_again_when_it_changes() {
    let (first, first_key) = certificate();
    let beside = Beside::start(
        |agent| agent,
        |directory| {
            let at = |name: &str| directory.path().join(name);
            fs::write(at("tls.crt"), &first).unwrap();
            fs::write(at("tls.key"), &first_key).unwrap();
            vec![loopback().tls(at("tls.crt"), at("tls.key"))]
        },
    )
    .await;
    let address = beside.address();
    assert_eq!(over_tls(address, &first).await.unwrap().status, 201);
    let plain = TcpStream::connect(address).await.unwrap();
    let text = request("GET", "/lifecycle", "");
    assert!(exchange(plain, &text).await.is_none());

    let (second, second_key) = certificate();
    let at = |name: &str| beside.directory.path().join(name);
    // Until both files are replaced they do not fit together, and the old pair stays in use.
    fs::write(at("tls.crt"), &second).unwrap();
    sleep(Duration::from_millis(1200)).await;
    assert_eq!(over_tls(address, &first).await.unwrap().status, 200);
    fs::write(at("tls.key"), &second_key).unwrap();
    until("the new certificate is taken", || async {
        over_tls(address, &second).await.is_some()
    })
    .await;
    beside.stop().await;
}
