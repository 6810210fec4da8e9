//! The source files of crates: those that Cargo names, and the modules that each leads to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use okt_syntax::source::{Cfg, FileModule, Mistake, Source, is_version};
use serde_json::Value;

/// The crates to read.
#[derive(Args)]
pub(crate) struct Crates {
    /// The root file of a crate (e.g. src/main.rs), whose modules are read too [default: every crate of the package in
    /// this directory]
    #[arg(value_name = "FILE")]
    roots: Vec<PathBuf>,
    /// Features that are on, besides `default`; several with commas or spaces.
    #[arg(long, short = 'F', value_name = "FEATURES")]
    features: Vec<String>,
    /// All features are on.
    #[arg(long)]
    all_features: bool,
    /// The feature `default` is off.
    #[arg(long)]
    no_default_features: bool,
}

/// A source file.
pub(crate) struct File {
    /// The path, as it is printed.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The version of a kind whose module it is, or is in (e.g. `v1alpha1`).
    pub(crate) version: Option<String>,
    /// The parsed text; none if it is not Rust.
    pub(crate) source: Option<Source>,
    /// Why it is not Rust, the modules without a file, and the mistakes of its graphs.
    pub(crate) mistakes: Vec<Mistake>,
}

impl Crates {
    /// The crate of one root file, with its default features.
    pub(crate) fn of(root: &Path) -> Self {
        Self {
            roots: [root.to_owned()].into(),
            features: Vec::new(),
            all_features: false,
            no_default_features: false,
        }
    }

    /// Reads every file, each once, and returns them.
    pub(crate) fn read(&self) -> Result<Vec<File>, String> {
        let (roots, package) = match self.roots.first() {
            None => {
                let package = package(None)?;
                (roots(&package), Some(package))
            }
            // A file of no package has any feature.
            Some(root) if !self.features.is_empty() => {
                (self.roots.clone(), package(root.parent()).ok())
            }
            Some(_) => (self.roots.clone(), None),
        };
        if let Some(package) = &package {
            self.check_features(package)?;
        }
        read_all(roots, &self.cfg(package))
    }

    /// Returns the features that the user names.
    fn wanted(&self) -> impl Iterator<Item = String> {
        let names = self.features.iter();
        let names = names.flat_map(|it| it.split([',', ' ']));
        names.filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// Refuses features that the package does not have: without one, a graph would seem to have no mistakes.
    fn check_features(&self, package: &Value) -> Result<(), String> {
        let declared = &package["features"];
        match self.wanted().find(|name| declared.get(name).is_none()) {
            None => Ok(()),
            Some(name) => Err(format!(
                "the package {} has no feature `{name}`",
                package["name"].as_str().unwrap_or_default()
            )),
        }
    }

    /// Parses the text of a file of these crates, as it is to become.
    pub(crate) fn parse(&self, text: &str) -> Result<Source, Box<Mistake>> {
        let is_named = !self.roots.is_empty();
        let package = if is_named { None } else { package(None).ok() };
        Source::parse(text, &self.cfg(package))
    }

    /// Returns the configuration of a build on this machine; Cargo and rustc are asked only where a `#[cfg]` needs them.
    fn cfg(&self, package: Option<Value>) -> Cfg {
        let root = self.roots.first().cloned();
        let (mut wanted, all) = (self.wanted().collect::<Vec<_>>(), self.all_features);
        if !self.no_default_features {
            wanted.push("default".to_owned());
        }
        Cfg::lazy(move || {
            let package = match (&package, &root) {
                (Some(package), _) => Some(package.clone()),
                (None, Some(root)) => self::package(root.parent()).ok(),
                (None, None) => None,
            };
            let declared = package.as_ref().map(|it| &it["features"]);
            let mut values = compiler();
            let features = features(declared.unwrap_or(&Value::Null), &wanted, all);
            values.extend(features.iter().map(|name| format!("feature=\"{name}\"")));
            values
        })
    }
}

/// Reads files and the modules that they declare, each once.
fn read_all(roots: Vec<PathBuf>, cfg: &Cfg) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    let mut unread = roots.len();
    let mut seen = BTreeSet::new();
    let mut queue: VecDeque<(PathBuf, PathBuf, Option<String>)> = roots
        .into_iter()
        .map(|root| (root.clone(), folder(root), None))
        .collect();
    while let Some((path, folder, version)) = queue.pop_front() {
        let is_root = unread > 0;
        unread = unread.saturating_sub(1);
        let known = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(known) {
            continue;
        }
        let mut mistakes = Vec::new();
        let text = match crate::files::read(&path) {
            Ok(text) => text,
            Err(error) if is_root => {
                return Err(format!("cannot read {}: {error}", path.display()));
            }
            Err(error) => {
                mistakes.push(Mistake::of_file(&error));
                String::new()
            }
        };
        let parsed = Source::parse(&text, cfg);
        let source = parsed.map_err(|why| mistakes.push(*why)).ok();
        for module in source.iter().flat_map(Source::modules) {
            match file_of(&path, &folder, module) {
                Some((file, folder)) => {
                    let own = module.path.iter().rev().find(|name| is_version(name));
                    queue.push_back((file, folder, own.or(version.as_ref()).cloned()));
                }
                None => mistakes.push(module.missing()),
            }
        }
        mistakes.extend(source.iter().flat_map(Source::mistakes).cloned());
        files.push(File {
            path: path.display().to_string(),
            text,
            version,
            source,
            mistakes,
        });
    }
    Ok(files)
}

/// Returns the file of a module, and the folder of its own modules.
fn file_of(path: &Path, folder: &Path, module: &FileModule) -> Option<(PathBuf, PathBuf)> {
    let (name, around) = module.path.split_last()?;
    let within: PathBuf = folder.join(around.iter().collect::<PathBuf>());
    if let Some(file) = &module.file {
        // A path is relative to its file, within inline modules to the folder of these.
        let base = match around {
            [] => path.parent().map(Path::to_owned).unwrap_or_default(),
            _ => within,
        };
        let file = base.join(file);
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        return file.is_file().then_some((file, folder));
    }
    let own = within.join(name);
    let candidates = [within.join(format!("{name}.rs")), own.join("mod.rs")];
    let file = candidates.into_iter().find(|file| file.is_file())?;
    Some((file, own))
}

/// Returns the folder of the modules of a file that somebody named: beside the root of a crate, else in a folder of the
/// same name.
fn folder(mut file: PathBuf) -> PathBuf {
    let own = file.with_extension("");
    file.pop();
    let is_root = ["main", "lib", "mod"]
        .iter()
        .any(|name| own.ends_with(name));
    if own.is_dir() && !is_root { own } else { file }
}

/// Returns the metadata of the package of a folder, by default of this one.
fn package(folder: Option<&Path>) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version=1", "--offline"]);
    if let Some(folder) = folder.filter(|it| !it.as_os_str().is_empty()) {
        command.current_dir(folder);
    }
    let output = command
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(error.trim().trim_start_matches("error: ").to_owned());
    }
    let all: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let here = folder.map_or(here.clone(), |folder| here.join(folder));
    let packages = all["packages"].as_array().cloned().unwrap_or_default();
    let of = |package: &Value| {
        let manifest = PathBuf::from(package["manifest_path"].as_str()?);
        let folder = manifest.parent()?.to_owned();
        here.starts_with(&folder)
            .then_some(folder.components().count())
    };
    let nearest = packages
        .into_iter()
        .filter(|it| of(it).is_some())
        .max_by_key(of);
    nearest.ok_or_else(|| {
        "this directory is in no package; name the root file of a crate, or go into a package"
            .to_owned()
    })
}

/// Returns the root files of a package, relative to this directory where they are below it.
fn roots(package: &Value) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let targets = package["targets"].as_array().cloned().unwrap_or_default();
    let paths = targets
        .iter()
        .filter_map(|target| target["src_path"].as_str());
    paths
        .map(|path| {
            Path::new(path)
                .strip_prefix(&here)
                .map_or_else(|_| path.into(), Path::to_owned)
        })
        .collect()
}

/// Returns the features that are on: those that are wanted, and what they turn on.
fn features(declared: &Value, wanted: &[String], all: bool) -> BTreeSet<String> {
    let table = declared.as_object().into_iter().flatten();
    let declared: BTreeMap<&str, Vec<&str>> = table
        .map(|(name, on)| {
            let on = on.as_array().into_iter().flatten();
            (name.as_str(), on.filter_map(Value::as_str).collect())
        })
        .collect();
    let mut queue: Vec<&str> = wanted.iter().map(String::as_str).collect();
    if all {
        queue.extend(declared.keys());
    }
    let mut on = BTreeSet::new();
    while let Some(name) = queue.pop() {
        if on.insert(name.to_owned()) {
            queue.extend(declared.get(name).into_iter().flatten());
        }
    }
    on
}

/// Returns the configuration of rustc for this machine; empty if there is no rustc.
fn compiler() -> Vec<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(["--print", "cfg"]).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .map(str::to_owned)
        .collect()
}
