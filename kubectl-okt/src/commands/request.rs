//! `kubectl okt request`: ask an object for a visit with arguments.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::time::Duration;

use clap::Args;
use futures::StreamExt;
use futures::stream::select;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrBool,
};
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use kube::core::Request;
use kube::runtime::watcher;
use okt_core::request::RequestOutcome;
use okt_view::{Cause, Kind, RequestError, RequestReport, RequestResource, RequestView, View};
use okt_wire::request::{RequestSpec, Target};
use serde_json::{Value, json};

use super::go::MANAGER;
use super::wait::{duration, print_later};
use crate::error::Error;
use crate::output::print;
use crate::select::{One, open, request_kind, watch};

/// Ask an object for a visit with arguments: create a request, and show what it waits for.
///
/// A request is served once, after those that are older.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt request restore orders --set backup=nightly-12
  kubectl okt request restore database/orders -f args.yaml --wait --timeout 1h
  kubectl okt request backup orders --start-before 2h --dry-run")]
pub(crate) struct MakeRequest {
    /// The kind of the request: singular or plural, with or without the group.
    #[arg(value_name = "KIND")]
    kind: String,
    /// The object that is to serve it: NAME or TYPE/NAME.
    #[arg(value_name = "TARGET")]
    target: String,
    /// An argument (e.g. `backup=nightly-12`, or `options.threads=4`); may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// A file with the arguments (YAML or JSON), or `-` for the standard input; --set changes them.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The name of the request [default: its kind, and letters that the API server chooses]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Do not begin after this time (RFC 3339), or after this time from now (e.g. 2h).
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start_before: Option<Timestamp>,
    /// How long the request is kept after it has finished (e.g. 48h) [default: that of its kind]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    ttl: Option<Duration>,
    /// Wait for the outcome: print each transition, and the result.
    #[arg(long)]
    wait: bool,
    /// The longest time to wait.
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration, requires = "wait")]
    timeout: Duration,
    /// Let the API server check the request without storing it.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    let from_now = |time: SignedDuration| Timestamp::now().checked_add(time).ok();
    let parsed = text.parse().ok();
    let parsed = parsed.or_else(|| from_now(text.parse().ok()?));
    parsed.ok_or_else(|| {
        "write a time such as 2026-11-27T18:00:00Z, or 2h for a time from now".to_owned()
    })
}

impl MakeRequest {
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let kinds = Kind::all(client).await?;
        let (kind, resource) = request_kind(&kinds, &self.kind)?;
        let of_kind = kind.id();
        let (of, name) = match self.target.split_once('/') {
            Some((of, name)) => (of, name),
            None => (&*of_kind, &*self.target),
        };
        if !kind.is_called(of) {
            return Err(Error::Usage(format!(
                "{of_kind} serves {}, and `{}` is of another type",
                resource.kind.id(),
                self.target
            )));
        }
        let args = self.args(resource)?;
        let object = One::named(&format!("{of_kind}/{name}"));
        let view = object.read(client, from_ref(kind)).await?;
        let made = self.create(client, resource, &view, args).await?;
        let title = made.title();
        if self.dry_run {
            print(&format!("{title} may be created\n"));
            return Ok(());
        }
        print(&format!(
            "{title} is created; `kubectl okt why {}` says what becomes of it\n",
            made.arguments()
        ));
        let mut following = Following {
            client,
            kind,
            resource,
            made,
            printed: view.position().map_or(0, |position| position.transition),
            last: String::new(),
        };
        following.look().await?;
        if !self.wait {
            return Ok(());
        }
        let waited = tokio::time::timeout(self.timeout, following.until_over()).await;
        waited.unwrap_or_else(|_| {
            Err(Error::TimedOut(format!(
                "the time to wait is over: {title} {}",
                following.last
            )))
        })
    }

    /// Returns the arguments, of the types that the schema has.
    fn args(&self, resource: &RequestResource) -> Result<Value, Error> {
        let mut args = match &self.file {
            Some(path) => read(path)?,
            None => json!({}),
        };
        for set in &self.set {
            let Some((path, text)) = set.split_once('=') else {
                return Err(Error::Usage(format!(
                    "`{set}` is no argument; write --set PATH=VALUE"
                )));
            };
            put(&mut args, resource.args.as_ref(), path, text).map_err(|why| {
                let kind = &resource.kind.resource.kind;
                Error::Usage(format!("{kind} does not take `{set}`: {why}"))
            })?;
        }
        Ok(args)
    }

    async fn create(
        &self,
        client: &Client,
        resource: &RequestResource,
        target: &View<'_>,
        args: Value,
    ) -> Result<RequestView, Error> {
        let spec = RequestSpec {
            target: Target {
                name: target.name().to_owned(),
            },
            args,
            start_before: self.start_before,
            ttl_seconds_after_finished: self.ttl.map(seconds),
        };
        let of = &resource.kind.resource;
        let metadata = match &self.name {
            Some(name) => json!({ "name": name }),
            None => json!({ "generateName": format!("{}-", of.kind.to_lowercase()) }),
        };
        let object = json!({
            "apiVersion": of.api_version, "kind": of.kind, "metadata": metadata, "spec": spec,
        });
        let api = resource.kind.objects(client, target.namespace());
        let params = PostParams {
            dry_run: self.dry_run,
            field_manager: Some(MANAGER.to_owned()),
        };
        let failed = |error| RequestError::new(format!("create {}", resource.kind.id()), &error);
        let mut post = Request::new(api.resource_url())
            .create(&params, object.to_string().into_bytes())
            .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
        // kube has no parameter for it. Without it, an unknown argument would be dropped.
        let strict = format!("{}&fieldValidation=Strict", post.uri());
        *post.uri_mut() = strict.parse().expect("it has one parameter more");
        let made: DynamicObject = client.request(post).await.map_err(failed)?;
        Ok(RequestView::of(resource, made))
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

/// Reads a file of arguments.
fn read(path: &Path) -> Result<Value, Error> {
    let mut text = String::new();
    let failed = |why: String| Error::Failed(format!("{}: {why}", path.display()));
    let read = open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| failed(error.to_string()))?;
    let args = serde_saphyr::from_str::<Value>(&text);
    let args = args.map_err(|error| failed(error.to_string()))?;
    match args {
        Value::Object(_) => Ok(args),
        _ => Err(failed("write the arguments as `name: value`".to_owned())),
    }
}

/// Sets one argument; an error says what its schema has instead.
fn put(
    args: &mut Value,
    schema: Option<&JSONSchemaProps>,
    path: &str,
    text: &str,
) -> Result<(), String> {
    let (mut place, mut schema) = (args, schema);
    for name in path.split('.') {
        schema = field(schema, name)?;
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = typed(schema, text)?;
    Ok(())
}

/// Returns the schema of a field; none if its parent takes everything.
fn field<'s>(
    schema: Option<&'s JSONSchemaProps>,
    name: &str,
) -> Result<Option<&'s JSONSchemaProps>, String> {
    let Some(schema) = schema else {
        return Ok(None);
    };
    let fields = schema.properties.iter().flatten();
    let mut known = fields.clone();
    if let Some((_, found)) = known.find(|(own, _)| *own == name) {
        return Ok(Some(found));
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(of)) => Ok(Some(&**of)),
        Some(JSONSchemaPropsOrBool::Bool(true)) => Ok(None),
        _ if schema.x_kubernetes_preserve_unknown_fields == Some(true) => Ok(None),
        Some(JSONSchemaPropsOrBool::Bool(false)) | None => {
            let names: Vec<&str> = fields.map(|(name, _)| name.as_str()).collect();
            Err(match names.join(", ") {
                names if names.is_empty() => format!("there is no `{name}`, nor any other field"),
                names => format!("there is no `{name}`; there are {names}"),
            })
        }
    }
}

/// Returns a value as the schema has it.
fn typed(schema: Option<&JSONSchemaProps>, text: &str) -> Result<Value, String> {
    let yaml = serde_saphyr::from_str::<Value>(text).ok();
    let wanted = schema.and_then(|schema| schema.type_.as_deref());
    let (value, what) = match wanted {
        Some("string") => return Ok(text.into()),
        Some("integer") => (yaml.filter(|it| it.is_i64() || it.is_u64()), "an integer"),
        Some("number") => (yaml.filter(Value::is_number), "a number"),
        Some("boolean") => (yaml.filter(Value::is_boolean), "true or false"),
        Some("array") => (yaml.filter(Value::is_array), "a list such as [a, b]"),
        Some("object") => (yaml.filter(Value::is_object), "an object such as {a: 1}"),
        _ => return Ok(yaml.unwrap_or_else(|| text.into())),
    };
    value.ok_or_else(|| format!("`{text}` is not {what}"))
}

/// A request that is followed.
struct Following<'a> {
    client: &'a Client,
    kind: &'a Kind,
    resource: &'a RequestResource,
    made: RequestView,
    /// The number of the last transition that was printed.
    printed: u64,
    /// Why the request waits, as it was printed last.
    last: String,
}

impl Following<'_> {
    /// Follows the request until it has an outcome.
    async fn until_over(&mut self) -> Result<(), Error> {
        let (client, namespace) = (self.client, self.made.meta.namespace.clone());
        let events_of = |kind, name: &str| {
            let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
            watch(client, [kind], namespace.as_deref(), config)
        };
        let own = events_of(&self.resource.kind, self.made.name());
        let mut events = select(own, events_of(self.kind, &self.made.target));
        while let Some(event) = events.next().await {
            event?;
            if let Some(report) = self.look().await?
                && let Some(outcome) = report.request.ended()
            {
                return over(&report, outcome);
            }
        }
        Err(Error::Failed("the watch has ended".to_owned()))
    }

    /// Reads the request, and prints what has changed; none if it cannot be read now.
    async fn look(&mut self) -> Result<Option<RequestReport<'_>>, Error> {
        let made = &self.made;
        let namespace = made.meta.namespace.as_deref().unwrap_or_default();
        let (kind, resource) = (self.kind, self.resource);
        let read = RequestReport::read(self.client, kind, resource, namespace, made.name());
        let report = match read.await {
            Ok(report) => report.filter(|it| it.request.meta.uid == made.meta.uid),
            // The next event, or the list after a disconnection, leads here again.
            Err(error) => {
                eprintln!("warning: {error}");
                return Ok(None);
            }
        };
        let gone = || Error::Failed(format!("{} was deleted", made.title()));
        let report = report.ok_or_else(gone)?;
        if let Some(object) = &report.object {
            self.printed = print_later(object, self.printed);
        }
        if let Some(queued) = &report.queued
            && self.last != queued.verb()
        {
            self.last = queued.verb();
            print(&format!("{}\n", queued.line()));
        }
        Ok(Some(report))
    }
}

/// Prints the result of a request that has reached its state; an error for every other outcome.
fn over(report: &RequestReport<'_>, outcome: RequestOutcome) -> Result<(), Error> {
    let request = &report.request;
    if outcome != RequestOutcome::Reached {
        let remedies = Cause::of_request(report).remedies;
        let remedies: Vec<String> = remedies.iter().map(|it| format!("; {it}")).collect();
        return Err(Error::Refused(format!(
            "the outcome of {} is {}{}",
            request.title(),
            request.told(),
            remedies.concat()
        )));
    }
    print(&format!("{} is done\n", request.title()));
    let result = request.status.as_ref().and_then(|it| it.result.as_ref());
    if let Some(result) = result {
        let text = serde_saphyr::to_string(result);
        print(&text.map_err(|error| Error::Failed(format!("cannot print the result: {error}")))?);
    }
    Ok(())
}
