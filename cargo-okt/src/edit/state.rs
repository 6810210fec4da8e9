//! Adds a state to a graph: the variant, the edges to and from it, and its handler.

use okt_core::names::snake;
use okt_syntax::source::{identifier, parse};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, File, FnArg, ImplItem, ImplItemFn, ItemEnum, ItemImpl, ItemMod, Path, Signature,
    Variant,
};

use super::{Insertions, behind_comment, end, start};

/// A state to add.
pub(crate) struct NewState {
    pub(crate) name: String,
    /// The states that lead to it.
    pub(crate) from: Vec<String>,
    /// The states that it leads to; the last is Next.
    pub(crate) to: Vec<String>,
    pub(crate) shape: StateShape,
    pub(crate) doc: String,
}

/// How long an object stays in a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateShape {
    Passing,
    Rest,
    Hold,
    Visit,
}

/// A graph, or an implementation of its handlers, in a file.
pub(crate) struct ItemPlace {
    /// The inline modules around it.
    pub(crate) modules: Vec<String>,
    pub(crate) name: String,
    /// Where its name is, in bytes.
    at: usize,
}

impl NewState {
    /// Returns the graphs of a file that have all states which this one is connected with.
    pub(crate) fn graphs(&self, text: &str) -> Vec<ItemPlace> {
        let states = self.from.iter().chain(&self.to);
        let states: Vec<&String> = states.filter(|state| **state != self.name).collect();
        Self::graphs_with(text, &states)
    }

    /// Returns the graphs of a file that have all these states.
    pub(crate) fn graphs_with(text: &str, states: &[&String]) -> Vec<ItemPlace> {
        let Ok(file) = parse(text) else {
            return Vec::new();
        };
        let fits = GraphItems::of(&file).graphs.into_iter();
        let fits = fits.filter(|(_, graph)| states.iter().all(|it| variant(graph, it).is_some()));
        fits.map(|(modules, graph)| ItemPlace {
            modules,
            name: graph.ident.to_string(),
            at: start(graph.ident.span()),
        })
        .collect()
    }

    /// Returns what inserts the state and its edges into a graph.
    pub(crate) fn graph_edit(&self, graph: &ItemPlace, text: &str) -> Result<Insertions, String> {
        let file = parse(text).map_err(|mistake| mistake.text())?;
        let graphs = GraphItems::of(&file).graphs.into_iter();
        let mut graphs = graphs.map(|(_, it)| it);
        let name = &self.name;
        let Some(found) = graphs.find(|it| start(it.ident.span()) == graph.at) else {
            return Err(format!("{} is not there", graph.name));
        };
        if variant(found, name).is_some() {
            return Err(format!("{} has a state {name} already", graph.name));
        }
        let mut insertions = Insertions::default();
        let mut after = None;
        for from in &self.from {
            let Some(variant) = variant(found, from) else {
                continue;
            };
            let mut children = variant.attrs.iter().rev();
            let Some(last) = children.find(|attr| is_child(attr)) else {
                return Err(format!(
                    "{from} has no line `#[child(..)]`, before which an edge to {name} could stand: write the edge by hand"
                ));
            };
            let place = start(last.span());
            let space = match line_before(text, place) {
                indent if indent.trim().is_empty() => format!("\n{indent}"),
                _ => " ".to_owned(),
            };
            // Before the last child, which stays Next.
            insertions.at(place, format!("#[child({name})]{space}"));
            after.get_or_insert(variant);
        }
        let after = after.or_else(|| found.variants.last());
        let Some(after) = after else {
            return Err(format!("{} has no states", graph.name));
        };
        let indent = indent(text, start(after.ident.span()));
        let comma = comma(found, after);
        if comma.is_none() {
            insertions.at(end(after.span()), ",");
        }
        let end = comma.unwrap_or_else(|| end(after.span()));
        let variant = self.variant(indent);
        insertions.at(behind_comment(text, end), format!("\n\n{variant}"));
        Ok(insertions)
    }

    /// Returns the text of the variant.
    fn variant(&self, indent: &str) -> String {
        let docs = self.doc.lines().map(|line| format!("/// {line}"));
        let mut lines: Vec<String> = docs.collect();
        lines.extend(match self.shape {
            StateShape::Passing => None,
            StateShape::Rest => Some("#[rest]".to_owned()),
            StateShape::Hold => Some("#[rest(hold, idle)]".to_owned()),
            StateShape::Visit => Some("#[visit]".to_owned()),
        });
        lines.extend(self.to.iter().map(|to| format!("#[child({to})]")));
        lines.push(format!("{},", self.name));
        let lines = lines.iter().map(|line| format!("{indent}{line}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the implementations of a graph's handlers in a file.
    pub(crate) fn handlers(graph: &str, text: &str) -> Vec<ItemPlace> {
        let Ok(file) = parse(text) else {
            return Vec::new();
        };
        let handler = format!("{graph}Handler");
        let impls = GraphItems::of(&file).impls.into_iter();
        let of_graph = impls.filter_map(|(modules, item)| {
            let (path, _) = item.trait_.as_ref()?;
            let last = path.segments.last().filter(|it| it.ident == handler)?;
            Some(ItemPlace {
                modules,
                name: handler.clone(),
                at: start(last.ident.span()),
            })
        });
        of_graph.collect()
    }

    /// Returns what inserts the handler into an implementation; none if it has no method like it.
    pub(crate) fn handler_edit(&self, handlers: &ItemPlace, text: &str) -> Option<Insertions> {
        let file = parse(text).ok()?;
        let impls = GraphItems::of(&file).impls.into_iter();
        let is_it = |item: &&ItemImpl| {
            let path = item.trait_.as_ref().map(|(path, _)| path);
            let last = path.and_then(|path| path.segments.last());
            last.is_some_and(|last| start(last.ident.span()) == handlers.at)
        };
        let found = impls.map(|(_, it)| it).find(is_it)?;
        // A method with lifetimes of its own is no model.
        let is_plain = |sig: &Signature| sig.asyncness.is_some() && sig.generics.params.is_empty();
        let methods = found.items.iter().filter_map(|item| match item {
            ImplItem::Fn(method) if is_plain(&method.sig) => Some(method),
            _ => None,
        });
        let methods: Vec<&ImplItemFn> = methods.collect();
        let from = self.from.iter().map(|from| snake(from));
        let mut of_from = from.filter_map(|name| {
            let is_it = |it: &&&ImplItemFn| it.sig.ident.unraw() == name;
            methods.iter().find(is_it)
        });
        let like = of_from.next().or_else(|| methods.last())?;
        let code = self.method(&like.sig, text)?;
        let mut insertions = Insertions::default();
        insertions.at(behind_comment(text, end(like.span())), code);
        Some(insertions)
    }

    /// Returns the text of a handler with the types of another.
    fn method(&self, like: &Signature, text: &str) -> Option<String> {
        let source = |span: proc_macro2::Span| text.get(span.byte_range());
        let FnArg::Typed(context) = like.inputs.iter().nth(1)? else {
            return None;
        };
        let context = source(context.ty.span())?;
        let mut answers = AnswersPath::default();
        answers.visit_return_type(&like.output);
        let theirs = answers.0?;
        let last = theirs.segments.last()?.ident.span().byte_range();
        let path = theirs.span().byte_range();
        let ours = format!("{}After{}", text.get(path.start..last.start)?, self.name);
        let output = like.output.span().byte_range();
        let (before, after) = (
            text.get(output.start..path.start)?,
            text.get(path.end..output.end)?,
        );
        let answer = match self.shape {
            StateShape::Rest | StateShape::Hold => format!("{ours}::Stay"),
            StateShape::Passing | StateShape::Visit => format!("{ours}::Next"),
        };
        let answer = if before.contains("Step<") {
            format!("Step::done({answer})")
        } else {
            answer
        };
        let indent = indent(text, start(like.span()));
        let name = identifier(&snake(&self.name))?;
        Some(format!(
            "\n\n{indent}async fn {name}(&self, _: {context}) {before}{ours}{after} {{\n{indent}    Ok({answer})\n{indent}}}"
        ))
    }

    /// Returns whether objects do work in the state.
    pub(crate) fn has_handler(&self) -> bool {
        self.shape != StateShape::Hold
    }
}

fn variant<'a>(graph: &'a ItemEnum, name: &str) -> Option<&'a Variant> {
    graph.variants.iter().find(|it| it.ident == name)
}

fn is_child(attr: &Attribute) -> bool {
    attr.path().is_ident("child")
}

/// Returns the part of a line before a place in it.
fn line_before(text: &str, place: usize) -> &str {
    let before = &text[..place];
    &before[before.rfind('\n').map_or(0, |newline| newline + 1)..]
}

/// Returns the white space with which the line of a place begins.
fn indent(text: &str, place: usize) -> &str {
    let before = line_before(text, place);
    &before[..before.len() - before.trim_start().len()]
}

/// Returns the end of the comma after a variant.
fn comma(graph: &ItemEnum, variant: &Variant) -> Option<usize> {
    let mut pairs = graph.variants.pairs();
    let of_it = pairs.find(|pair| pair.value().ident == variant.ident)?;
    of_it.punct().map(|comma| end(comma.span()))
}

/// The graphs and the implementations of a file, each with the inline modules around it.
#[derive(Default)]
struct GraphItems<'ast> {
    around: Vec<String>,
    graphs: Vec<(Vec<String>, &'ast ItemEnum)>,
    impls: Vec<(Vec<String>, &'ast ItemImpl)>,
}

impl<'ast> GraphItems<'ast> {
    fn of(file: &'ast File) -> Self {
        let mut found = Self::default();
        found.visit_file(file);
        found
    }
}

impl<'ast> Visit<'ast> for GraphItems<'ast> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.around.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
        self.around.pop();
    }

    fn visit_item_enum(&mut self, item: &'ast ItemEnum) {
        let is_graph = |attr: &Attribute| {
            let name = attr.path().segments.last();
            name.is_some_and(|name| name.ident == "lifecycle_graph")
        };
        if item.attrs.iter().any(is_graph) {
            self.graphs.push((self.around.clone(), item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        self.impls.push((self.around.clone(), item));
    }
}

/// The path of the answers of a handler (e.g. `widget_state::AfterRunning`).
#[derive(Default)]
struct AnswersPath<'ast>(Option<&'ast Path>);

impl<'ast> Visit<'ast> for AnswersPath<'ast> {
    fn visit_path(&mut self, path: &'ast Path) {
        let last = path.segments.last();
        if last.is_some_and(|last| last.ident.to_string().starts_with("After")) {
            self.0 = Some(path);
        }
        visit::visit_path(self, path);
    }
}
