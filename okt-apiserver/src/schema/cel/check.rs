//! Checks the types of an expression as the API server does when a CRD is created.
//!
//! A real server also refuses rules whose estimated cost is too high; this one does not estimate it.

mod call;

use std::{collections::BTreeMap, rc::Rc};

use kube::core::cel::cel::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

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

/// The names that a rule can use, outermost first.
pub(super) struct Checker {
    scope: Vec<(String, Type)>,
    /// The items of a list may be of several types.
    takes_mixed: bool,
    /// The calls whose evaluation depends on a schema, by their id, and the part of the schema that they need.
    pub(super) plans: BTreeMap<u64, String>,
}

impl Checker {
    pub(super) fn new(own: &Type, old_is_optional: bool) -> Self {
        let old = if old_is_optional {
            Type::Optional(Rc::new(own.clone()))
        } else {
            own.clone()
        };
        Self {
            scope: vec![
                ("self".to_owned(), own.clone()),
                ("oldSelf".to_owned(), old),
            ],
            takes_mixed: false,
            plans: BTreeMap::new(),
        }
    }

    /// Returns the type of an expression.
    pub(super) fn check(&mut self, node: &IdedExpr) -> Result<Type, RuleMistake> {
        match &node.expr {
            Expr::Unspecified => Ok(Type::Dyn),
            Expr::Literal(literal) => Ok(type_of_literal(literal)),
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

    fn find(&self, name: &str) -> Option<&Type> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, known)| known)
    }

    fn check_name(&self, name: &str) -> Result<Type, RuleMistake> {
        match self.find(name) {
            Some(known) => Ok(known.clone()),
            None if Type::is_name(name) => Ok(types::TYPE),
            None => Err(RuleMistake::undeclared(name)),
        }
    }

    fn check_select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Result<Type, RuleMistake> {
        if let Some(name) = self.qualified(node)
            && Type::is_name(&name)
        {
            return Ok(types::TYPE);
        }
        let (kind, is_optional) = unwrap(self.check(&select.operand)?);
        let found = field_type(&kind, &select.field)?;
        if is_optional {
            self.plans.insert(node.id, String::new());
        }
        Ok(match (select.test, is_optional) {
            (true, _) => types::BOOL,
            (false, true) => Type::Optional(Rc::new(found)),
            (false, false) => found,
        })
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

    fn check_list(&mut self, list: &ListExpr) -> Result<Type, RuleMistake> {
        let mut kind = Type::Open;
        for (index, element) in list.elements.iter().enumerate() {
            let mut found = self.check(element)?;
            if list.optional_indices.contains(&index) {
                found = unwrap(found).0;
            }
            kind = match kind.join(&found) {
                None if self.takes_mixed => Type::Dyn,
                _ => join(&kind, &found)?,
            };
        }
        Ok(Type::list(kind))
    }

    fn check_map(&mut self, map: &MapExpr) -> Result<Type, RuleMistake> {
        let (mut key_kind, mut kind) = (Type::Open, Type::Open);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key)?;
            let mut value = self.check(&entry.value)?;
            if entry.optional {
                value = unwrap(value).0;
            }
            key_kind = join(&key_kind, &key)?;
            kind = join(&kind, &value)?;
        }
        Ok(Type::Map(Rc::new(key_kind), Rc::new(kind)))
    }

    /// Checks a value that gets a name, as in `optMap`.
    fn check_binding(&mut self, inner: &ComprehensionExpr) -> Result<Type, RuleMistake> {
        let bound = self.check(&inner.accu_init)?;
        self.scope.push((inner.accu_var.clone(), bound));
        let result = self.check(&inner.result);
        self.scope.pop();
        result
    }

    fn check_comprehension(&mut self, inner: &ComprehensionExpr) -> Result<Type, RuleMistake> {
        let range = self.check(&inner.iter_range)?;
        let init = self.check(&inner.accu_init)?;
        let item = match &range {
            Type::List(items, _) => Type::clone(items),
            Type::Map(keys, _) => Type::clone(keys),
            Type::Dyn | Type::Open => Type::Dyn,
            other => {
                return Err(RuleMistake::Wrong(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                )));
            }
        };
        let outer = self.scope.len();
        self.scope.push((inner.accu_var.clone(), init.clone()));
        self.scope.push((inner.iter_var.clone(), item));
        let result = self.check_around(inner, &init, outer);
        self.scope.truncate(outer);
        result
    }

    /// Returns the result of a comprehension.
    fn check_around(
        &mut self,
        inner: &ComprehensionExpr,
        init: &Type,
        outer: usize,
    ) -> Result<Type, RuleMistake> {
        self.check(&inner.loop_cond)?;
        let step = self.check(&inner.loop_step)?;
        let kind = join(init, &step)?;
        // After the loop only the accumulator is in scope, with the type that the steps gave it.
        self.scope.truncate(outer + 1);
        if let Some((_, accumulator)) = self.scope.last_mut() {
            *accumulator = kind;
        }
        self.check(&inner.result)
    }
}

fn type_of_literal(literal: &LiteralValue) -> Type {
    Type::Plain(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::Null => "null_type",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
    })
}

/// Whether a comprehension iterates over nothing and only names a value.
fn is_binding(inner: &ComprehensionExpr) -> bool {
    let over_nothing =
        matches!(&inner.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&inner.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(flag)) if !*flag.inner());
    over_nothing && never
}

/// Returns the type of the value in an optional, or the type itself, and whether it is an optional.
fn unwrap(kind: Type) -> (Type, bool) {
    match kind {
        Type::Optional(inner) => (Type::clone(&inner), true),
        other => (other, false),
    }
}

fn join(a: &Type, b: &Type) -> Result<Type, RuleMistake> {
    a.join(b)
        .ok_or_else(|| RuleMistake::Wrong(format!("expected type '{a}' but found '{b}'")))
}

fn field_type(kind: &Type, name: &str) -> Result<Type, RuleMistake> {
    match kind {
        Type::Map(_, values) => Ok(Type::clone(values)),
        Type::Object(fields) => fields
            .get(name)
            .cloned()
            .ok_or_else(|| RuleMistake::Wrong(format!("undefined field '{name}'"))),
        Type::Dyn | Type::Open => Ok(Type::Dyn),
        other => Err(RuleMistake::Wrong(format!(
            "type '{other}' does not support field selection"
        ))),
    }
}
