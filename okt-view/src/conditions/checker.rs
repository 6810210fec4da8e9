//! [`Checker`]: checks a stream of object versions, from a watch or from YAML.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Context, Violation, check, lint};

/// Checks a stream of objects, each against its previous version.
///
/// # Examples
///
/// ```
/// use okt_view::conditions::{Checker, Context};
///
/// let mut checker = Checker::new(Context::new());
/// let yaml = "
/// apiVersion: demo.okt.dev/v1
/// kind: Kettle
/// metadata: { name: red, generation: 2 }
/// status:
///   observedGeneration: 2
///   conditions:
///   - { type: Ready, status: 'False', reason: Cold, message: '', lastTransitionTime: '2026-11-21T09:00:00Z' }
/// ";
/// let verdict = checker.judge_yaml(yaml)?;
/// assert_eq!(verdict.to_string(), "Kettle red
///   D05 Ready: is False with neither Reconciling nor Stalled
/// 1 object, 1 broken rule
/// ");
/// assert_eq!(verdict.exit_code(), 1);
/// # Ok::<(), okt_view::conditions::NotRead>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Checker {
    context: Context,
    before: BTreeMap<String, Value>,
}

impl Checker {
    /// Creates a checker that has seen no objects.
    pub fn new(context: Context) -> Self {
        Self {
            context,
            before: BTreeMap::new(),
        }
    }

    /// Checks the next version of an object; of a CRD it checks the schema.
    pub fn judge(&mut self, object: &Value) -> Vec<Violation> {
        let before = self.before.insert(identity(object), object.clone());
        if object["kind"] == "CustomResourceDefinition" {
            return lint(before.as_ref(), object, &self.context);
        }
        check(before.as_ref(), object, &self.context)
    }

    /// Checks the objects of a YAML text in their order, e.g. the output of `kubectl get -o yaml`,
    /// with or without `--watch`.
    ///
    /// # Errors
    ///
    /// The text is no YAML, or contains a document that is no object; a retry does not help.
    pub fn judge_yaml(&mut self, yaml: &str) -> Result<Verdict, NotRead> {
        let objects = read(yaml)?;
        let mut verdict = Verdict::default();
        for object in &objects {
            verdict.objects += 1;
            let found = self.judge(object);
            if !found.is_empty() {
                verdict.found.push((name(object), found));
            }
        }
        Ok(verdict)
    }
}

/// Returns the identity of an object.
fn identity(object: &Value) -> String {
    match object["metadata"]["uid"].as_str() {
        Some(uid) => uid.to_owned(),
        None => format!("{} {}", object["apiVersion"], name(object)),
    }
}

/// Returns the kind, namespace and name of an object, for people.
fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
    match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// The violations found in a text.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    objects: usize,
    found: Vec<(String, Vec<Violation>)>,
}

impl Verdict {
    /// Returns the violations, each with the kind and the name of its object.
    pub fn violations(&self) -> impl Iterator<Item = (&str, &Violation)> {
        let found = self.found.iter();
        found.flat_map(|(name, found)| found.iter().map(|violation| (name.as_str(), violation)))
    }

    /// Returns how many versions of objects were checked.
    pub fn objects(&self) -> usize {
        self.objects
    }

    /// Returns the exit code for a command line: 0 if no rule is broken, 1 if one is.
    ///
    /// Use 2 for a text that cannot be read, for which there is no verdict.
    pub fn exit_code(&self) -> u8 {
        u8::from(self.violations().next().is_some())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, found) in &self.found {
            writeln!(f, "{name}")?;
            for violation in found {
                writeln!(f, "  {violation}")?;
            }
        }
        let count = |number: usize, what: &str| match number {
            1 => format!("1 {what}"),
            many => format!("{many} {what}s"),
        };
        let objects = count(self.objects, "object");
        writeln!(
            f,
            "{objects}, {}",
            count(self.violations().count(), "broken rule")
        )
    }
}

/// Reads the objects of a YAML (or JSON) text: of all its documents, and of the lists in them.
///
/// # Errors
///
/// The text is no YAML, or contains a document that is no object; a retry does not help.
pub fn read(yaml: &str) -> Result<Vec<Value>, NotRead> {
    let documents: Vec<Value> = documents(yaml)?;
    let mut objects = Vec::new();
    for document in documents {
        flatten(document, &mut objects)?;
    }
    Ok(objects)
}

fn documents<T: DeserializeOwned>(yaml: &str) -> Result<Vec<T>, NotRead> {
    serde_saphyr::from_multiple(yaml).map_err(|error| NotRead(error.to_string()))
}

fn flatten(document: Value, objects: &mut Vec<Value>) -> Result<(), NotRead> {
    let kind = document["kind"].as_str().unwrap_or_default();
    if kind.is_empty() || document["metadata"].is_null() {
        let excerpt: String = document.to_string().chars().take(60).collect();
        return Err(NotRead(format!("no object of Kubernetes: {excerpt}")));
    }
    match document["items"].as_array() {
        Some(items) if kind.ends_with("List") => {
            for item in items {
                flatten(item.clone(), objects)?;
            }
        }
        _ => objects.push(document),
    }
    Ok(())
}

/// The error for a text that is not YAML or contains something other than objects.
#[derive(Debug)]
pub struct NotRead(String);

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NotRead {}
