//! This file checks the types of an expression as the API server does when a CRD is created, and estimates the cost of
//! its evaluation.
//!
//! It does both in one walk, because the cost of a call depends on the types and sizes of its arguments.

mod call;

use std::{collections::BTreeMap, rc::Rc};

use kube::core::cel::cel::common::ast::{
    ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr,
};

use super::{
    cost,
    decl::Decl,
    known::{Known, Place},
    size::{Entries, Size},
    types::{self, Type},
};

/// The reason why an expression cannot be used.
#[derive(Debug)]
pub(crate) enum Mistake {
    /// The server would refuse it too.
    Wrong(String),
    /// The server knows this name, but the library does not.
    Lacking(String),
}

impl Mistake {
    fn undeclared(name: &str) -> Self {
        Self::Wrong(format!(
            "undeclared reference to '{name}' (in container '')"
        ))
    }
}

/// The names that a rule can use, outermost first.
pub(super) struct Checker {
    root: Rc<Decl>,
    scope: Vec<(String, Known)>,
    /// The items of a list may be of several types.
    takes_mixed: bool,
    /// The calls whose evaluation depends on a schema, by their id, and the part of the schema that they need.
    pub(super) plans: BTreeMap<u64, String>,
}

impl Checker {
    pub(super) fn new(root: &Rc<Decl>, old_is_optional: bool) -> Self {
        let declared = |kind| Known {
            place: Place::At(Some(Rc::clone(root))),
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
            root: Rc::clone(root),
            scope: vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)],
            takes_mixed: false,
            plans: BTreeMap::new(),
        }
    }

    /// Returns the known facts about the value of an expression.
    pub(super) fn check(&mut self, node: &IdedExpr) -> Result<Known, Mistake> {
        match &node.expr {
            Expr::Unspecified => Ok(Known::of(Type::Dyn)),
            Expr::Literal(literal) => Ok(Known::of_literal(literal)),
            Expr::Ident(name) => self.check_name(name),
            Expr::Select(select) => self.check_select(node, select),
            Expr::Call(call) => self.check_call(node.id, call),
            Expr::List(list) => self.check_list(list),
            Expr::Map(map) => self.check_map(map),
            Expr::Struct(structure) => Err(Mistake::undeclared(&structure.type_name)),
            Expr::Comprehension(inner) if is_binding(inner) => self.check_binding(inner),
            Expr::Comprehension(inner) => self.check_comprehension(inner),
        }
    }

    fn find(&self, name: &str) -> Option<&Known> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, known)| known)
    }

    fn check_name(&self, name: &str) -> Result<Known, Mistake> {
        match self.find(name) {
            Some(known) => Ok(Known {
                literal: None,
                ..known.clone().costing(cost::SELECT).sized()
            }),
            None if Type::is_name(name) => Ok(self.type_name()),
            None => Err(Mistake::undeclared(name)),
        }
    }

    fn type_name(&self) -> Known {
        let place = Place::At(Some(Rc::clone(&self.root)));
        let known = Known::of(types::TYPE).costing(cost::SELECT);
        Known { place, ..known }.sized()
    }

    fn check_select(&mut self, node: &IdedExpr, select: &SelectExpr) -> Result<Known, Mistake> {
        if let Some(name) = self.qualified(node)
            && Type::is_name(&name)
        {
            return Ok(self.type_name());
        }
        let operand = self.check(&select.operand)?;
        let (kind, is_optional) = unwrap(&operand.kind);
        let found = field_type(&kind, &select.field)?;
        if is_optional {
            self.plans.insert(node.id, String::new());
        }
        if select.test {
            return Ok(Known::of(types::BOOL).costing(operand.cost).sized());
        }
        let place = self.below(&operand.place, &Step::Field(&select.field));
        let step = match operand.kind {
            Type::Map(..) | Type::Object(_) => cost::SELECT,
            _ => 0,
        };
        let kind = if is_optional {
            Type::Optional(Rc::new(found))
        } else {
            found
        };
        let declared = below(operand.declared.as_deref(), &Step::Field(&select.field));
        let known = Known::of(kind).costing(operand.cost.saturating_add(step));
        let known = Known {
            place,
            declared,
            ..known
        };
        Ok(known.sized())
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

    /// Returns the place that one step leads to. A computed value leads to the root, as in cel-go.
    fn below(&self, place: &Place, step: &Step<'_>) -> Place {
        let from = match place {
            Place::Nowhere => return Place::At(Some(Rc::clone(&self.root))),
            Place::At(from) => from,
        };
        Place::At(match (from, step) {
            // cel-go does not look up fields of maps here.
            (Some(from), Step::Field(name)) => from.field(name),
            (from, step) => below(from.as_deref(), step),
        })
    }

    fn check_list(&mut self, list: &ListExpr) -> Result<Known, Mistake> {
        let mut kind = Type::Open;
        let mut cost = cost::LIST;
        let mut values: Option<Size> = None;
        for (index, element) in list.elements.iter().enumerate() {
            let known = self.check(element)?;
            let found = if list.optional_indices.contains(&index) {
                unwrap(&known.kind).0
            } else {
                known.kind.clone()
            };
            kind = match kind.join(&found) {
                None if self.takes_mixed => Type::Dyn,
                _ => join(&kind, &found)?,
            };
            cost = cost.saturating_add(known.cost);
            let size = known.size_or_any();
            values = Some(values.map_or(size, |all| all.union(size)));
        }
        let known = Known::of(Type::List(Rc::new(kind))).costing(cost);
        Ok(Known {
            size: Some(Size::fixed(list.elements.len() as u64)),
            entries: Some(Entries {
                keys: Size::ONE,
                values: values.unwrap_or(Size::ZERO),
            }),
            ..known
        })
    }

    fn check_map(&mut self, map: &MapExpr) -> Result<Known, Mistake> {
        let (mut key_kind, mut kind) = (Type::Open, Type::Open);
        let mut cost = cost::MAP;
        let mut sizes: Option<Entries> = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else {
                continue;
            };
            let key = self.check(&entry.key)?;
            let value = self.check(&entry.value)?;
            let found = if entry.optional {
                unwrap(&value.kind).0
            } else {
                value.kind.clone()
            };
            key_kind = join(&key_kind, &key.kind)?;
            kind = join(&kind, &found)?;
            cost = cost.saturating_add(key.cost).saturating_add(value.cost);
            let own = Entries {
                keys: key.size_or_any(),
                values: value.size_or_any(),
            };
            sizes = Some(sizes.map_or(own, |all| all.union(own)));
        }
        let known = Known::of(Type::Map(Rc::new(key_kind), Rc::new(kind))).costing(cost);
        Ok(Known {
            size: Some(Size::fixed(map.entries.len() as u64)),
            entries: Some(sizes.unwrap_or(Entries {
                keys: Size::ZERO,
                values: Size::ZERO,
            })),
            ..known
        })
    }

    /// Checks a value that gets a name, as in `optMap`.
    fn check_binding(&mut self, inner: &ComprehensionExpr) -> Result<Known, Mistake> {
        let bound = self.check(&inner.accu_init)?;
        let before = bound.cost.saturating_add(cost::LIST);
        self.scope.push((inner.accu_var.clone(), bound));
        let result = self.check(&inner.result);
        self.scope.pop();
        let result = result?;
        let cost = result.cost.saturating_add(before);
        Ok(Known {
            place: Place::Nowhere,
            ..result.costing(cost)
        })
    }

    fn check_comprehension(&mut self, inner: &ComprehensionExpr) -> Result<Known, Mistake> {
        let range = self.check(&inner.iter_range)?;
        let init = self.check(&inner.accu_init)?;
        let (step, kind) = match &range.kind {
            Type::List(items) => (Step::Element, Type::clone(items)),
            Type::Map(keys, _) => (Step::Key, Type::clone(keys)),
            Type::Dyn | Type::Open => (Step::Key, Type::Dyn),
            other => {
                return Err(Mistake::Wrong(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                )));
            }
        };
        let is_list = matches!(step, Step::Element);
        let place = self.below(&range.place, &step);
        let mut item = Known {
            place,
            declared: below(range.declared.as_deref(), &step),
            ..Known::of(kind)
        }
        .sized();
        if item.size.is_none() {
            let inner = range.entries;
            item.size = inner.map(|inner| if is_list { inner.values } else { inner.keys });
        }
        let outer = self.scope.len();
        self.scope.push((inner.accu_var.clone(), init.clone()));
        self.scope.push((inner.iter_var.clone(), item));
        let around = self.check_around(inner, &init, outer);
        self.scope.truncate(outer);
        let (round, step_entries, result) = around?;
        let rounds = range.size_or_any();
        let cost = [
            range.cost,
            init.cost,
            result.cost,
            rounds.most.saturating_mul(round),
        ];
        let cost = cost.into_iter().fold(0, u64::saturating_add);
        let known = Known::of(result.kind).costing(cost);
        Ok(match &inner.accu_init.expr {
            Expr::Literal(_) => Known {
                size: init.size,
                ..known
            },
            Expr::List(_) | Expr::Map(_) => Known {
                size: Some(rounds),
                entries: step_entries,
                ..known
            },
            _ => known.sized(),
        })
    }

    /// Returns the cost of one iteration, its entries, and the result.
    fn check_around(
        &mut self,
        inner: &ComprehensionExpr,
        init: &Known,
        outer: usize,
    ) -> Result<(u64, Option<Entries>, Known), Mistake> {
        let condition = self.check(&inner.loop_cond)?;
        let step = self.check(&inner.loop_step)?;
        let round = condition.cost.saturating_add(step.cost);
        let kind = join(&init.kind, &step.kind)?;
        // After the loop only the accumulator is in scope, with the type that the steps gave it.
        self.scope.truncate(outer + 1);
        if let Some((_, accumulator)) = self.scope.last_mut() {
            accumulator.kind = kind;
        }
        let result = self.check(&inner.result)?;
        Ok((round, step.entries, result))
    }
}

/// A step from a declared value to one within it.
enum Step<'s> {
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

fn below(from: Option<&Decl>, step: &Step<'_>) -> Option<Rc<Decl>> {
    match (from?, step) {
        (from, Step::Field(name)) => from.field(name).or_else(|| from.value_of_map()),
        (from, Step::Element) => from.element(),
        (from, Step::Key) => from.key(),
    }
}

fn unwrap(kind: &Type) -> (Type, bool) {
    match kind {
        Type::Optional(inner) => (Type::clone(inner), true),
        other => (other.clone(), false),
    }
}

fn join(a: &Type, b: &Type) -> Result<Type, Mistake> {
    a.join(b)
        .ok_or_else(|| Mistake::Wrong(format!("expected type '{a}' but found '{b}'")))
}

fn field_type(kind: &Type, name: &str) -> Result<Type, Mistake> {
    match kind {
        Type::Map(_, values) => Ok(Type::clone(values)),
        Type::Object(decl) => decl
            .field(name)
            .map(|field| field.kind())
            .ok_or_else(|| Mistake::Wrong(format!("undefined field '{name}'"))),
        Type::Dyn | Type::Open => Ok(Type::Dyn),
        other => Err(Mistake::Wrong(format!(
            "type '{other}' does not support field selection"
        ))),
    }
}
