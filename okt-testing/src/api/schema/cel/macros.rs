//! Expands the macros of optionals, which the `cel` crate (0.13) leaves as calls.

use kube::core::cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, operators,
};

/// Rewrites `a.optMap(x, f)` as `a.hasValue() ? optional.of(f) : optional.none()`, where `x` is `a.value()`, and
/// `optFlatMap` without the `optional.of`.
///
/// # Errors
/// The first argument is not a name.
pub(super) fn expand(node: &mut IdedExpr) -> Result<(), String> {
    match &mut node.expr {
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                expand(target)?;
            }
            call.args.iter_mut().try_for_each(expand)?;
        }
        Expr::Select(select) => expand(&mut select.operand)?,
        Expr::List(list) => list.elements.iter_mut().try_for_each(expand)?,
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    expand(&mut entry.key)?;
                    expand(&mut entry.value)?;
                }
            }
        }
        Expr::Comprehension(inner) => {
            for part in [
                &mut inner.iter_range,
                &mut inner.accu_init,
                &mut inner.loop_cond,
                &mut inner.loop_step,
                &mut inner.result,
            ] {
                expand(part)?;
            }
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => {}
    }
    if let Expr::Call(call) = &mut node.expr
        && matches!(call.func_name.as_str(), "optMap" | "optFlatMap")
        && call.target.is_some()
        && call.args.len() == 2
    {
        node.expr = expand_optional(std::mem::take(call))?;
    }
    Ok(())
}

fn expand_optional(call: CallExpr) -> Result<Expr, String> {
    let is_flat = call.func_name == "optFlatMap";
    let (Some(target), Ok([name, body])) = (call.target, <[IdedExpr; 2]>::try_from(call.args))
    else {
        return Err(format!("{} takes a name and an expression", call.func_name));
    };
    let Expr::Ident(name) = name.expr else {
        return Err(format!(
            "{}() variable name must be a simple identifier",
            call.func_name
        ));
    };
    let value = method("value", IdedExpr::clone(&target));
    let bound = node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node(Expr::List(ListExpr::default())),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.clone(),
        accu_init: value,
        loop_cond: node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: node(Expr::Ident(name)),
        result: body,
    })));
    let some = if is_flat {
        bound
    } else {
        library("optional", "of", vec![bound])
    };
    Ok(Expr::Call(CallExpr {
        func_name: operators::CONDITIONAL.to_owned(),
        target: None,
        args: vec![
            method("hasValue", *target),
            some,
            library("optional", "none", Vec::new()),
        ],
    }))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn method(name: &str, target: IdedExpr) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args: Vec::new(),
    }))
}

fn library(library: &str, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(node(Expr::Ident(library.to_owned())))),
        args,
    }))
}
