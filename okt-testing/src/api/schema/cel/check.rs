//! Checks the types of an expression as the API server does when a CRD is created.
//!
//! A real server also refuses rules whose estimated cost is too high; this one does not estimate it.

mod call;

use std::{collections::BTreeMap, rc::Rc};

use kube::core::cel::cel::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::decl::Decl;
use super::types::{self, Type};

/// The reason why an expression cannot be used.
#[derive(Debug)]
pub(crate) enum RuleMistake {
    /// The server would refuse it too.
    Wrong(String),
    /// The server knows this name, but the library does not.
    Lacking(String),
}

impl RuleMistake {
    fn undeclared(name: &str) -> Self {
        Self::Wrong(format!(
            "undeclared reference to '{name}' (in container '')"
        ))
    }
}

/// The facts that are known about the value of an expression before its evaluation.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) kind: Type,
    /// The schema of the value, or of the value in the optional.
    pub(super) declared: Option<Rc<Decl>>,
}

impl Known {
    fn of(kind: Type) -> Self {
        Self {
            kind,
            declared: None,
        }
    }

    fn of_literal(literal: &LiteralValue) -> Self {
        Self::of(Type::parse(match literal {
            LiteralValue::Boolean(_) => "bool",
            LiteralValue::Bytes(_) => "bytes",
            LiteralValue::Double(_) => "double",
            LiteralValue::Int(_) => "int",
            LiteralValue::Null => "null_type",
            LiteralValue::String(_) => "string",
            LiteralValue::UInt(_) => "uint",
        }))
    }
}

/// The names that a rule can use, outermost first.
pub(super) struct Checker {
    scope: Vec<(String, Known)>,
    /// The items of a list may be of several types.
    takes_mixed: bool,
    /// The calls whose evaluation depends on a schema, by their id, and the part of the schema that they need.
    pub(super) plans: BTreeMap<u64, String>,
}

impl Checker {
    pub(super) fn new(root: &Rc<Decl>, old_is_optional: bool) -> Self {
        let declared = |kind| Known {
            declared: Some(Rc::clone(root)),
            ..Known::of(kind)
        };
        let own = declared(root.kind());
        let old = if old_is_optional {
            declared(Type::Optional(Rc::new(root.kind())))
        } else {
            own.clone()
        };
        Self {
            scope: vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)],
            takes_mixed: false,
            plans: BTreeMap::new(),
        }
    }

    /// Returns the known facts about the value of an expression.
    pub(super) fn check(&mut self, node: &IdedExpr) -> Result<Known, RuleMistake> {
        match &node.expr {
            Expr::Unspecified => Ok(Known::of(Type::Dyn)),
            Expr::Literal(literal) => Ok(Known::of_literal(literal)),
            Expr::Ident(name) => self.check_name(name),
            Expr::Select(select) => self.check_select(node, select),
            Expr::Call(call) => self.check_call(node.id, call),
            Expr::List(list) => self.check_list(list),
            Expr::Map(map) => self.check_map(map),
            Expr::Struct(structure) => Err(RuleMistake::undeclared(&structure.type_name)),
            Expr::Comprehension(inner) if is_binding(inner) => self.check_binding(inner),
            Expr::Comprehension(inner) => self.check_comprehension(inner),
        }
    }

    fn find(&self, name: &str) -> Option<&Known> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, known)| known)
    }

    fn check_name(&self, name: &str) -> Result<Known, RuleMistake> {
        match self.find(name) {
            Some(known) => Ok(known.clone()),
            None if Type::is_name(name) => Ok(Known::of(types::TYPE)),
            None => Err(RuleMistake::undeclared(name)),
        }
    }

    fn check_select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Result<Known, RuleMistake> {
        if let Some(name) = self.qualified(node)
            && Type::is_name(&name)
        {
            return Ok(Known::of(types::TYPE));
        }
        let operand = self.check(&select.operand)?;
        let (kind, is_optional) = unwrap(&operand.kind);
        let found = field_type(&kind, &select.field)?;
        if is_optional {
            self.plans.insert(node.id, String::new());
        }
        if select.test {
            return Ok(Known::of(types::BOOL));
        }
        let kind = if is_optional {
            Type::Optional(Rc::new(found))
        } else {
            found
        };
        let declared = below(operand.declared.as_deref(), &DeclStep::Field(&select.field));
        Ok(Known { kind, declared })
    }

    /// A name with dots whose first part is not a variable (e.g. `net.IP`).
    fn qualified(&self, node: &IdedExpr) -> Option<String> {
        match &node.expr {
            Expr::Ident(name) if self.find(name).is_none() => Some(name.clone()),
            Expr::Select(select) if !select.test => {
                let outer = self.qualified(&select.operand)?;
                Some(format!("{outer}.{}", select.field))
            }
            _ => None,
        }
    }

    fn check_list(&mut self, list: &ListExpr) -> Result<Known, RuleMistake> {
        let mut kind = Type::Open;
        for (index, element) in list.elements.iter().enumerate() {
            let known = self.check(element)?;
            let found = if list.optional_indices.contains(&index) {
                unwrap(&known.kind).0
            } else {
                known.kind
            };
            kind = match kind.join(&found) {
                None if self.takes_mixed => Type::Dyn,
                _ => join(&kind, &found)?,
            };
        }
        Ok(Known::of(Type::List(Rc::new(kind))))
    }

    fn check_map(&mut self, map: &MapExpr) -> Result<Known, RuleMistake> {
        let (mut key_kind, mut kind) = (Type::Open, Type::Open);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key)?;
            let value = self.check(&entry.value)?;
            let found = if entry.optional {
                unwrap(&value.kind).0
            } else {
                value.kind
            };
            key_kind = join(&key_kind, &key.kind)?;
            kind = join(&kind, &found)?;
        }
        Ok(Known::of(Type::Map(Rc::new(key_kind), Rc::new(kind))))
    }

    /// Checks a value that gets a name, as in `optMap`.
    fn check_binding(&mut self, inner: &ComprehensionExpr) -> Result<Known, RuleMistake> {
        let bound = self.check(&inner.accu_init)?;
        self.scope.push((inner.accu_var.clone(), bound));
        let result = self.check(&inner.result);
        self.scope.pop();
        result
    }

    fn check_comprehension(&mut self, inner: &ComprehensionExpr) -> Result<Known, RuleMistake> {
        let range = self.check(&inner.iter_range)?;
        let init = self.check(&inner.accu_init)?;
        let (step, kind) = match &range.kind {
            Type::List(items) => (DeclStep::Element, Type::clone(items)),
            Type::Map(keys, _) => (DeclStep::Key, Type::clone(keys)),
            Type::Dyn | Type::Open => (DeclStep::Key, Type::Dyn),
            other => {
                return Err(RuleMistake::Wrong(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                )));
            }
        };
        let declared = below(range.declared.as_deref(), &step);
        let outer = self.scope.len();
        self.scope.push((inner.accu_var.clone(), init.clone()));
        self.scope
            .push((inner.iter_var.clone(), Known { kind, declared }));
        let result = self.check_around(inner, &init, outer);
        self.scope.truncate(outer);
        Ok(Known::of(result?.kind))
    }

    /// Returns the result of a comprehension.
    fn check_around(
        &mut self,
        inner: &ComprehensionExpr,
        init: &Known,
        outer: usize,
    ) -> Result<Known, RuleMistake> {
        self.check(&inner.loop_cond)?;
        let step = self.check(&inner.loop_step)?;
        let kind = join(&init.kind, &step.kind)?;
        // After the loop only the accumulator is in scope, with the type that the steps gave it.
        self.scope.truncate(outer + 1);
        if let Some((_, accumulator)) = self.scope.last_mut() {
            accumulator.kind = kind;
        }
        self.check(&inner.result)
    }
}

/// A step from a declared value to one within it.
enum DeclStep<'s> {
    Field(&'s str),
    /// An item of a list or a value of a map.
    Element,
    Key,
}

/// Whether a comprehension iterates over nothing and only names a value.
fn is_binding(inner: &ComprehensionExpr) -> bool {
    let over_nothing =
        matches!(&inner.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&inner.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(flag)) if !*flag.inner());
    over_nothing && never
}

fn below(from: Option<&Decl>, step: &DeclStep<'_>) -> Option<Rc<Decl>> {
    match (from?, step) {
        (from, DeclStep::Field(name)) => from.field(name).or_else(|| from.value_of_map()),
        (from, DeclStep::Element) => from.element(),
        (from, DeclStep::Key) => from.key(),
    }
}

fn unwrap(kind: &Type) -> (Type, bool) {
    match kind {
        Type::Optional(inner) => (Type::clone(inner), true),
        other => (other.clone(), false),
    }
}

fn join(a: &Type, b: &Type) -> Result<Type, RuleMistake> {
    a.join(b)
        .ok_or_else(|| RuleMistake::Wrong(format!("expected type '{a}' but found '{b}'")))
}

fn field_type(kind: &Type, name: &str) -> Result<Type, RuleMistake> {
    match kind {
        Type::Map(_, values) => Ok(Type::clone(values)),
        Type::Object(decl) => decl
            .field(name)
            .map(|field| field.kind())
            .ok_or_else(|| RuleMistake::Wrong(format!("undefined field '{name}'"))),
        Type::Dyn | Type::Open => Ok(Type::Dyn),
        other => Err(RuleMistake::Wrong(format!(
            "type '{other}' does not support field selection"
        ))),
    }
}
