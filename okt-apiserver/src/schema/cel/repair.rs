//! Prepares an expression for the `cel` crate (0.13): it rewrites calls that the crate evaluates wrongly, and
//! adds the schema to calls that depend on it.

use std::collections::BTreeMap;

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{Expr, SelectExpr, operators};

use super::types::Type;
use super::{merge, node, quantifier};

/// Rewrites these parts of an expression:
///
/// - `a.?b` as `a[?'b']`: the library fails for the first on a missing field, and evaluates the second correctly.
/// - Comparisons and sums of declared sets and maps, by `plans`, as calls of this crate's functions.
/// - Fields of a value in an optional, and `all` and `exists`.
/// - The dotted name of a type as one name.
pub(super) fn repair(node: &mut IdedExpr, plans: &BTreeMap<u64, String>) {
    if let Some(name) = qualified(node).filter(|name| Type::is_name(name)) {
        node.expr = Expr::Ident(name);
    }
    if let Expr::Call(call) = &mut node.expr
        && call.func_name == operators::OPT_SELECT
    {
        operators::OPT_INDEX.clone_into(&mut call.func_name);
    }
    for part in node::parts(node) {
        repair(part, plans);
    }
    if let Some(plan) = plans.get(&node.id) {
        merge(node, plan);
    }
    if let Expr::Comprehension(inner) = &mut node.expr {
        quantifier::rewrite(inner);
    }
}

/// Returns a name with dots (e.g. `net.IP`).
fn qualified(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

/// Calls this crate's function with the plan as the first argument.
fn merge(node: &mut IdedExpr, plan: &str) {
    match &mut node.expr {
        Expr::Select(select) => *node = select_of_optional(std::mem::take(select)),
        Expr::Call(call) => {
            let is_negated = call.func_name == operators::NOT_EQUALS;
            let name = if call.func_name == operators::ADD {
                merge::ADD
            } else {
                merge::EQUALS
            };
            name.clone_into(&mut call.func_name);
            call.args.insert(0, node::text(plan));
            if is_negated {
                let equal = node::node(std::mem::take(&mut node.expr));
                *node = node::call(operators::LOGICAL_NOT, vec![equal]);
            }
        }
        _ => {}
    }
}

/// Rewrites `a.b` as `a[?'b']`, where `a` is an optional.
fn select_of_optional(select: SelectExpr) -> IdedExpr {
    let args = vec![*select.operand, node::text(&select.field)];
    let found = node::call(operators::OPT_INDEX, args);
    if select.test {
        return node::method(found, "hasValue", Vec::new());
    }
    found
}
