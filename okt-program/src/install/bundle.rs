//! The manifests of a program as a bundle for the Operator Lifecycle Manager (OLM).
//!
//! OLM makes the account, its roles, the Deployment and the webhooks by itself, from the `ClusterServiceVersion`.
//! <https://olm.operatorframework.io/docs/tasks/creating-operator-manifests/>

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::{Value, json};

use super::generated::{GeneratedFile, Writer, yaml};
use super::image::ImageName;
use super::manifests::Installation;
use super::webhooks::KindWebhooks;

/// The file with what people write about the operator.
const BASE: &str = "base.yaml";

/// Where OLM puts the certificate of the webhooks.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";

/// The oldest Kubernetes whose types OKT has.
const OLDEST: &str = "1.33.0";

/// What a bundle is made of.
pub(crate) struct Bundle<'a> {
    pub(crate) installation: Installation<'a>,
    pub(crate) definitions: Vec<Value>,
    /// All roles with their bindings to the account of the installation, for the whole cluster.
    pub(crate) roles: Vec<Value>,
    pub(crate) webhooks: Vec<KindWebhooks>,
    /// Whether there is a `ServiceMonitor`.
    pub(crate) monitored: bool,
}

impl Bundle<'_> {
    /// Returns the files, with what people have written about the operator in the directory.
    ///
    /// # Errors
    ///
    /// If that is not YAML, or an object cannot be written as YAML.
    pub(crate) fn files(
        &self,
        writer: &Writer,
        directory: &Path,
    ) -> Result<Vec<GeneratedFile>, String> {
        let name = &self.installation.account.name;
        let mut files = Vec::new();
        for (name, object) in self.objects(&directory.join(BASE))? {
            files.push(writer.commented(&format!("manifests/{name}.yaml"), &yaml(&object)?));
        }
        let annotations = [
            ("mediatype.v1", "registry+v1"),
            ("manifests.v1", "manifests/"),
            ("metadata.v1", "metadata/"),
            ("package.v1", name),
            ("channels.v1", "stable"),
            ("channel.default.v1", "stable"),
        ];
        let annotations = annotations.map(|(key, value)| {
            (
                format!("operators.operatorframework.io.bundle.{key}"),
                Value::from(value),
            )
        });
        let labels = annotations
            .iter()
            .map(|(key, value)| format!("LABEL {key}={value}\n"));
        let labels: String = labels.collect();
        let annotations: BTreeMap<_, _> = annotations.into_iter().collect();
        let metadata = yaml(&json!({ "annotations": annotations }))?;
        files.push(writer.commented("metadata/annotations.yaml", &metadata));
        let image =
            format!("FROM scratch\n{labels}COPY manifests /manifests/\nCOPY metadata /metadata/\n");
        files.push(writer.commented("bundle.Dockerfile", &image));
        files.push(GeneratedFile::beginning(BASE, beginning(name)));
        Ok(files)
    }

    /// Returns all objects with the names of their files; `base` is the file with what people have written.
    fn objects(&self, base: &Path) -> Result<Vec<(String, Value)>, String> {
        let name = &self.installation.account.name;
        let mut csv = self.service_version();
        match fs::read_to_string(base) {
            Ok(text) => {
                let theirs: Value = serde_saphyr::from_str(&text)
                    .map_err(|error| format!("cannot read {}: {error}", base.display()))?;
                if !describes(&theirs) {
                    return Err(format!(
                        "{} has `metadata` and `spec` of a ClusterServiceVersion, each a map, and nothing else",
                        base.display()
                    ));
                }
                merge(&mut csv, &theirs);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("cannot read {}: {error}", base.display())),
        }
        let mut objects = vec![(format!("{name}.clusterserviceversion"), csv)];
        objects.extend(self.definitions.iter().map(|it| (of_name(it), it.clone())));
        let bound = self.bound_roles();
        let is_for_people =
            |role: &&Value| role["kind"] == "ClusterRole" && !bound.contains(&key(role));
        let for_people = self.roles.iter().filter(is_for_people);
        objects.extend(for_people.map(|it| (of_name(it), it.clone())));
        let installation = &self.installation;
        let around = [
            installation.metrics_service(),
            installation.service_monitor().filter(|_| self.monitored),
            installation.disruption_budget(),
        ];
        for mut object in around.into_iter().flatten() {
            // OLM chooses it.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
            objects.push((of_name(&object), object));
        }
        Ok(objects)
    }

    /// Returns the description of this version, which OLM installs.
    fn service_version(&self) -> Value {
        let installation = &self.installation;
        let name = &installation.account.name;
        let version = ImageName::of(installation.image).version();
        let mut deployment = installation.deployment()["spec"].take();
        let container = &mut deployment["template"]["spec"]["containers"][0];
        if !self.webhooks.is_empty()
            && let Some(arguments) = container["args"].as_array_mut()
        {
            arguments.push(format!("--webhook-cert-path={CERTIFICATES}").into());
        }
        let (cluster, own) = self.permissions();
        let permissions =
            |rules: Vec<Value>| json!([{ "serviceAccountName": name, "rules": rules }]);
        let modes = [
            "OwnNamespace",
            "SingleNamespace",
            "MultiNamespace",
            "AllNamespaces",
        ];
        let modes = modes.map(|name| json!({ "type": name, "supported": name == "AllNamespaces" }));
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {
                // As a name of Kubernetes.
                "name": format!("{name}.v{version}").to_lowercase().replace('+', "-"),
                // OLM demands one.
                "namespace": "placeholder",
                "annotations": { "containerImage": installation.image },
            },
            "spec": {
                "displayName": name,
                "description": format!("The operator {name}."),
                "version": version,
                "minKubeVersion": OLDEST,
                "provider": { "name": name },
                "installModes": modes,
                "customresourcedefinitions": { "owned": self.owned() },
                "install": {
                    "strategy": "deployment",
                    "spec": {
                        "clusterPermissions": permissions(cluster),
                        "permissions": permissions(own),
                        "deployments": [{ "name": name, "spec": deployment }],
                    },
                },
                "webhookdefinitions": self.webhook_definitions(),
            },
        })
    }

    /// Returns the kinds in all versions, as the catalog shows them.
    fn owned(&self) -> Vec<Value> {
        let owned = self.definitions.iter().flat_map(|definition| {
            let names = &definition["spec"]["names"];
            let versions = definition["spec"]["versions"].as_array();
            versions.into_iter().flatten().map(move |version| {
                let about = &version["schema"]["openAPIV3Schema"]["description"];
                json!({
                    "name": definition["metadata"]["name"],
                    "version": version["name"],
                    "kind": names["kind"],
                    "displayName": names["kind"],
                    "description": about.as_str().unwrap_or_default(),
                })
            })
        });
        owned.collect()
    }

    /// Returns the rules for the whole cluster, and those for the namespace of the operator.
    fn permissions(&self) -> (Vec<Value>, Vec<Value>) {
        let bound = self.bound_roles();
        let (mut cluster, mut own) = (Vec::new(), Vec::new());
        for role in &self.roles {
            let is_own =
                role["metadata"]["namespace"] == self.installation.account.namespace.as_str();
            if bound.contains(&key(role)) {
                let rules = role["rules"].as_array().into_iter().flatten();
                // A role in another namespace is one in all: OLM makes none there.
                let to = if is_own { &mut own } else { &mut cluster };
                to.extend(rules.cloned());
            }
        }
        (cluster, own)
    }

    /// Returns the kinds, names and namespaces of the roles that are bound to the account.
    fn bound_roles(&self) -> BTreeSet<[String; 3]> {
        let bindings = self.roles.iter().filter(|it| it.get("roleRef").is_some());
        let bound = bindings.map(|it| {
            let [_, name, namespace] = key(it);
            let kind = it["roleRef"]["kind"].as_str().unwrap_or_default();
            [kind.to_owned(), name, namespace]
        });
        bound.collect()
    }

    fn webhook_definitions(&self) -> Vec<Value> {
        let name = &self.installation.account.name;
        let mut definitions = Vec::new();
        for webhooks in &self.webhooks {
            let common = json!({
                "deploymentName": name,
                "containerPort": 443,
                "targetPort": super::webhooks::WEBHOOKS_PORT,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            });
            if webhooks.converts {
                let mut conversion = common.clone();
                conversion["type"] = "ConversionWebhook".into();
                conversion["generateName"] = format!("convert.{}", webhooks.crd).into();
                conversion["webhookPath"] = format!("/convert/{}", webhooks.crd).into();
                conversion["conversionCRDs"] = json!([webhooks.crd]);
                definitions.push(conversion);
            }
            let Some(service) = &self.installation.webhooks else {
                continue;
            };
            for configuration in webhooks.configurations(service, &[]) {
                let kind = configuration["kind"].as_str().unwrap_or_default();
                let webhook = &configuration["webhooks"][0];
                let mut admission = common.clone();
                admission["type"] = kind
                    .replace("WebhookConfiguration", "AdmissionWebhook")
                    .into();
                admission["generateName"] = webhook["name"].clone();
                admission["webhookPath"] = webhook["clientConfig"]["service"]["path"].clone();
                for field in [
                    "rules",
                    "failurePolicy",
                    "matchPolicy",
                    "timeoutSeconds",
                    "reinvocationPolicy",
                ] {
                    if let Some(value) = webhook.get(field) {
                        admission[field] = value.clone();
                    }
                }
                definitions.push(admission);
            }
        }
        definitions
    }
}

/// Returns the kind, the name and the namespace of a role or of a binding.
fn key(role: &Value) -> [String; 3] {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &role["metadata"];
    [
        text(&role["kind"]),
        text(&metadata["name"]),
        text(&metadata["namespace"]),
    ]
}

/// Returns the name of the file of an object.
fn of_name(object: &Value) -> String {
    let [kind, name, _] = key(object);
    format!("{}_{}", name.replace(':', "_"), kind.to_lowercase())
}

/// Returns whether a value has the form of what people write about an operator.
fn describes(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(parts) => parts.iter().all(|(name, part)| {
            matches!(&**name, "metadata" | "spec") && (part.is_object() || part.is_null())
        }),
        _ => false,
    }
}

/// Puts the values of another object over those of an object.
fn merge(object: &mut Value, over: &Value) {
    let Value::Object(over) = over else {
        if !over.is_null() {
            object.clone_from(over);
        }
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in over {
        merge(&mut object[name.as_str()], value);
    }
}

/// Returns what people may write about the operator.
fn beginning(name: &str) -> String {
    format!(
        "# What the catalog shows of {name}: it is merged into its ClusterServiceVersion each time that the bundle is written.
metadata:
  annotations:
    capabilities: Basic Install
    # An example of each kind, as a list in JSON.
    alm-examples: '[]'
spec:
  displayName: {name}
  description: The operator {name}.
  # provider:
  #   name: You
  # maintainers:
  # - name: You
  #   email: you@example.com
  # links:
  # - name: Source
  #   url: https://example.com
  # icon:
  # - mediatype: image/svg+xml
  #   base64data: ..
"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{describes, merge};

    #[test]
    fn what_people_write_is_about_the_operator_and_destroys_no_object() {
        for whole in [
            json!(null),
            json!({}),
            json!({ "metadata": null, "spec": { "a": 1 } }),
        ] {
            assert!(describes(&whole), "{whole}");
        }
        for broken in [
            json!(["a"]),
            json!("foo"),
            json!({ "spec": "foo" }),
            json!({ "metadata": 3 }),
            json!({ "kind": "Foo" }),
        ] {
            assert!(!describes(&broken), "{broken}");
        }
    }

    #[test]
    fn what_people_write_stands_over_what_is_generated_whatever_it_is() {
        let mut object = json!({ "spec": { "version": "1", "icon": [1], "links": { "a": 1 } } });
        let theirs = json!({ "spec": { "version": { "b": 2 }, "icon": [], "links": { "c": 3 }, "new": true, "none": null } });
        merge(&mut object, &theirs);
        let wanted = json!({
            "spec": { "version": { "b": 2 }, "icon": [], "links": { "a": 1, "c": 3 }, "new": true, "none": null },
        });
        assert_eq!(object, wanted);
        merge(&mut object, &json!(null));
        assert_eq!(object, wanted);
    }
}
