//! Finds the graphs and the modules that a file declares, and reads each graph as the macro would.

use std::ops::Range;

use okt_core::check::Rule;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Data, DeriveInput, Item, ItemMod, Meta, Visibility, parse_quote};

use super::cfg::Cfg;
use super::mistake::{Mistake, Unknown};
use crate::model::Model;
use crate::report::ErrorReport;
use crate::{check, items, shim};

/// A module whose items are in a file of its own (e.g. `mod states;`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileModule {
    /// Its name, after the names of the modules around it in the same file.
    pub path: Vec<String>,
    /// The file that its attribute `#[path = ".."]` names.
    pub file: Option<String>,
    /// The position of its name, in bytes.
    pub at: Range<usize>,
}

impl FileModule {
    /// Returns the mistake that its file is not there, in the words of rustc.
    pub fn missing(&self) -> Mistake {
        let name = self.path.last().map_or("", String::as_str);
        Mistake::of_rust(
            format!("file not found for module `{name}`"),
            self.at.clone(),
        )
    }
}

/// Collects the modules and the graphs of a file.
pub(super) struct Finder<'c> {
    cfg: &'c Cfg,
    /// The modules around the item that is visited.
    around: Vec<String>,
    pub(super) modules: Vec<FileModule>,
    /// The number of items with the attribute `#[lifecycle_graph]`.
    pub(super) count: usize,
    /// The enums among these items.
    pub(super) models: Vec<Model>,
    /// The versions of a kind to which these enums belong.
    pub(super) versions: Vec<Option<String>>,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'c> Finder<'c> {
    pub(super) fn new(cfg: &'c Cfg) -> Self {
        Self {
            cfg,
            around: Vec::new(),
            modules: Vec::new(),
            count: 0,
            models: Vec::new(),
            versions: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// Reads and checks the graph that the attribute at this index declares, as the macro and rustc do.
    fn read(&mut self, item: &Item, index: usize) {
        self.count += 1;
        let mut report = ErrorReport::new();
        if let Some(input) = input(&mut report, item, index, self.cfg)
            && let Some(mut model) = Model::read(&mut report, &input)
        {
            check::check(&mut report, &model);
            let unknown = unknown_states(&model, head(&input));
            model.is_wrong = !(report.is_clean() && unknown.is_empty());
            self.mistakes.extend(unknown);
            let mut around = self.around.iter().rev();
            let version = around.find(|module| is_version(module));
            self.versions.push(version.cloned());
            self.models.push(model);
        }
        self.mistakes.extend(located(report));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attrs = attributes(item);
        if !self.cfg.may_have(attrs) {
            return;
        }
        if let Some(index) = attrs.iter().position(is_graph) {
            self.read(item, index);
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.around.push(items::name(&module.ident));
        if module.content.is_none() {
            self.modules.push(FileModule {
                path: self.around.clone(),
                file: self.cfg.resolved(&module.attrs).iter().find_map(path),
                at: module.ident.span().byte_range(),
            });
        }
        visit::visit_item_mod(self, module);
        self.around.pop();
    }
}

/// Returns whether a module has the name of a version of a kind (e.g. `v1` or `v2beta1`).
pub fn is_version(module: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = module.strip_prefix('v') else {
        return false;
    };
    let parts = ["alpha", "beta"].into_iter();
    let mut parts = parts.filter_map(|stage| rest.split_once(stage));
    digits(rest) || parts.any(|(major, minor)| digits(major) && digits(minor))
}

/// Returns the item below the attribute at this index as the derive sees it; none if it can have no derive.
///
/// Reports the mistakes that the attribute itself reports.
fn input(report: &mut ErrorReport, item: &Item, index: usize, cfg: &Cfg) -> Option<DeriveInput> {
    let mut input: DeriveInput = match item.clone() {
        Item::Enum(item) => item.into(),
        Item::Struct(item) => item.into(),
        Item::Union(item) => item.into(),
        other => {
            shim::missing(report, &other.to_token_stream());
            return None;
        }
    };
    let attr = input.attrs.remove(index);
    if let Data::Enum(_) = input.data {
        let below = cfg.resolved(&input.attrs[index..]);
        shim::missing_derives(report, &below, &input.ident);
    }
    resolve(&mut input, cfg);
    if let Meta::List(args) = attr.meta
        && let Some(options) = shim::options(&args.tokens)
    {
        input.attrs.push(parse_quote!(#options));
    }
    Some(input)
}

/// Returns the position of the head of an enum (e.g. `pub enum Life`), at which rustc points.
fn head(input: &DeriveInput) -> Range<usize> {
    let start = match (&input.vis, &input.data) {
        (Visibility::Inherited, Data::Enum(data)) => data.enum_token.span,
        (vis, _) => vis.span(),
    };
    start.byte_range().start..input.ident.span().byte_range().end
}

/// Removes what is not compiled, and the attributes that exclude it.
fn resolve(input: &mut DeriveInput, cfg: &Cfg) {
    input.attrs = cfg.resolved(&input.attrs);
    if let Data::Enum(data) = &mut input.data {
        let variants = std::mem::take(&mut data.variants);
        let compiled = variants.into_iter().filter(|it| cfg.has(&it.attrs));
        data.variants = compiled.collect();
        for variant in &mut data.variants {
            variant.attrs = cfg.resolved(&variant.attrs);
            for field in &mut variant.fields {
                field.attrs = cfg.resolved(&field.attrs);
            }
        }
    }
}

fn located(report: ErrorReport) -> Vec<Mistake> {
    let mistakes = report.into_mistakes().into_iter();
    mistakes
        .map(|mistake| Mistake {
            rule: mistake.rule,
            at: mistake.spot.span.byte_range(),
            message: mistake.message,
            help: mistake.help,
            unknown: None,
        })
        .collect()
}

/// Returns a mistake for each name that is no variant, in the words of rustc.
fn unknown_states(model: &Model, head: Range<usize>) -> Vec<Mistake> {
    let mentions = model.mentions().into_iter();
    let names: Vec<String> = model.iter().map(|(_, node)| node.variant()).collect();
    mentions
        .filter(|target| model.get(target.to).is_none())
        .filter_map(|target| {
            let ident = target.ident.as_ref()?;
            let name = items::name(ident);
            let meant = similar(&name, &names).map(str::to_owned);
            let graph = model.name();
            Some(Mistake {
                rule: Some(Rule::UnknownTarget),
                message: format!("no variant named `{name}` found for enum `{graph}`"),
                help: match &meant {
                    Some(meant) => format!("there is a variant with a similar name: `{meant}`"),
                    None => format!("the states are {}", names.join(", ")),
                },
                at: ident.span().byte_range(),
                unknown: Some(Unknown {
                    name,
                    meant,
                    graph,
                    head: head.clone(),
                }),
            })
        })
        .collect()
}

/// Returns the name that was probably meant, by rustc's rule: at most a third of the letters differ.
fn similar<'n>(name: &str, names: &'n [String]) -> Option<&'n str> {
    let most = name.chars().count().max(3) / 3;
    let by_case = names.iter().find(|it| it.eq_ignore_ascii_case(name));
    let by_letters = names
        .iter()
        .map(|it| (strsim::osa_distance(name, it), it))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance);
    let found = by_case.or(by_letters.map(|(_, it)| it));
    found.map(String::as_str)
}

/// Returns whether an attribute is `#[lifecycle_graph]`, by any path.
fn is_graph(attr: &Attribute) -> bool {
    let last = attr.path().segments.last();
    last.is_some_and(|last| last.ident == "lifecycle_graph")
}

/// Returns the file in `#[path = ".."]`.
fn path(attr: &Attribute) -> Option<String> {
    Some(items::text_of(&attr.meta, "path")?.value())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        _ => &[],
    }
}
