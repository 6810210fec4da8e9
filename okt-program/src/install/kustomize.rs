//! The manifests of a program for kustomize: a base, and overlays to begin with.

use crate::install::generated::{GeneratedFile, Writer};
use crate::install::image::ImageName;
use crate::install::manifests::Installation;

/// Returns the files: a base of these groups of documents, each a name and its YAML, and two overlays.
pub(crate) fn files(
    writer: &Writer,
    installation: &Installation<'_>,
    groups: &[(&str, String)],
) -> Vec<GeneratedFile> {
    let mut resources = String::new();
    let mut files = Vec::new();
    for (group, text) in groups {
        if !text.is_empty() {
            resources.push_str("- ");
            resources.push_str(group);
            resources.push_str(".yaml\n");
        }
        files.push(writer.commented(&format!("base/{group}.yaml"), text));
    }
    let kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    let base = format!("{kustomization}resources:\n{resources}");
    files.push(writer.commented("base/kustomization.yaml", &base));
    let repository = ImageName::of(installation.image).repository;
    // Targets, so that an overlay fits whatever base is written later.
    let development = format!(
        "{kustomization}resources:
- ../../base
images:
- name: {repository:?}
  newTag: dev
patches:
- target:
    kind: Deployment
  patch: |
    - op: replace
      path: /spec/replicas
      value: 1
# It would keep the node of the only replica from being drained.
- target:
    kind: PodDisruptionBudget
  patch: |
    $patch: delete
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata:
      name: any
"
    );
    let production = format!(
        "{kustomization}resources:
- ../../base
patches:
- target:
    kind: Deployment
  patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: any
    spec:
      template:
        spec:
          containers:
          - name: operator
            resources:
              requests:
                cpu: 100m
                memory: 128Mi
              limits:
                memory: 512Mi
"
    );
    for (overlay, text) in [("development", development), ("production", production)] {
        let path = format!("overlays/{overlay}/kustomization.yaml");
        files.push(GeneratedFile::beginning(&path, text));
    }
    files
}
