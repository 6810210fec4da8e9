//! Finds the declarations of graphs in a file, and reads each as the macro would.

use std::ops::Range;

use okt_core::check::Rule;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Item, ItemMod, Lit, Meta, Visibility, parse_quote,
};

use super::cfg::Cfg;
use super::mistake::{Mistake, Unknown};
use crate::model::Model;
use crate::report::Report;
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

/// What a file declares.
pub(super) struct Finder<'c> {
    cfg: &'c Cfg,
    /// The modules around the item that is visited.
    around: Vec<String>,
    pub(super) modules: Vec<FileModule>,
    pub(super) graphs: Vec<Declaration>,
}

/// An item with the attribute `#[lifecycle_graph]`.
pub(super) struct Declaration {
    /// The item with the attributes below it.
    below: TokenStream,
    /// The item as the derive sees it; none if no derive is possible.
    input: Option<DeriveInput>,
}

impl<'c> Finder<'c> {
    pub(super) fn new(cfg: &'c Cfg) -> Self {
        Self {
            cfg,
            around: Vec::new(),
            modules: Vec::new(),
            graphs: Vec::new(),
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attrs = attributes(item);
        if !self.cfg.may_have(attrs) {
            return;
        }
        if let Some(index) = attrs.iter().position(is_graph) {
            self.graphs.push(Declaration::of(item, index, self.cfg));
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

impl Declaration {
    fn of(item: &Item, index: usize, cfg: &Cfg) -> Self {
        let args = match &attributes(item)[index].meta {
            Meta::List(list) => list.tokens.clone(),
            Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
        };
        let mut below = item.clone();
        if let Some(attrs) = attributes_mut(&mut below) {
            attrs.drain(..=index);
            *attrs = cfg.resolved(attrs);
        }
        let mut whole = item.clone();
        if let Some(attrs) = attributes_mut(&mut whole) {
            attrs.remove(index);
        }
        let input = match whole {
            Item::Enum(item) => Some(DeriveInput::from(item)),
            Item::Struct(item) => Some(DeriveInput::from(item)),
            Item::Union(item) => Some(DeriveInput::from(item)),
            _ => None,
        };
        let input = input.map(|mut input| {
            resolve(&mut input, cfg);
            if let Some(options) = shim::options(&args) {
                input.attrs.push(parse_quote!(#options));
            }
            input
        });
        Self {
            below: below.into_token_stream(),
            input,
        }
    }

    /// Reads the declaration; none if it is not an enum, which is reported.
    pub(super) fn model(&self, report: &mut Report) -> Option<Model> {
        Model::read(report, self.input.as_ref()?)
    }

    /// Returns the position of the item's head (e.g. of `pub enum Life`), at which rustc points.
    fn head(&self) -> Range<usize> {
        let Some(input) = &self.input else {
            return 0..0;
        };
        let keyword = match &input.data {
            Data::Enum(data) => data.enum_token.span,
            Data::Struct(data) => data.struct_token.span,
            Data::Union(data) => data.union_token.span,
        };
        let vis = match &input.vis {
            Visibility::Inherited => keyword,
            vis => vis.span(),
        };
        vis.byte_range().start..input.ident.span().byte_range().end
    }

    /// Returns every mistake, as the macro and rustc report them.
    pub(super) fn check(&self) -> Vec<Mistake> {
        let mut outer = Report::new();
        let _ = shim::missing(&mut outer, &self.below);
        let mut mistakes = located(outer);
        let mut report = Report::new();
        if let Some(model) = self.model(&mut report) {
            check::check(&mut report, &model);
            mistakes.extend(unknown_states(&model, self.head()));
        }
        mistakes.extend(located(report));
        mistakes
    }
}

/// Removes what is not compiled, and the attributes that say so.
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

fn located(report: Report) -> Vec<Mistake> {
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
    let mentions = mentions.filter(|target| model.get(target.to).is_none());
    let names: Vec<String> = model.iter().map(|(_, node)| node.variant()).collect();
    mentions
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
    match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
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

fn attributes_mut(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Mod(item) => &mut item.attrs,
        Item::Static(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Union(item) => &mut item.attrs,
        _ => return None,
    })
}
