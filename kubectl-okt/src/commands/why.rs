//! `kubectl okt why`: why an object is not where it is to go, and what would move it.

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use okt_core::request::RequestOutcome;
use okt_view::{Cause, Kind, RequestReport, View, Why, request_title};
use serde::Serialize;

use crate::error::Error;
use crate::output::{BOLD, OutputFormat, print_as, styled};
use crate::select::{One, RequestKind};

/// The verb that approves plans.
const APPROVE: &str = "approve";

/// Say why an object is not where it is to go, and what would move it; or what a request waits for.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt why orders
  kubectl okt why restore/restore-x7k2    a request: what it waits for, or what became of it")]
pub(crate) struct WhyCommand {
    #[command(flatten)]
    object: One,
    /// The format of the output.
    #[arg(short, long, value_enum)]
    output: Option<OutputFormat>,
}

#[derive(Serialize)]
struct WhyAnswer<'v> {
    object: String,
    state: Option<&'v str>,
    #[serde(flatten)]
    why: &'v Why,
}

impl WhyCommand {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        if let Some((kind, name)) = self.object.request(&kinds)? {
            return self.of_request(client, kind, name).await;
        }
        let view = self.object.read(client, &kinds).await?;
        let now = Timestamp::now();
        let mut why = Why::of(client, &view, now).await;
        why.causes.extend(lacking(client, &view).await);
        let answer = WhyAnswer {
            object: view.id(),
            state: view.state(),
            why: &why,
        };
        print_as(self.output, &answer, [view.id()], || text(&view, &why, now))
    }

    async fn of_request(
        &self,
        client: &Client,
        (kind, resource): RequestKind<'_>,
        name: &str,
    ) -> Result<(), Error> {
        let namespace = client.default_namespace();
        let read = RequestReport::read(client, kind, resource, namespace, name).await?;
        let Some(report) = read else {
            let title = request_title(&resource.kind.resource.kind, name);
            return Err(Error::Failed(format!(
                "there is no {title} in the namespace {namespace}; a finished request is deleted after some time"
            )));
        };
        let request = &report.request;
        let why = Why {
            goal: format!("{} of {}", request.state, request.target),
            causes: vec![Cause::of_request(&report)],
            events: Vec::new(),
            unread: Vec::new(),
        };
        let id = format!("{}/{name}", resource.kind.id());
        let answer = WhyAnswer {
            object: id.clone(),
            state: request.outcome().map(RequestOutcome::as_str),
            why: &why,
        };
        print_as(self.output, &answer, [id], || {
            let title = styled(BOLD, &request.title());
            format!("{title} asks for {}.\n{}", why.goal, causes(&why))
        })
    }
}

/// Returns the right to approve, if the object waits for an approval and the user lacks it.
async fn lacking(client: &Client, view: &View<'_>) -> Option<Cause> {
    let waiting = view.position()?.waiting.as_ref()?;
    waiting.plan.as_ref()?;
    let resource = &view.kind.resource;
    let attributes = ResourceAttributes {
        group: Some(resource.group.clone()),
        resource: Some(resource.plural.clone()),
        namespace: view.namespace().map(str::to_owned),
        name: Some(view.name().to_owned()),
        verb: Some(APPROVE.to_owned()),
        ..ResourceAttributes::default()
    };
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    // Who may not even ask learns it when approving.
    let answer = reviews.create(&PostParams::default(), &review).await.ok()?;
    let is_lacking = answer.status.is_some_and(|status| !status.allowed);
    let kind = view.kind.id();
    is_lacking.then(|| Cause {
        what: format!("You lack the verb `{APPROVE}` on {kind}, which a policy may ask for."),
        remedies: vec![format!(
            "the role {kind}:approve has it, which `rbac` prints"
        )],
    })
}

fn text(view: &View<'_>, why: &Why, now: Timestamp) -> String {
    let place = why.place(view, now);
    let mut text = format!("{} {place}.\n", styled(BOLD, &view.title()));
    if let Some(way) = view.way() {
        text.push_str(&format!("The route: {way}\n"));
    }
    text.push_str(&causes(why));
    if !why.events.is_empty() {
        let since = match view.ready().0 {
            "True" => ", which is ready now",
            _ => "",
        };
        text.push_str(&format!("\nThe last warnings about the object{since}:\n"));
        for event in &why.events {
            text.push_str(&format!("  {event}\n"));
        }
    }
    for unread in &why.unread {
        text.push_str(&format!("\nNot looked at: {unread}\n"));
    }
    text
}

fn causes(why: &Why) -> String {
    let mut text = String::new();
    for cause in &why.causes {
        text.push_str(&format!("\n{}\n", cause.what));
        for remedy in &cause.remedies {
            text.push_str(&format!("  → {remedy}\n"));
        }
    }
    text
}
