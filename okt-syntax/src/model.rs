//! The declared enum as a model.

use std::collections::{BTreeMap, BTreeSet};

use okt_core::check::Rule;
use okt_core::names::snake;
use okt_core::{Kind, Mark, StateId};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Generics, Meta, Path, Type, Variant, Visibility};

use crate::attr::{self, Attributes, ConditionAttribute, Deadline, EdgeTarget, Gate, Part};
use crate::items;
use crate::options::{Options, identifier};
use crate::report::{ErrorReport, Spot};
use crate::serde;

/// The attribute that passes the options of `#[lifecycle_graph(..)]` to the hidden derive.
pub(crate) const OPTIONS: &str = "__lifecycle_graph";

/// A lifecycle graph as declared.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) ident: Ident,
    pub(crate) spot: Spot,
    pub(crate) vis: Visibility,
    /// Empty except in a wrong model.
    pub(crate) generics: Generics,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    /// The crate that generated code names.
    pub(crate) krate: Path,
    /// The spec whose parts triggers name.
    pub(crate) spec: Option<Path>,
    /// The generated module (e.g. `database_state`).
    pub(crate) module: Ident,
    /// The generated trait (e.g. `DatabaseStateHandler`).
    pub(crate) handler: Ident,
    pub(crate) nodes: Vec<Node>,
    /// The deadlines over several states; each of these states has a trigger for it.
    pub(crate) deadlines: Vec<Deadline>,
    pub(crate) gates: Vec<Gate>,
    /// Whether the graph has mistakes, so that the generated code only avoids further errors.
    pub(crate) is_wrong: bool,
}

/// One state.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) ident: Ident,
    pub(crate) spot: Spot,
    /// The wire name.
    pub(crate) name: String,
    /// The handler method (e.g. `running`); none if Rust allows no such name, or if another state of a wrong graph has
    /// it.
    pub(crate) method: Option<Ident>,
    pub(crate) has_fields: bool,
    /// Whether the variant has a discriminant of its own (e.g. `Up = 3`).
    has_discriminant: bool,
    /// The first and the last token of its attributes; none if it has only docs.
    pub(crate) marked: Option<(Span, Span)>,
    pub(crate) attributes: Attributes,
}

impl Model {
    /// Reads a declaration; reports syntax errors and keeps the rest in the model.
    ///
    /// Returns none if the item is not an enum.
    pub(crate) fn read(report: &mut ErrorReport, input: &DeriveInput) -> Option<Self> {
        let args = arguments(&input.attrs);
        let options = Options::read(report, args);
        refuse_misplaced(report, &input.attrs, &attr::WORDS, "on a state of the enum");
        let attrs = input.attrs.iter();
        let deadlines = attrs
            .filter(|attr| attr.path().is_ident("deadline"))
            .filter_map(|attr| Deadline::read(report, attr))
            .collect();
        let gates = input.attrs.iter();
        let gates = gates
            .filter(|attr| Gate::WORDS.iter().any(|word| attr.path().is_ident(word)))
            .filter_map(|attr| Gate::read(report, attr))
            .collect();
        let spot = report.spot(input.ident.span());
        let variants = match &input.data {
            Data::Enum(data) => &data.variants,
            Data::Struct(data) => {
                refuse_shape(report, data.struct_token.span);
                return None;
            }
            Data::Union(data) => {
                refuse_shape(report, data.union_token.span);
                return None;
            }
        };
        if let Some(parameter) = input.generics.params.first() {
            let spot = report.spot_of(parameter);
            report.error(
                Rule::Shape,
                spot,
                "a lifecycle graph cannot be generic: there is one graph, known at compile time",
                "remove the parameters",
            );
        }
        let case = serde::rename_all(report, &input.attrs);
        let mut nodes = Vec::new();
        let mut names = BTreeSet::new();
        for variant in variants {
            // rustc itself reports a second variant of the same name.
            if names.insert(items::name(&variant.ident)) {
                nodes.push(Node::read(report, variant, case.as_deref()));
            }
        }
        let name = items::name(&input.ident);
        let mut model = Self {
            spot,
            vis: input.vis.clone(),
            generics: input.generics.clone(),
            doc: attr::doc(&input.attrs),
            kind: options.kind,
            krate: options.krate,
            spec: options.spec,
            module: module(report, options.module, &name, spot),
            handler: options
                .handler
                .unwrap_or_else(|| Ident::new(&format!("{name}Handler"), Span::call_site())),
            nodes,
            deadlines,
            gates,
            is_wrong: false,
            ident: input.ident.clone(),
        };
        model.find_targets();
        Some(model)
    }

    /// Returns every state with its id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StateId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (StateId::at(index), node))
    }

    /// Returns the name of the enum.
    pub(crate) fn name(&self) -> String {
        items::name(&self.ident)
    }

    /// Returns the enum's identifier for generated code.
    pub(crate) fn plain_ident(&self) -> Ident {
        plain(&self.ident)
    }

    pub(crate) fn get(&self, id: StateId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// Returns whether the state has a successors enum: it has a handler and is not a leaf.
    pub(crate) fn has_successors(&self, node: &Node) -> bool {
        !node.is(Mark::Leaf) && (self.is_wrong || !node.is(Mark::Idle))
    }

    /// Returns whether the handler trait has a method for this state.
    pub(crate) fn is_handled(&self, node: &Node) -> bool {
        node.method.is_some() && (self.is_wrong || !node.is(Mark::Idle))
    }

    /// Returns whether the dispatch calls that method; in a wrong graph the context need not have arguments.
    pub(crate) fn is_dispatched(&self, node: &Node) -> bool {
        self.is_handled(node) && !(self.is_wrong && node.attributes.args.is_some())
    }

    /// Returns the declared targets of a state, each once: triggers first, in declaration order.
    pub(crate) fn successors<'m>(&'m self, node: &'m Node) -> Vec<(StateId, &'m Node)> {
        let mut found: Vec<(StateId, &Node)> = Vec::new();
        for target in node.edges() {
            if let Some(to) = self.get(target.to)
                && found.iter().all(|(id, _)| *id != target.to)
            {
                found.push((target.to, to));
            }
        }
        found
    }

    /// Returns every visit with arguments, with their type; of several with the same type, which is reported, the first.
    pub(crate) fn requests(&self) -> impl Iterator<Item = (StateId, &Node, &Type)> {
        let mut known = BTreeSet::new();
        let nodes = self.iter();
        let visits =
            nodes.filter_map(|(id, node)| Some((id, node, node.attributes.args.as_ref()?)));
        visits.filter(move |(.., args)| {
            matches!(args, Type::Infer(_)) || known.insert(args.to_token_stream().to_string())
        })
    }

    /// Returns every part of the spec that a trigger names, each once, in declaration order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Part> {
        let mut known = BTreeSet::new();
        let triggers = self.nodes.iter().flat_map(|node| &node.attributes.triggers);
        let parts = triggers.flat_map(|trigger| &trigger.parts);
        parts.filter(move |part| known.insert(&part.name))
    }

    /// Returns every declared condition, in declaration order.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &ConditionAttribute> {
        let nodes = self.nodes.iter();
        nodes.flat_map(|node| &node.attributes.conditions)
    }

    /// Returns every state that an attribute names, in source order: that of rustc's errors.
    pub(crate) fn mentions(&self) -> Vec<&EdgeTarget> {
        let deadlines = self.deadlines.iter();
        let states = self.nodes.iter().flat_map(Node::mentions);
        let mut mentions: Vec<&EdgeTarget> = deadlines
            .flat_map(|deadline| [&deadline.target].into_iter().chain(&deadline.over))
            .chain(self.gates.iter().flat_map(|gate| &gate.states))
            .chain(states)
            .collect();
        mentions.sort_by_key(|target| target.spot.order());
        // A trigger with several causes names its target once.
        mentions.dedup_by_key(|target| target.spot);
        mentions
    }

    /// Returns whether an attribute names a state that does not exist; rustc reports which one.
    pub(crate) fn has_unknown_targets(&self) -> bool {
        let mut mentions = self.mentions().into_iter();
        mentions.any(|target| target.to == StateId::UNKNOWN)
    }

    fn find_targets(&mut self) {
        let ids: BTreeMap<String, StateId> =
            self.iter().map(|(id, node)| (node.variant(), id)).collect();
        let find = |target: &mut EdgeTarget| {
            let name = target.ident.as_ref().map(items::name);
            let found = name.and_then(|name| ids.get(&name));
            target.to = found.copied().unwrap_or(StateId::UNKNOWN);
        };
        for node in &mut self.nodes {
            node.mentions_mut().for_each(&find);
        }
        for gate in &mut self.gates {
            gate.states.iter_mut().for_each(&find);
        }
        for deadline in &mut self.deadlines {
            find(&mut deadline.target);
            deadline.over.iter_mut().for_each(&find);
            for state in &deadline.over {
                if let Some(node) = self.nodes.get_mut(state.to.index()) {
                    node.attributes.triggers.push(deadline.trigger(state));
                }
            }
        }
    }
}

impl Node {
    fn read(report: &mut ErrorReport, variant: &Variant, case: Option<&str>) -> Self {
        refuse_misplaced(report, &variant.attrs, &attr::WORDS_OF_ENUM, "on the enum");
        let attributes = Attributes::read(report, &variant.attrs);
        let spot = report.spot(variant.ident.span());
        let has_fields = !matches!(variant.fields, Fields::Unit);
        if has_fields {
            let spot = report.spot_of(&variant.fields);
            report.error(
                Rule::Shape,
                spot,
                "a state has no fields: OKT stores only its name",
                "keep what belongs to it in the spec or the status",
            );
        }
        for field in &variant.fields {
            refuse_misplaced(report, &field.attrs, &attr::WORDS, "on the state itself");
        }
        let own = items::name(&variant.ident);
        let name = match (&attributes.rename, case) {
            (Some(name), _) => name.clone(),
            (None, Some(case)) => serde::in_case(case, &own),
            (None, None) => own.clone(),
        };
        Self {
            spot,
            name,
            method: identifier(&snake(&own)),
            has_fields,
            has_discriminant: variant.discriminant.is_some(),
            marked: marked(&variant.attrs),
            attributes,
            ident: variant.ident.clone(),
        }
    }

    /// Returns the name of the variant.
    pub(crate) fn variant(&self) -> String {
        items::name(&self.ident)
    }

    pub(crate) fn is(&self, mark: Mark) -> bool {
        self.attributes.has(mark)
    }

    /// Returns the identifier for generated code.
    ///
    /// It has another span than the declaration; otherwise an editor would find a second definition.
    pub(crate) fn plain_ident(&self) -> Ident {
        plain(&self.ident)
    }

    /// Generates the type of the result of a visit: `()` without one.
    pub(crate) fn result(&self) -> TokenStream {
        let result = self.attributes.result.as_ref();
        result.map_or_else(|| quote!(()), ToTokens::to_token_stream)
    }

    /// Generates a pattern for this state, inside an `impl` of the enum.
    pub(crate) fn pattern(&self) -> TokenStream {
        let ident = self.plain_ident();
        if self.has_fields {
            quote!(Self::#ident { .. })
        } else {
            quote!(Self::#ident)
        }
    }

    /// Returns whether the variant is only a name, so that its discriminant is its position.
    pub(crate) fn is_plain(&self) -> bool {
        !(self.has_fields || self.has_discriminant)
    }

    /// Returns the first line of the doc comment; empty if there is none.
    pub(crate) fn summary(&self) -> &str {
        self.attributes.doc.lines().next().unwrap_or_default()
    }

    /// Returns the targets of all edges, triggers first.
    pub(crate) fn edges(&self) -> impl Iterator<Item = &EdgeTarget> {
        let triggers = self.attributes.triggers.iter();
        triggers
            .map(|trigger| &trigger.target)
            .chain(&self.attributes.children)
    }

    /// Returns every state that an attribute of this state names.
    pub(crate) fn mentions(&self) -> impl Iterator<Item = &EdgeTarget> {
        let no_routes = self.attributes.no_routes.iter();
        self.edges()
            .chain(no_routes.map(|no_route| &no_route.target))
    }

    fn mentions_mut(&mut self) -> impl Iterator<Item = &mut EdgeTarget> {
        let Attributes {
            triggers,
            children,
            no_routes,
            ..
        } = &mut self.attributes;
        triggers
            .iter_mut()
            .map(|trigger| &mut trigger.target)
            .chain(children)
            .chain(no_routes.iter_mut().map(|no_route| &mut no_route.target))
    }
}

/// Returns the first and the last token of attributes that are not docs.
fn marked(attrs: &[Attribute]) -> Option<(Span, Span)> {
    let mut marks = attrs.iter().filter(|attr| !attr.path().is_ident("doc"));
    let first = marks.next()?;
    let last = marks.next_back().unwrap_or(first);
    Some((first.pound_token.span, last.bracket_token.span.close()))
}

/// Returns an identifier without its span in the declaration.
fn plain(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(Span::call_site());
    ident
}

/// Returns the constant of a condition type (e.g. `AVAILABLE`); none if the text is not a valid type.
pub(crate) fn constant(condition: &str) -> Option<Ident> {
    let name = snake(condition).to_uppercase();
    identifier(&name).or_else(|| identifier(&format!("_{name}")))
}

/// Returns the name of the generated module: the given one, or that of the enum in snake case. Reports a name that it
/// cannot have, and then returns another one.
fn module(report: &mut ErrorReport, given: Option<Ident>, name: &str, spot: Spot) -> Ident {
    let snake = snake(name);
    let why = match given.or_else(|| identifier(&snake)) {
        // An enum in lower case, or in a script without cases, is called like its module.
        Some(module) if items::name(&module) == name => {
            format!("`{name}`, like the enum itself")
        }
        Some(module) => return module,
        None => format!("`{snake}`, which Rust does not allow"),
    };
    report.error(
        Rule::Name,
        spot,
        format!("the module of `{name}` would be called {why}"),
        "choose another, `#[lifecycle_graph(module = \"..\")]`",
    );
    format_ident!("{snake}_successors")
}

/// Returns the arguments of `#[lifecycle_graph(..)]`.
fn arguments(attrs: &[Attribute]) -> TokenStream {
    let hidden = attrs.iter().find(|attr| attr.path().is_ident(OPTIONS));
    match hidden.map(|attr| &attr.meta) {
        Some(Meta::List(list)) => list.tokens.clone(),
        Some(Meta::Path(_) | Meta::NameValue(_)) | None => TokenStream::new(),
    }
}

/// Reports an item that is no enum.
pub(crate) fn refuse_shape(report: &mut ErrorReport, span: Span) {
    let spot = report.spot(span);
    report.error(
        Rule::Shape,
        spot,
        "only an enum can be a lifecycle graph",
        "declare one variant per state",
    );
}

/// Reports attributes of states in a wrong place.
fn refuse_misplaced(report: &mut ErrorReport, attrs: &[Attribute], words: &[&str], place: &str) {
    for attr in attrs {
        let word = items::spell(attr.path());
        if words.contains(&word.as_str()) {
            let spot = report.spot_of(attr.path());
            report.bad_option(
                spot,
                format!("`#[{word}]` is not understood here"),
                format!("it belongs {place}"),
            );
        }
    }
}
