//! `kubectl okt conditions`: whether the conditions of objects follow the rules that tools rely on.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::Args;
use futures::StreamExt;
use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use okt_view::conditions::{Checker, Context};
use okt_view::{Kind, RequestError, plain};
use serde_json::Value;

use crate::error::Error;
use crate::output::print;
use crate::select::{labelled, list, open, watch};

/// Check the conditions of objects of any operator against the rules that kubectl, kstatus and Argo CD rely on.
///
/// It exits with 3 if a rule is broken.
#[derive(Args)]
#[command(after_help = "Examples:
  kubectl okt conditions certificates -A
  kubectl okt conditions databases -w                   each version against the one before
  kubectl get certificates -A -o yaml | kubectl okt conditions -f -
  kubectl get crd certificates.cert-manager.io -o yaml | kubectl okt conditions -f -")]
pub(crate) struct Conditions {
    /// The kind, of any operator: plural, singular or short name, with or without the group.
    #[arg(value_name = "TYPE", required_unless_present = "file")]
    kind: Option<String>,
    /// Only this object.
    #[arg(value_name = "NAME", conflicts_with = "file")]
    name: Option<String>,
    /// A file of objects or CRDs (YAML or JSON), or `-` for the standard input: versions of an object are compared.
    #[arg(short, long, value_name = "FILE", conflicts_with = "kind")]
    file: Option<PathBuf>,
    /// Objects of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["file", "name"])]
    all_namespaces: bool,
    /// Only objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with_all = ["file", "name"])]
    selector: Option<String>,
    /// Check each new version, until interrupted.
    #[arg(short, long, conflicts_with = "file")]
    watch: bool,
}

/// What was checked so far.
struct ConditionsCheck {
    checker: Checker,
    objects: usize,
    broken: usize,
}

impl Conditions {
    /// Returns whether the command needs a cluster.
    pub(crate) fn needs_cluster(&self) -> bool {
        self.file.is_none()
    }

    /// Checks the objects of a file or a stream.
    pub(crate) fn read(&self) -> Result<(), Error> {
        let path = self.file.as_deref().unwrap_or(Path::new("-"));
        let cannot = |why: &dyn std::fmt::Display| {
            Error::Failed(format!(
                "cannot read objects from {}: {why}",
                path.display()
            ))
        };
        let mut check = ConditionsCheck::new();
        let text = open(path).map_err(|error| cannot(&error))?;
        check.stream(text).map_err(|why| cannot(&why))?;
        if check.objects == 0 {
            return Err(cannot(&"there are none in it"));
        }
        check.verdict()
    }

    /// Checks live objects.
    pub(crate) async fn run(&self, client: &Client) -> Result<(), Error> {
        let name = self.kind.as_deref().unwrap_or_default();
        let kinds = Kind::any(client, name).await?;
        if kinds.is_empty() {
            return Err(Error::Failed(format!(
                "the cluster has no kind `{name}`; `kubectl api-resources` shows all"
            )));
        }
        let mut check = ConditionsCheck::new();
        if self.watch {
            return self.follow(client, &kinds, &mut check).await;
        }
        let namespace = (!self.all_namespaces).then(|| client.default_namespace());
        for kind in &kinds {
            let objects = match &self.name {
                Some(name) => kind
                    .objects(client, namespace)
                    .get(name)
                    .await
                    .map(|object| vec![object]),
                None => list(client, kind, namespace, self.selector.as_deref()).await,
            };
            let failed =
                |error: kube::Error| RequestError::new(format!("read {}", kind.id()), &error);
            for object in objects.map_err(failed)? {
                check.object(kind, object);
            }
        }
        check.verdict()
    }

    async fn follow(
        &self,
        client: &Client,
        kinds: &[Kind],
        check: &mut ConditionsCheck,
    ) -> Result<(), Error> {
        let namespace = (!self.all_namespaces).then(|| client.default_namespace());
        let mut config = labelled(self.selector.as_deref());
        if let Some(name) = &self.name {
            config = config.fields(&format!("metadata.name={name}"));
        }
        let mut events = watch(client, kinds, namespace, config);
        while let Some(event) = events.next().await {
            if let (kind, watcher::Event::Apply(object) | watcher::Event::InitApply(object)) =
                event?
            {
                check.object(kind, object);
            }
        }
        Ok(())
    }
}

impl ConditionsCheck {
    fn new() -> Self {
        Self {
            checker: Checker::new(Context::new().now(Timestamp::now())),
            objects: 0,
            broken: 0,
        }
    }

    /// Checks the next version of a live object.
    fn object(&mut self, kind: &Kind, object: DynamicObject) {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        // A list has the type once, and not in its items.
        value["apiVersion"] = kind.resource.api_version.clone().into();
        value["kind"] = kind.resource.kind.clone().into();
        // The values are objects, so the text is one.
        let _ = self.text(&value.to_string());
    }

    /// Checks the objects of a text, and prints what they break.
    fn text(&mut self, text: &str) -> Result<(), String> {
        let verdict = self
            .checker
            .judge_yaml(text)
            .map_err(|error| error.to_string())?;
        let mut last = "";
        for (name, violation) in verdict.violations() {
            if name != last {
                print(&format!("{}\n", plain(name)));
                last = name;
            }
            print(&format!("  {}\n", plain(&violation.to_string())));
            self.broken += 1;
        }
        self.objects += verdict.objects();
        Ok(())
    }

    /// Checks the objects of a stream as they come: documents of YAML, or values of JSON.
    fn stream(&mut self, mut reader: impl BufRead) -> Result<(), String> {
        let message = |error: std::io::Error| error.to_string();
        let start = reader.fill_buf().map_err(message)?;
        if start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{') {
            for value in serde_json::Deserializer::from_reader(reader).into_iter::<Value>() {
                let value = value.map_err(|error| error.to_string())?;
                self.text(&value.to_string())?;
            }
            return Ok(());
        }
        let mut document = String::new();
        for line in reader.lines() {
            let line = line.map_err(message)?;
            if line.trim_end() == "---" {
                self.document(&mut document)?;
            } else {
                document.push_str(&line);
                document.push('\n');
            }
        }
        self.document(&mut document)
    }

    fn document(&mut self, document: &mut String) -> Result<(), String> {
        let text = std::mem::take(document);
        if text.trim().is_empty() {
            return Ok(());
        }
        self.text(&text)
    }

    /// Prints how much was checked.
    fn verdict(&self) -> Result<(), Error> {
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            many => format!("{many} {what}s"),
        };
        let objects = count(self.objects, "object");
        if self.broken == 0 {
            print(&format!("{objects}, no rule broken\n"));
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{objects}, {}",
            count(self.broken, "broken rule")
        )))
    }
}
