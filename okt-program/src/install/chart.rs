//! The manifests of a program as a chart for helm: what an installation decides is a value.

mod template;
mod values;

use serde_json::{Value, json};

use self::template::HelmTemplate;
pub(crate) use self::template::{ACCOUNT_NAME, RELEASE_NAMESPACE, WATCHED_NAMESPACE};
use crate::install::generated::{GeneratedFile, Writer};
use crate::install::image::ImageName;
use crate::install::manifests::{Installation, metrics_port};

/// What helm says after it has installed the chart.
const NOTES: &str = "templates/NOTES.txt";

/// The image of the values.
const IMAGE: &str = "\"{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}{{ with .Values.image.digest }}@{{ . }}{{ end }}\"";

/// What an installation without values of its own has, and the objects of all others.
pub(crate) struct HelmChart<'a> {
    /// How the program is installed by default, in the namespace [`RELEASE_NAMESPACE`].
    pub(crate) installation: Installation<'a>,
    pub(crate) definitions: Vec<Value>,
    /// The roles of an operator of the whole cluster, as all objects here for the account [`ACCOUNT_NAME`].
    pub(crate) roles: Vec<Value>,
    /// The roles of one that is limited to the namespace [`WATCHED_NAMESPACE`]; none if no operator can be.
    pub(crate) limited_roles: Option<Vec<Value>>,
    /// The roles for metrics over TLS.
    pub(crate) metrics_roles: Vec<Value>,
    /// All admission policies by their names on the command line, with their roles.
    pub(crate) policies: Vec<(String, Vec<Value>)>,
    /// The names of those that an installation has by default.
    pub(crate) default_policies: Vec<String>,
    /// The webhooks that check and complete objects in the namespace [`WATCHED_NAMESPACE`].
    pub(crate) configurations: Vec<Value>,
    /// Whether there is a `ServiceMonitor` by default.
    pub(crate) monitored: bool,
    /// Whether there is a `NetworkPolicy` by default.
    pub(crate) guarded: bool,
}

impl HelmChart<'_> {
    /// Returns the files of the chart.
    ///
    /// # Errors
    ///
    /// If an object cannot be written as YAML.
    pub(crate) fn files(&self, writer: &Writer) -> Result<Vec<GeneratedFile>, String> {
        let mut schema = self.schema()?;
        let values = values::text(&schema)?;
        schema["$comment"] = writer.mark("values.schema.json").into();
        let file = |path: &str, text: String| writer.commented(path, &text);
        let name = &self.installation.account.name;
        let image = ImageName::of(self.installation.image);
        let about = format!(
            "apiVersion: v2\nname: {name:?}\ndescription: The operator {name}\ntype: application\nversion: {}\nappVersion: {:?}\n",
            image.version(),
            image.named(),
        );
        Ok(vec![
            file("Chart.yaml", about),
            file("values.yaml", values),
            GeneratedFile::marked("values.schema.json", format!("{schema:#}\n")),
            file("templates/definitions.yaml", self.definitions()?),
            file("templates/roles.yaml", self.roles()?),
            file("templates/operator.yaml", self.operator()?),
            file("templates/monitoring.yaml", self.monitoring()?),
            file("templates/policies.yaml", self.policies()?),
            file("templates/webhooks.yaml", self.webhooks()?),
            GeneratedFile::marked(NOTES, self.notes(&writer.mark(NOTES))),
        ])
    }

    fn definitions(&self) -> Result<String, String> {
        let mut template = HelmTemplate::default();
        let mut definitions = self.definitions.clone();
        for definition in &mut definitions {
            // Without them all objects would go with the release.
            const KEEP: &str = "helm.sh/resource-policy: keep";
            let metadata = &mut definition["metadata"];
            let (to, lines) = match metadata.get("annotations") {
                Some(_) => (&mut metadata["annotations"], KEEP.to_owned()),
                None => (metadata, format!("annotations:\n  {KEEP}")),
            };
            template.add(to, &when(".Values.crds.keep", &lines));
        }
        let definitions = template.print(&definitions)?;
        Ok(when(".Values.crds.enabled", &definitions))
    }

    fn roles(&self) -> Result<String, String> {
        let template = HelmTemplate::default();
        let print = |roles: &[&Value]| template.print(roles.iter().copied());
        let whole: Vec<_> = self.roles.iter().collect();
        let roles = match &self.limited_roles {
            None => print(&whole)?,
            Some(limited) => {
                let only = |these: &[&'_ Value], those: &[Value]| -> Vec<Value> {
                    let only = these.iter().filter(|role| !those.contains(role));
                    only.map(|role| Value::clone(role)).collect()
                };
                let limited_all: Vec<_> = limited.iter().collect();
                let both: Vec<_> = whole
                    .iter()
                    .filter(|role| limited.contains(role))
                    .copied()
                    .collect();
                let whole_only = only(&whole, limited);
                let (each, once): (Vec<_>, Vec<_>) = only(&limited_all, &self.roles)
                    .into_iter()
                    .partition(|role| role["metadata"]["namespace"] == WATCHED_NAMESPACE);
                format!(
                    "{}{{{{- if .Values.namespaces }}}}\n{}{{{{- range .Values.namespaces }}}}\n{}{{{{- end }}}}\n{{{{- else }}}}\n{}{{{{- end }}}}\n",
                    print(&both)?,
                    template.print(&once)?,
                    template.print(&each)?,
                    template.print(&whole_only)?,
                )
            }
        };
        let metrics = template.print(&self.metrics_roles)?;
        Ok(roles + &when(".Values.metrics.secure", &metrics))
    }

    fn operator(&self) -> Result<String, String> {
        let mut template = HelmTemplate::default();
        let mut account = self.installation.service_account();
        account["metadata"]["name"] = ACCOUNT_NAME.into();
        let annotations = ".Values.serviceAccount.annotations";
        template.with(&mut account["metadata"], "annotations", annotations);
        let account = when(
            ".Values.serviceAccount.create",
            &template.print([&account])?,
        );
        let mut deployment = self.installation.deployment();
        self.fill_in(&mut deployment, &mut template);
        let deployment = template.print([&deployment])?;
        let several = Installation {
            replicas: 2,
            ..self.installation.clone()
        };
        let budget = template.print(several.disruption_budget().iter())?;
        let budget = when("gt (int .Values.replicas) 1", &budget);
        let webhooks = template.print(self.installation.webhook_service().iter())?;
        Ok([account, deployment, budget, webhooks].concat())
    }

    /// Replaces what the values decide in the Deployment.
    fn fill_in(&self, deployment: &mut Value, template: &mut HelmTemplate) {
        deployment["spec"]["replicas"] = template.value("{{ .Values.replicas }}");
        let pods = &mut deployment["spec"]["template"];
        template.with(
            &mut pods["metadata"],
            "annotations",
            ".Values.podAnnotations",
        );
        template.spread(&mut pods["metadata"]["labels"], ".Values.podLabels");
        let pod = &mut pods["spec"];
        pod["serviceAccountName"] = ACCOUNT_NAME.into();
        for name in [
            "imagePullSecrets",
            "nodeSelector",
            "tolerations",
            "affinity",
            "volumes",
        ] {
            template.with(pod, name, &format!(".Values.{name}"));
        }
        let entry = |name: &str, value: &str| {
            format!("{{{{- with {value} }}}}\n{name}: {{{{ . | quote }}}}\n{{{{- end }}}}")
        };
        let priority = entry("priorityClassName", ".Values.priorityClassName");
        template.add(pod, &priority);
        let container = &mut pod["containers"][0];
        container["image"] = template.value(IMAGE);
        let policy = entry("imagePullPolicy", ".Values.image.pullPolicy");
        template.add(container, &policy);
        if let Some(container) = container.as_object_mut() {
            container.remove("resources");
        }
        for name in ["resources", "env", "envFrom", "volumeMounts"] {
            template.with(container, name, &format!(".Values.{name}"));
        }
        container["args"] = json!(["run"]);
        let arguments = &mut container["args"];
        template.add(
            arguments,
            &when(
                "ne (toString .Values.shards) \"1\"",
                "- --shards={{ .Values.shards }}",
            ),
        );
        if self.can_be_secure() {
            template.add(
                arguments,
                &when(".Values.metrics.secure", "- --metrics-secure"),
            );
            let (open, secure) = (metrics_port(false), metrics_port(true));
            container["ports"][0]["containerPort"] = template.value(&format!(
                "{{{{ .Values.metrics.secure | ternary {secure} {open} }}}}"
            ));
        }
        let arguments = &mut container["args"];
        if self.limited_roles.is_some() {
            template.add(
                arguments,
                "{{- range .Values.namespaces }}\n- --namespace={{ . }}\n{{- end }}",
            );
        }
        template.add(
            arguments,
            "{{- range .Values.args }}\n- {{ . | quote }}\n{{- end }}",
        );
    }

    fn monitoring(&self) -> Result<String, String> {
        let mut template = HelmTemplate::default();
        let mut print = |secure| {
            let installation = self.secured(secure);
            let (mut monitor, mut network) = (
                installation.service_monitor(),
                installation.network_policy(),
            );
            if let Some(monitor) = &mut monitor {
                let labels = &mut monitor["metadata"]["labels"];
                template.spread(labels, ".Values.serviceMonitor.labels");
            }
            if let Some(network) = &mut network {
                let metrics = &mut network["spec"]["ingress"][0];
                template.with(metrics, "from", ".Values.networkPolicy.metricsFrom");
            }
            Ok::<_, String>([
                template.print(&installation.metrics_service())?,
                when(".Values.serviceMonitor.enabled", &template.print(&monitor)?),
                when(".Values.networkPolicy.enabled", &template.print(&network)?),
            ])
        };
        let (open, secure) = (print(false)?, print(true)?);
        let both = open.into_iter().zip(secure);
        let texts = both.map(|(open, secure)| {
            if open == secure || !self.can_be_secure() {
                return open;
            }
            format!("{{{{- if .Values.metrics.secure }}}}\n{secure}{{{{- else }}}}\n{open}{{{{- end }}}}\n")
        });
        Ok(texts.collect())
    }

    fn policies(&self) -> Result<String, String> {
        let template = HelmTemplate::default();
        let policies = self.policies.iter().map(|(name, objects)| {
            let objects = template.print(objects)?;
            Ok(when(&format!("has {name:?} .Values.policies"), &objects))
        });
        policies.collect()
    }

    fn webhooks(&self) -> Result<String, String> {
        let mut template = HelmTemplate::default();
        let mut configurations = self.configurations.clone();
        for configuration in &mut configurations {
            let webhook = &mut configuration["webhooks"][0];
            webhook["failurePolicy"] = template.value("{{ .Values.webhooks.failurePolicy }}");
            // It is there if the namespaces are limited.
            let Some(selector) = webhook.get_mut("namespaceSelector") else {
                continue;
            };
            let selector = selector.take();
            if let Some(webhook) = webhook.as_object_mut() {
                webhook.remove("namespaceSelector");
            }
            let key = &selector["matchExpressions"][0]["key"];
            let lines = format!(
                "namespaceSelector:\n  matchExpressions:\n  - key: {}\n    operator: In\n    values: {{{{ toJson .Values.namespaces }}}}",
                key.as_str().unwrap_or_default()
            );
            template.add(webhook, &when(".Values.namespaces", &lines));
        }
        Ok(when(
            ".Values.webhooks.enabled",
            &template.print(&configurations)?,
        ))
    }

    fn notes(&self, mark: &str) -> String {
        let kinds = self.definitions.iter().map(|it| {
            let plural = it["spec"]["names"]["plural"].as_str();
            plural.unwrap_or_default().to_owned()
        });
        let kinds: Vec<_> = kinds.collect();
        let name = &self.installation.account.name;
        format!(
            "{{{{- /* {mark} */ -}}}}
{name} runs in the namespace {{{{ .Release.Namespace }}}}.

  kubectl --namespace {{{{ .Release.Namespace }}}} get pods
  kubectl get {} --all-namespaces

Delete the objects before the release: without the operator nothing removes their finalizers.
",
            kinds.join(",")
        )
    }

    fn secured(&self, secure: bool) -> Installation<'_> {
        Installation {
            secure,
            ..self.installation.clone()
        }
    }

    /// Whether the program can serve metrics over TLS.
    fn can_be_secure(&self) -> bool {
        !self.metrics_roles.is_empty()
    }

    /// Returns the schema of the values, with the defaults of this program.
    fn schema(&self) -> Result<Value, String> {
        let installation = &self.installation;
        let image = ImageName::of(installation.image);
        let mut deployment = installation.deployment();
        let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
        let defaults = [
            ("image.repository", image.repository.into()),
            ("image.tag", image.tag.into()),
            ("image.digest", image.digest.into()),
            ("replicas", installation.replicas.into()),
            ("shards", installation.shards.as_str().into()),
            ("namespaces", installation.namespaces.into()),
            (
                "serviceAccount.name",
                installation.account.name.as_str().into(),
            ),
            ("resources", container["resources"].take()),
            ("metrics.secure", installation.secure.into()),
            ("serviceMonitor.enabled", self.monitored.into()),
            ("networkPolicy.enabled", self.guarded.into()),
            ("policies", self.default_policies.clone().into()),
        ];
        let groups = [
            ("namespaces", self.limited_roles.is_some()),
            ("metrics", self.can_be_secure()),
            ("serviceMonitor", installation.serves),
            ("networkPolicy", installation.serves),
            ("policies", !self.policies.is_empty()),
            ("webhooks", !self.configurations.is_empty()),
        ];
        let absent = groups.into_iter().filter(|(_, is_there)| !is_there);
        let absent: Vec<_> = absent.map(|(group, _)| group).collect();
        let mut schema = values::schema(&defaults, &absent)?;
        if let Some(policies) = schema.pointer_mut("/properties/policies") {
            let names: Vec<_> = self.policies.iter().map(|(name, _)| name).collect();
            policies["items"] = json!({ "enum": names });
        }
        Ok(schema)
    }
}

/// Returns text that is there under a condition; nothing if the text is empty.
fn when(condition: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = text.trim_end();
    format!("{{{{- if {condition} }}}}\n{text}\n{{{{- end }}}}\n")
}
