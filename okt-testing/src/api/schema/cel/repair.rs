//! Prepares an expression for the `cel` crate (0.13): it rewrites calls that the crate evaluates wrongly, and
//! adds the schema to calls that depend on it.

use std::collections::BTreeMap;

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{
    CallExpr, EntryExpr, Expr, LiteralValue, SelectExpr, operators,
};

use super::types::Type;
use super::{merge, quantifier};

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
    match &mut node.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            if let Some(target) = &mut call.target {
                repair(target, plans);
            }
            for argument in &mut call.args {
                repair(argument, plans);
            }
        }
        Expr::Select(select) => repair(&mut select.operand, plans),
        Expr::List(list) => list
            .elements
            .iter_mut()
            .for_each(|node| repair(node, plans)),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    repair(&mut entry.key, plans);
                    repair(&mut entry.value, plans);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            for part in [
                &mut comprehension.iter_range,
                &mut comprehension.accu_init,
                &mut comprehension.loop_cond,
                &mut comprehension.loop_step,
                &mut comprehension.result,
            ] {
                repair(part, plans);
            }
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => {}
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
    if let Expr::Select(select) = &mut node.expr {
        let select = std::mem::take(select);
        node.expr = select_of_optional(select);
        return;
    }
    let Expr::Call(call) = &mut node.expr else {
        return;
    };
    let negated = call.func_name == operators::NOT_EQUALS;
    let name = if call.func_name == operators::ADD {
        merge::ADD
    } else {
        merge::EQUALS
    };
    name.clone_into(&mut call.func_name);
    let plan = Expr::Literal(LiteralValue::String(plan.into()));
    call.args.insert(0, IdedExpr { id: 0, expr: plan });
    if negated {
        let inner = IdedExpr {
            id: 0,
            expr: std::mem::take(&mut node.expr),
        };
        node.expr = Expr::Call(CallExpr {
            func_name: operators::LOGICAL_NOT.to_owned(),
            target: None,
            args: vec![inner],
        });
    }
}

/// Rewrites `a.b` as `a[?'b']`, where `a` is an optional.
fn select_of_optional(select: SelectExpr) -> Expr {
    let field = Expr::Literal(LiteralValue::String(select.field.as_str().into()));
    let found = Expr::Call(CallExpr {
        func_name: operators::OPT_INDEX.to_owned(),
        target: None,
        args: vec![*select.operand, IdedExpr { id: 0, expr: field }],
    });
    if !select.test {
        return found;
    }
    Expr::Call(CallExpr {
        func_name: "hasValue".to_owned(),
        target: Some(Box::new(IdedExpr { id: 0, expr: found })),
        args: Vec::new(),
    })
}
