//! The CRDs in use, from the cluster or from the file given to `crd --union`.

use std::io::Read;
use std::path::Path;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use okt_wire::scope::with_name;
use okt_wire::texts::api_message;
use serde_json::Value;

/// The CRDs of a file.
pub(crate) struct InUse {
    /// The name of the file, for messages.
    file: String,
    crds: Vec<CustomResourceDefinition>,
}

impl InUse {
    /// Reads the CRDs of a YAML or JSON file (`-` is standard input), also those in lists; ignores other documents.
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let (name, read) = if file == Path::new("-") {
            let read = std::io::stdin().read_to_string(&mut text).map(drop);
            ("the standard input".to_owned(), read)
        } else {
            let read = std::fs::read_to_string(file).map(|read| text = read);
            (file.display().to_string(), read)
        };
        read.map_err(|error| format!("cannot read {name}: {error}"))?;
        Self::parse(name, &text)
    }

    fn parse(file: String, text: &str) -> Result<Self, String> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text)
            .map_err(|error| format!("cannot read {file} as YAML: {error}"))?;
        let mut crds = Vec::new();
        for document in documents.into_iter().flat_map(items) {
            if document["kind"] == "CustomResourceDefinition" {
                let name = document["metadata"]["name"].clone();
                let crd = serde_json::from_value(document)
                    .map_err(|error| format!("cannot read the CRD {name} of {file}: {error}"))?;
                crds.push(crd);
            }
        }
        if crds.is_empty() {
            return Err(format!(
                "{file} holds no CustomResourceDefinition; give it what `crd` of the operator in use prints, or `kubectl get crd <name> -o yaml`"
            ));
        }
        Ok(Self { file, crds })
    }

    /// Returns the CRD of each of these names, if the file holds it.
    ///
    /// A new kind has none. If the file holds none of the names, it is the wrong file and an error.
    pub(crate) fn of(
        &self,
        names: &[&str],
    ) -> Result<Vec<Option<&CustomResourceDefinition>>, String> {
        let name_of =
            |crd: &CustomResourceDefinition| crd.metadata.name.clone().unwrap_or_default();
        let find = |name: &&str| self.crds.iter().find(|crd| name_of(crd) == *name);
        let found: Vec<_> = names.iter().map(find).collect();
        if found.iter().all(Option::is_none) {
            let held: Vec<_> = self.crds.iter().map(name_of).collect();
            return Err(format!(
                "{} holds no CRD {}; it holds {}",
                self.file,
                names.join(" or "),
                held.join(", ")
            ));
        }
        for (name, found) in names.iter().zip(&found) {
            if found.is_none() {
                eprintln!("{} holds no CRD {name}: it is taken to be new", self.file);
            }
        }
        Ok(found)
    }
}

/// Returns the definition of this name that the cluster has, if there is one.
///
/// Boxed, so that everything in it is compiled here, and not once more for each application.
pub(crate) fn in_cluster<'a>(
    client: &'a Client,
    name: &'a str,
) -> BoxFuture<'a, Result<Option<CustomResourceDefinition>, String>> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    async move {
        let found = definitions.list(&with_name(name)).await.map_err(|error| {
            format!(
                "cannot read the customresourcedefinition {name}: {}",
                api_message(&error)
            )
        })?;
        Ok(found.items.into_iter().next())
    }
    .boxed()
}

/// Returns the objects of a document: itself, or the items of a list (`kubectl get crd -o yaml` prints one).
fn items(mut document: Value) -> Vec<Value> {
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(_) | None => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_not_an_object_holds_no_crd() {
        for text in ["hello", "7", "[]", "- a\n- b\n", "items: 5\n", ""] {
            let parsed = InUse::parse("a.yaml".to_owned(), text).map(drop);
            let error = parsed.expect_err("there is none");
            assert!(
                error.contains("holds no CustomResourceDefinition"),
                "{error}"
            );
        }
    }
}
