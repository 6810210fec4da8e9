//! Finds the fields of a value that a rule uses: the value is bound without the others, which may be most of a
//! large object.

use std::collections::BTreeMap;

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{EntryExpr, Expr};

/// The part of a value that an expression uses.
pub(super) enum Used {
    /// These fields, by their CEL names; with none, only whether the value is there.
    Fields(BTreeMap<String, Used>),
    Whole,
}

impl Used {
    const fn nothing() -> Self {
        Self::Fields(BTreeMap::new())
    }

    /// Returns what expressions use of `self` and `oldSelf` together.
    pub(super) fn by<'e>(expressions: impl IntoIterator<Item = &'e IdedExpr>) -> Self {
        let mut used = Self::nothing();
        for expression in expressions {
            used.visit(expression);
        }
        used
    }

    fn visit(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Ident(name) if is_value(name) => *self = Self::Whole,
            Expr::Select(select) => match self.below(&select.operand) {
                Some(part) => {
                    let field = part.field(&select.field);
                    // `has` only asks whether the field is there.
                    if !select.test {
                        *field = Self::Whole;
                    }
                }
                None => self.visit(&select.operand),
            },
            Expr::Call(call) => {
                let target = call.target.as_deref();
                let asked = target.filter(|_| call.func_name == "hasValue");
                if asked.is_some_and(
                    |target| matches!(&target.expr, Expr::Ident(name) if is_value(name)),
                ) {
                    return;
                }
                let parts = target.into_iter().chain(&call.args);
                parts.for_each(|part| self.visit(part));
            }
            Expr::List(list) => list.elements.iter().for_each(|part| self.visit(part)),
            Expr::Map(map) => {
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            self.visit(&entry.key);
                            self.visit(&entry.value);
                        }
                        EntryExpr::StructField(field) => self.visit(&field.value),
                    }
                }
            }
            Expr::Comprehension(inner) => {
                for part in [
                    &inner.iter_range,
                    &inner.accu_init,
                    &inner.loop_cond,
                    &inner.loop_step,
                    &inner.result,
                ] {
                    self.visit(part);
                }
            }
            Expr::Struct(_) => *self = Self::Whole,
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        }
    }

    /// Returns the part at a path (`self.a.b`); none if the node is no path.
    fn below(&mut self, node: &IdedExpr) -> Option<&mut Self> {
        match &node.expr {
            Expr::Ident(name) if is_value(name) => Some(self),
            Expr::Select(select) if !select.test => {
                Some(self.below(&select.operand)?.field(&select.field))
            }
            _ => None,
        }
    }

    /// Returns the part that is a field of this one; of a whole, that whole.
    fn field(&mut self, name: &str) -> &mut Self {
        match self {
            Self::Fields(fields) => fields.entry(name.to_owned()).or_insert_with(Self::nothing),
            Self::Whole => self,
        }
    }
}

/// Returns whether a variable is the value of the rule, or that value before.
fn is_value(name: &str) -> bool {
    name == "self" || name == "oldSelf"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::cel::parse::parse_plain;

    /// Returns the fields in brackets; `*` is a whole.
    fn shown(used: &Used) -> String {
        match used {
            Used::Whole => "*".to_owned(),
            Used::Fields(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, below)| format!("{name}{}", shown(below)))
                    .collect();
                format!("({})", fields.join(" "))
            }
        }
    }

    #[test]
    fn a_rule_uses_the_fields_that_it_names_and_all_of_a_value_that_it_takes_as_one() {
        for (rule, used) in [
            ("true", "()"),
            ("self.a > oldSelf.b", "(a* b*)"),
            ("has(self.a) && has(self.b.c)", "(a() b(c()))"),
            ("has(self.a) && self.a.b == 1", "(a(b*))"),
            ("self.a.b == 1 && self.a.size() == 1", "(a*)"),
            ("self.a.size() == 1 && self.a.b == 1", "(a*)"),
            ("self.a[self.b] in {self.c: self.d}", "(a* b* c* d*)"),
            (
                "self.a.all(x, x.b > self.c) || [self.d].exists(x, x)",
                "(a* c* d*)",
            ),
            ("oldSelf.hasValue() || self.a == 1", "(a*)"),
            ("oldSelf.value().a == self.a", "*"),
            ("self == oldSelf", "*"),
            ("[1].all(x, self == 1) && self.a == 1", "*"),
        ] {
            let expression = parse_plain(rule).expect("an expression");
            assert_eq!(shown(&Used::by([&expression])), used, "{rule}");
        }
    }
}
