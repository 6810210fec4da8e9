//! Who may connect: tokens, Unix sockets, certificates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use okt_agent::{Listen, ServeError};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::application::{Beside, TOKEN, loopback, prepare};
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
    let beside = Beside::start(|agent| agent, |_| vec![loopback()]).await;
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
        for path in [
            "/lifecycle",
            "/lifecycle/v1/status",
            "/lifecycle/v2/status",
            "/nowhere",
            "/metrics",
        ] {
            let answer = ask(address, &with_token("GET", path, "", lines)).await;
            assert_eq!(answer.status, 401, "{path} {lines}");
            assert!(
                answer.body.contains(r#""code":"Unauthorized""#),
                "{answer:?}"
            );
        }
        for path in ["/livez", "/readyz"] {
            let answer = ask(address, &with_token("GET", path, "", lines)).await;
            assert_eq!(answer.status, 200, "{path} {answer:?}");
        }
        // The body is not even read.
        let put = with_token(
            "PUT",
            "/lifecycle/v1/actions/a",
            &"x".repeat(9 << 20),
            lines,
        );
        let answer = exchange(TcpStream::connect(address).await.unwrap(), &put).await;
        assert!(answer.is_none_or(|answer| answer.status == 401));
    }
    assert_eq!(status(address).await.status, 200);
    beside.stop().await;
}

#[tokio::test]
async fn a_token_that_changes_is_taken_and_one_that_vanishes_is_revoked() {
    let beside = Beside::start(|agent| agent, |_| vec![loopback()]).await;
    let address = beside.address();
    fs::write(&beside.token, "other").unwrap();
    until("the new token is taken", || async {
        let lines = "Authorization: Bearer other\r\n";
        let text = with_token("GET", "/lifecycle", "", lines);
        ask(address, &text).await.status == 200
    })
    .await;
    assert_eq!(
        status(address).await.status,
        401,
        "the old token is refused"
    );
    fs::remove_file(&beside.token).unwrap();
    let lines = "Authorization: Bearer other\r\n";
    let text = with_token("GET", "/lifecycle", "", lines);
    until("the token is revoked", || async {
        ask(address, &text).await.status == 401
    })
    .await;
    fs::write(&beside.token, "other").unwrap();
    until("the token is taken again", || async {
        ask(address, &text).await.status == 200
    })
    .await;
    beside.stop().await;
}

#[tokio::test]
async fn on_loopback_without_a_token_only_requests_to_this_machine_are_answered() {
    let directory = tempfile::tempdir().unwrap();
    let agent = okt_agent::Agent::new(crate::application::Endless, directory.path());
    let bound = agent.bind([loopback()]).await.unwrap();
    let address = bound.addresses().next().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(bound.run(async { stopped.await.unwrap_or_default() }));
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
        assert!(
            answer.body.contains(r#""code":"ForeignHost""#),
            "{answer:?}"
        );
    }
    let whole = asked("GET http://evil.example/lifecycle", &["localhost"]).await;
    assert_eq!(whole.status, 421);
    for host in [
        "localhost",
        "LOCALHOST:1",
        "127.0.0.1",
        "127.0.0.1:8470",
        "[::1]",
        "[::1]:8470",
    ] {
        assert_eq!(asked("GET /lifecycle", &[host]).await.status, 200, "{host}");
    }
    stop.send(()).unwrap();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_agent_without_a_token_listens_on_loopback_only() {
    let directory = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        let listen = Listen::tcp(address.parse().unwrap());
        let agent = okt_agent::Agent::new(crate::application::Endless, directory.path());
        let refused = agent.bind([listen]).await;
        assert!(matches!(refused, Err(ServeError::NoToken(_))), "{address}");
    }
    let (directory, token, agent) = prepare();
    fs::write(&token, "\n").unwrap();
    let refused = agent.bind([loopback()]).await;
    assert!(
        matches!(refused, Err(ServeError::Token(_))),
        "an empty token"
    );
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
    let agent = okt_agent::Agent::new(crate::application::Endless, other.path());
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
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("agent").unwrap();
    let stream = (TlsConnector::from(Arc::new(config)).connect(name, stream))
        .await
        .ok()?;
    exchange(stream, &request("PUT", "/lifecycle/v1/actions/a", &work())).await
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
    assert!(
        exchange(plain, &request("GET", "/lifecycle", ""))
            .await
            .is_none()
    );

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
