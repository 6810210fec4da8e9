//! Builds the nodes of an expression, and finds those below one.

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};

/// A node without a place in the text of a rule.
pub(super) fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

pub(super) fn name(name: &str) -> IdedExpr {
    node(Expr::Ident(name.to_owned()))
}

pub(super) fn text(text: &str) -> IdedExpr {
    node(Expr::Literal(LiteralValue::String(text.into())))
}

/// The call of a function or an operator.
pub(super) fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    }))
}

/// The call of a method, or of the function of a library.
pub(super) fn method(target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args,
    }))
}

/// The nodes directly below a node.
pub(super) fn parts(node: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut node.expr {
        Expr::Call(call) => {
            let target = call.target.as_deref_mut();
            target.into_iter().chain(&mut call.args).collect()
        }
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter_mut();
            let parts = entries.flat_map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
                EntryExpr::StructField(_) => Vec::new(),
            });
            parts.collect()
        }
        Expr::Comprehension(inner) => vec![
            &mut inner.iter_range,
            &mut inner.accu_init,
            &mut inner.loop_cond,
            &mut inner.loop_step,
            &mut inner.result,
        ],
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => Vec::new(),
    }
}
