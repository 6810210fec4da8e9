//! `cargo okt add`: a kind or a state in a project that exists. Everything is checked before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use okt_syntax::source::{identifier, parse};
use proc_macro2::TokenTree;
use syn::visit::Visit;
use syn::{Attribute, LitStr, Meta};

use crate::crates::{Crates, File};
use crate::edit::{Insertions, ItemPlace, NewState, StateShape, with_kind};
use crate::files::write_all;
use crate::kind::ProjectKind;
use crate::name::{ApiGroup, KindName};
use crate::output::print;
use crate::template::{CRATES, FormOptions, MAIN, MANIFEST_PATH};

/// The usual name of a lock file.
const LOCK: &str = "lifecycle.lock";

/// Add a kind to this program, or a state to a graph.
#[derive(Subcommand)]
pub(crate) enum Add {
    Kind(AddKind),
    State(AddState),
}

/// Add another kind to the program in this directory: its resource, its operator and its tests.
#[derive(Args)]
pub(crate) struct AddKind {
    /// The kind, e.g. `Order`.
    name: KindName,
    /// Its API group [default: that of the kinds of this program]
    #[arg(long)]
    group: Option<ApiGroup>,
    #[command(flatten)]
    form: FormOptions,
}

/// Add a state to a graph, with its edges and its handler. Comments and everything else stay as they are.
#[derive(Args)]
pub(crate) struct AddState {
    /// The state, e.g. `Suspended`.
    name: String,
    /// The states that lead to it.
    #[arg(long, required = true, value_delimiter = ',', value_name = "STATES")]
    from: Vec<String>,
    /// The states that it leads to; the last is where an object goes by default.
    #[arg(long, required = true, value_delimiter = ',', value_name = "STATES")]
    to: Vec<String>,
    /// The enum, if several graphs have these states: by its name, or with its module (e.g. `v1::TentState`).
    #[arg(long, value_name = "ENUM")]
    graph: Option<String>,
    /// What the application does in this state, in a sentence.
    #[arg(long, value_name = "TEXT")]
    doc: Option<String>,
    #[command(flatten)]
    shape: ShapeOptions,
    /// Features that are on, and the crate.
    #[command(flatten)]
    crates: Crates,
}

#[derive(Args)]
#[group(multiple = false)]
struct ShapeOptions {
    /// Objects may stay in it.
    #[arg(long)]
    rest: bool,
    /// Objects stay in it until a person asks for something; it has no work.
    #[arg(long)]
    hold: bool,
    /// A spec may ask for it once; then the object returns.
    #[arg(long)]
    visit: bool,
}

impl ShapeOptions {
    fn shape(&self) -> StateShape {
        match self {
            Self { rest: true, .. } => StateShape::Rest,
            Self { hold: true, .. } => StateShape::Hold,
            Self { visit: true, .. } => StateShape::Visit,
            Self { .. } => StateShape::Passing,
        }
    }
}

impl Add {
    pub(crate) fn run(self) -> Result<(), String> {
        let report = match self {
            Self::Kind(kind) => kind.run(),
            Self::State(state) => state.run(),
        };
        let report = report.map_err(|why| format!("{why}\nNothing was changed."))?;
        print(&report)
    }
}

impl AddKind {
    fn run(self) -> Result<String, String> {
        let main = Path::new(MAIN);
        let old = fs::read_to_string(main).map_err(|error| {
            format!("cannot read {MAIN}: {error}; go into a project of `cargo okt new`")
        })?;
        parse(&old).map_err(|mistake| format!("{MAIN}: {}", mistake.text()))?;
        let group = match self.group {
            Some(group) => group,
            None => group_of(&Crates::of(main).read()?)?,
        };
        let kind = ProjectKind {
            name: self.name,
            group,
            form: self.form.form(),
        };
        if let Some(feature) = kind.form.feature() {
            needs(feature)?;
        }
        let module = kind.module();
        let new = with_kind(&old, &module).map_err(|why| format!("{MAIN}: {why}"))?;
        let files: Vec<(PathBuf, String)> = kind
            .files()
            .into_iter()
            .map(|(path, text)| (path.into(), text))
            .collect();
        let folder = Path::new("src").join(&module);
        let paths = files.iter().map(|(path, _)| path);
        let mut there = paths.chain([&folder]).filter(|it| it.exists());
        if let Some(path) = there.next() {
            return Err(format!("{} is there already", path.display()));
        }
        write_all(files.iter().chain(&[(main.to_owned(), new)]))?;
        let paths = listed(&files, "\n  ");
        let (name, group) = (&kind.name, &kind.group);
        Ok(format!(
            "Made {name}, a kind in the group {group}:
  {paths}

{MAIN} names it. `cargo run -- crd` prints its definition too.
"
        ))
    }
}

/// Refuses a project whose dependencies on OKT lack a feature.
fn needs(feature: &str) -> Result<(), String> {
    let manifest = fs::read_to_string(MANIFEST_PATH)
        .map_err(|error| format!("cannot read {MANIFEST_PATH}: {error}"))?;
    let has_it = |name: &&str| {
        let mut lines = manifest.lines().map(str::trim_start);
        let feature = format!("\"{feature}\"");
        lines.any(|line| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '=', '.']) && rest.contains(&feature))
        })
    };
    if CRATES.iter().all(has_it) {
        return Ok(());
    }
    Err(format!(
        "this kind needs the feature `{feature}` of OKT; run
  cargo add okt --features {feature}
  cargo add --dev okt-testing --features {feature}
and then this command again."
    ))
}

fn listed(files: &[(PathBuf, String)], separator: &str) -> String {
    let paths = files.iter().map(|(path, _)| path.display().to_string());
    paths.collect::<Vec<_>>().join(separator)
}

/// Returns the API group of the first kind of a program.
fn group_of(files: &[File]) -> Result<ApiGroup, String> {
    let group = files.iter().find_map(|file| {
        let mut named = NamedGroup(None);
        named.visit_file(&parse(&file.text).ok()?);
        named.0
    });
    let group = group.ok_or("no kind of this program names a group: name one with `--group`")?;
    group.parse()
}

/// The group that the first attribute `kube` names.
struct NamedGroup(Option<String>);

impl Visit<'_> for NamedGroup {
    fn visit_attribute(&mut self, attribute: &Attribute) {
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        if self.0.is_some() || !list.path.is_ident("kube") {
            return;
        }
        let tokens: Vec<TokenTree> = list.tokens.clone().into_iter().collect();
        self.0 = tokens.windows(3).find_map(|of_three| match of_three {
            [
                TokenTree::Ident(key),
                TokenTree::Punct(_),
                TokenTree::Literal(value),
            ] if key == "group" => {
                let value = syn::parse_str::<LitStr>(&value.to_string()).ok()?;
                Some(value.value())
            }
            _ => None,
        });
    }
}

impl AddState {
    fn run(self) -> Result<String, String> {
        let files = self.crates.read()?;
        if let Some(file) = files.iter().find(|file| !file.mistakes.is_empty()) {
            return Err(format!(
                "{} has mistakes; `cargo okt check` lists them",
                file.path
            ));
        }
        let state = self.state()?;
        let graph = graph(&state, self.graph.as_deref(), &files)?;
        let mut insertions: BTreeMap<usize, Insertions> = BTreeMap::new();
        let in_graph = state.graph_edit(&graph.item, &graph.file.text)?;
        insertions.insert(graph.number, in_graph);
        let handlers = handlers(&graph, &files).filter(|_| state.has_handler());
        let in_handlers =
            handlers.and_then(|it| Some((it.number, state.handler_edit(&it.item, &it.file.text)?)));
        let has_handler = in_handlers.is_some();
        if let Some((number, in_handlers)) = in_handlers {
            insertions.entry(number).or_default().and(in_handlers);
        }
        let mut changed: Vec<(PathBuf, String)> = Vec::new();
        for (number, insertions) in insertions {
            let file = &files[number];
            let text = insertions.into(&file.text);
            self.crates.check(&file.path, &text)?;
            changed.push((file.path.clone().into(), text));
        }
        write_all(&changed)?;
        Ok(report(&state, &graph, &files, has_handler, &changed))
    }

    /// Returns the state to add, whose name and text Rust allows.
    fn state(&self) -> Result<NewState, String> {
        let name = &self.name;
        let begins = name.starts_with(|first: char| first.is_ascii_uppercase());
        if !begins || identifier(name).is_none() {
            return Err(format!(
                "`{name}` is no name of a state: write it in UpperCamelCase, e.g. `Suspended`"
            ));
        }
        let doc = self.doc.clone().unwrap_or_else(|| format!("`{name}`."));
        if doc.contains(|sign: char| sign.is_control() && !matches!(sign, '\n' | '\t')) {
            return Err("the text of `--doc` has a control character".to_owned());
        }
        Ok(NewState {
            doc,
            name: name.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            shape: self.shape.shape(),
        })
    }
}

/// Returns what has changed, and what is left to do.
fn report(
    state: &NewState,
    graph: &Located<'_>,
    files: &[File],
    has_handler: bool,
    changed: &[(PathBuf, String)],
) -> String {
    let (name, of) = (&state.name, &graph.item.name);
    let mut handlers = located(files, |text| NewState::handlers(of, text));
    let handler = match (state.has_handler(), has_handler) {
        (true, true) => " It has a handler, which does nothing yet.",
        (true, false) if handlers.next().is_some() => " `cargo check` says which handler it needs.",
        (true, false) => {
            " No code here handles the states of this graph: its work belongs where theirs is, e.g. in the file of the agent."
        }
        (false, _) => "",
    };
    let lock = Path::new(&graph.file.path).with_file_name(LOCK);
    let locked = if lock.exists() || Path::new(LOCK).exists() {
        ", and `OKT_LOCK=write cargo test` writes the lock file"
    } else {
        ""
    };
    format!(
        "{of} has the state {name}, in {}.{handler}
The last child of {} is still the default; a handler goes to {name} by its name.
{}`cargo check` names each `match` without an arm for it{locked}.
",
        listed(changed, " and "),
        state.from.join(", "),
        hint(state),
    )
}

/// Returns what is usual for a state of this shape, and nothing for most.
fn hint(state: &NewState) -> String {
    let name = &state.name;
    match state.shape {
        StateShape::Hold => format!(
            "An event usually leads to a holding state: write `#[trigger({name}, on_error(attempts = 5))]` for \
             `#[child({name})]` where it is one.\n"
        ),
        _ => String::new(),
    }
}

/// A graph, or an implementation of handlers, with its file.
struct Located<'f> {
    /// The number of the file.
    number: usize,
    file: &'f File,
    item: ItemPlace,
}

impl Located<'_> {
    /// Returns its path: the file, the inline modules and the name (e.g. `src::tents::v1::TentState`).
    fn path(&self) -> Vec<String> {
        let file = Path::new(&self.file.path).with_extension("");
        let folders = file.components().map(|it| it.as_os_str().to_string_lossy());
        let mut path: Vec<String> = folders.map(Into::into).collect();
        path.extend(self.item.modules.iter().cloned());
        path.push(self.item.name.clone());
        path
    }

    /// Returns whether it is called so: by its name, or by the end of its path.
    fn is_called(&self, name: &str) -> bool {
        let name: Vec<String> = name.split("::").map(str::to_owned).collect();
        self.path().ends_with(&name)
    }
}

fn located(
    files: &[File],
    find: impl Fn(&str) -> Vec<ItemPlace>,
) -> impl Iterator<Item = Located<'_>> {
    let files = files.iter().enumerate();
    files.flat_map(move |(number, file)| {
        let items = find(&file.text).into_iter();
        items.map(move |item| Located { number, file, item })
    })
}

/// Returns the graph that the state is added to.
fn graph<'f>(
    state: &NewState,
    wanted: Option<&str>,
    files: &'f [File],
) -> Result<Located<'f>, String> {
    let graphs = located(files, |text| state.graphs(text));
    let is_wanted = |graph: &Located<'_>| wanted.is_none_or(|name| graph.is_called(name));
    let mut graphs: Vec<Located<'f>> = graphs.filter(is_wanted).collect();
    if graphs.len() > 1 {
        let names: BTreeSet<&str> = graphs.iter().map(|it| it.item.name.as_str()).collect();
        // The name alone chooses none of several that have it.
        let parts = if names.len() == graphs.len() { 1 } else { 2 };
        let shown = graphs.iter().map(|graph| {
            let path = graph.path();
            path[path.len().saturating_sub(parts)..].join("::")
        });
        let shown: BTreeSet<String> = shown.collect();
        if let Some(only) = shown.first().filter(|_| shown.len() == 1) {
            return Err(format!(
                "{only} is declared several times, e.g. under `#[cfg]`: write the state by hand"
            ));
        }
        return Err(format!(
            "several graphs have these states; choose one with `--graph`: {}",
            shown.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    graphs.pop().ok_or_else(|| {
        let states = state.from.iter().chain(&state.to);
        let is_known = |name: &String| {
            let of_it = |text: &str| NewState::graphs_with(text, &[name]);
            located(files, of_it).any(|graph| is_wanted(&graph))
        };
        let unknown: BTreeSet<&str> = states
            .clone()
            .filter(|name| **name != state.name && !is_known(name))
            .map(String::as_str)
            .collect();
        let named = if unknown.is_empty() {
            states.map(String::as_str).collect()
        } else {
            unknown
        };
        let states = named.into_iter().collect::<Vec<_>>().join(", ");
        let which = match wanted {
            Some(name) => format!("{name} is no graph with"),
            None => "no graph of this crate has".to_owned(),
        };
        format!("{which} the states {states}; `cargo okt graph` draws the graphs")
    })
}

/// Returns the implementation of a graph's handlers: in the same module, else in the same file, else the only one.
fn handlers<'f>(graph: &Located<'_>, files: &'f [File]) -> Option<Located<'f>> {
    let all = || located(files, |text| NewState::handlers(&graph.item.name, text));
    let only = |mut found: Vec<Located<'f>>| (found.len() == 1).then(|| found.pop()).flatten();
    let is_beside = |it: &Located<'_>| it.number == graph.number;
    let is_in_module = |it: &Located<'_>| is_beside(it) && it.item.modules == graph.item.modules;
    let of_file: Vec<_> = all().filter(is_beside).collect();
    if of_file.is_empty() {
        return only(all().collect());
    }
    only(all().filter(is_in_module).collect()).or_else(|| only(of_file))
}

impl Crates {
    /// Refuses a text whose graphs have mistakes.
    fn check(&self, path: &str, text: &str) -> Result<(), String> {
        let source = self.parse(text).map_err(|mistake| mistake.text())?;
        let mistakes = source.mistakes().iter();
        let blocks: Vec<String> = mistakes
            .map(|mistake| mistake.render(text, path, false))
            .collect();
        if blocks.is_empty() {
            return Ok(());
        }
        Err(format!(
            "with this state the graph would have mistakes:\n\n{}\n",
            blocks.join("\n\n")
        ))
    }
}
