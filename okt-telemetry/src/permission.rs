//! Asks the API server who sends a request, and whether they may read the metrics.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use okt_wire::clock::after;
use okt_wire::limit::Rate;
use okt_wire::texts::api_message;

/// How long an answer of the API server about a token is valid. In controller-runtime it is one minute as well.
const VALID: Duration = Duration::from_mins(1);

/// How many answers of each kind are kept.
const KEPT: usize = 256;

/// How many questions about strangers are asked at the same time; the others wait for these.
const ASKING: usize = 4;

/// The pause between questions about strangers, and how many are asked at once, about all requests and about those from
/// one address: whoever invents tokens costs the API server no more.
const OF_ALL: (Duration, u32) = (Duration::from_millis(100), 20);
const OF_ADDRESS: (Duration, u32) = (Duration::from_secs(1), 10);

/// How many addresses have a rate of their own; beyond that all have the rate of one.
const ADDRESSES: usize = 4096;

/// How long it is remembered that a token was allowed: it is no stranger when its answer has to be asked for again.
/// Tokens of service accounts last for an hour.
const FAMILIAR: Duration = Duration::from_hours(1);

/// How long the API server may take for both questions.
const PATIENCE: Duration = Duration::from_secs(10);

/// Lets those read the metrics whom the roles of the cluster let `get` the path; clones share the answers.
#[derive(Clone)]
pub(super) struct Permission(Arc<Inner>);

struct Inner {
    client: Client,
    answers: Mutex<Answers>,
    asking: Semaphore,
    rate: Rate,
    /// The rates of addresses that sent unknown tokens.
    addresses: Mutex<HashMap<IpAddr, Rate>>,
}

/// By the hash of the path and the token.
type Known = HashMap<[u8; 32], (PermissionAnswer, Instant)>;

/// The answers so far. Those about strangers are apart, so that they drive nobody out who may read.
#[derive(Default)]
struct Answers {
    allowed: Known,
    others: Known,
    /// Until when tokens that were allowed are familiar.
    familiar: HashMap<[u8; 32], Instant>,
}

#[derive(Clone, Debug)]
enum PermissionAnswer {
    Allowed,
    /// The API server does not know the token.
    Unknown,
    /// The name of the user who may not.
    Forbidden(String),
}

impl Permission {
    pub(super) fn new(client: Client) -> Self {
        Self(Arc::new(Inner {
            client,
            answers: Mutex::default(),
            asking: Semaphore::new(ASKING),
            rate: Rate::new(OF_ALL.0, OF_ALL.1),
            addresses: Mutex::default(),
        }))
    }

    /// Returns the answer of the API server about a token, now or a short time ago; none if too many unknown tokens came.
    async fn verdict(
        &self,
        token: &str,
        path: &str,
        peer: IpAddr,
    ) -> Result<Option<PermissionAnswer>, String> {
        let question = Sha256::new().chain_update(path).chain_update([0]);
        let hash = question.chain_update(token).finalize().into();
        if let Some(known) = self.known(&hash) {
            return Ok(Some(known));
        }
        let is_familiar = self.is_familiar(&hash);
        let may_ask = || self.admits(peer) && self.0.rate.is_now();
        if !is_familiar && !may_ask() {
            return Ok(None);
        }
        let asked = async {
            // Who was allowed waits for no stranger.
            let _turn = if is_familiar {
                None
            } else {
                self.0.asking.acquire().await.ok()
            };
            // Another request may have asked in the meantime.
            match self.known(&hash) {
                Some(known) => Ok(known),
                None => self.ask(token, path).await,
            }
        };
        let verdict = timeout(PATIENCE, asked)
            .await
            .map_err(|_| "it did not answer in time".to_owned())?
            .map_err(|error| api_message(&error))?;
        let now = Instant::now();
        let mut answers = self.0.answers.lock();
        answers.familiar.retain(|_, until| *until > now);
        if matches!(verdict, PermissionAnswer::Allowed) && answers.familiar.len() < KEPT {
            answers.familiar.insert(hash, after(FAMILIAR));
        }
        let answers = match verdict {
            PermissionAnswer::Allowed => &mut answers.allowed,
            PermissionAnswer::Unknown | PermissionAnswer::Forbidden(_) => &mut answers.others,
        };
        answers.retain(|_, (_, until)| *until > now);
        if answers.len() >= KEPT {
            answers.clear();
        }
        answers.insert(hash, (verdict.clone(), after(VALID)));
        Ok(Some(verdict))
    }

    fn is_familiar(&self, hash: &[u8; 32]) -> bool {
        let answers = self.0.answers.lock();
        answers
            .familiar
            .get(hash)
            .is_some_and(|until| *until > Instant::now())
    }

    /// Returns whether one more unknown token from an address may be asked about.
    fn admits(&self, peer: IpAddr) -> bool {
        let mut addresses = self.0.addresses.lock();
        if addresses.len() >= ADDRESSES {
            addresses.retain(|_, rate| !rate.is_rested());
        }
        let peer = if addresses.len() < ADDRESSES || addresses.contains_key(&peer) {
            peer
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        };
        let entry = addresses.entry(peer);
        let rate = entry.or_insert_with(|| Rate::new(OF_ADDRESS.0, OF_ADDRESS.1));
        rate.is_now()
    }

    fn known(&self, hash: &[u8; 32]) -> Option<PermissionAnswer> {
        let answers = self.0.answers.lock();
        let known = [answers.allowed.get(hash), answers.others.get(hash)];
        let now = Instant::now();
        let valid = known.into_iter().flatten().find(|(_, until)| *until > now);
        valid.map(|(verdict, _)| verdict.clone())
    }

    async fn ask(&self, token: &str, path: &str) -> kube::Result<PermissionAnswer> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                #[allow(
                    clippy::useless_conversion,
                    reason = "an `Option` in the types of Kubernetes before 1.36, a `String` in newer ones"
                )]
                token: token.to_owned().into(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let params = PostParams::default();
        let reviews: Api<TokenReview> = Api::all(self.0.client.clone());
        let status = reviews
            .create(&params, &review)
            .await?
            .status
            .unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(PermissionAnswer::Unknown);
        };
        let name = user.username.clone().unwrap_or_default();
        let reviews: Api<SubjectAccessReview> = Api::all(self.0.client.clone());
        let status = reviews.create(&params, &access(user, path)).await?.status;
        Ok(if status.is_some_and(|status| status.allowed) {
            PermissionAnswer::Allowed
        } else {
            PermissionAnswer::Forbidden(name)
        })
    }
}

/// Returns the question whether a user may `get` a path.
fn access(user: UserInfo, path: &str) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

/// Lets a request pass if its sender may read the path.
pub(super) async fn check(
    State(permission): State<Permission>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let Some(token) = bearer(&request) else {
        return unauthorized("send the token of a user or a service account of the cluster\n");
    };
    let peer = peer.ip().to_canonical();
    match permission.verdict(token, &path, peer).await {
        Ok(None) => {
            let headers = [(header::RETRY_AFTER, "1")];
            let why = "too many unknown tokens were sent; try again later\n";
            // For now the token counts as unknown.
            (StatusCode::UNAUTHORIZED, headers, why).into_response()
        }
        Ok(Some(PermissionAnswer::Allowed)) => next.run(request).await,
        Ok(Some(PermissionAnswer::Unknown)) => {
            unauthorized("the API server does not know this token\n")
        }
        Ok(Some(PermissionAnswer::Forbidden(user))) => {
            let why = format!("{user} may not get the path {path}: no role allows it\n");
            (StatusCode::FORBIDDEN, why).into_response()
        }
        Err(why) => {
            tracing::warn!("cannot ask the API server who may read {path}: {why}");
            let why = "cannot ask the API server about this token; see the log of the operator\n";
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

fn unauthorized(why: &'static str) -> Response {
    let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, headers, why).into_response()
}

/// Returns the token of a request.
fn bearer(request: &Request) -> Option<&str> {
    let value = request
        .headers()
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
