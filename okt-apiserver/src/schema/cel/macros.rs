//! Expands the macros of optionals, which the `cel` crate (0.13) leaves as calls.

use kube::core::cel::cel::IdedExpr;
use kube::core::cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, operators,
};

use super::node;

/// Rewrites `a.optMap(x, f)` as `a.hasValue() ? optional.of(f) : optional.none()`, where `x` is `a.value()`, and
/// `optFlatMap` without the `optional.of`.
///
/// # Errors
/// The first argument is not a name.
pub(super) fn expand(node: &mut IdedExpr) -> Result<(), String> {
    node::parts(node).into_iter().try_for_each(expand)?;
    if let Expr::Call(call) = &mut node.expr
        && matches!(call.func_name.as_str(), "optMap" | "optFlatMap")
        && call.target.is_some()
        && call.args.len() == 2
    {
        *node = expand_optional(std::mem::take(call))?;
    }
    Ok(())
}

fn expand_optional(call: CallExpr) -> Result<IdedExpr, String> {
    let macro_name = call.func_name;
    let (Some(target), Ok([name, body])) = (call.target, <[IdedExpr; 2]>::try_from(call.args))
    else {
        return Err(format!("{macro_name} takes a name and an expression"));
    };
    let Expr::Ident(name) = name.expr else {
        return Err(format!(
            "{macro_name}() variable name must be a simple identifier"
        ));
    };
    let has_value = node::method(IdedExpr::clone(&target), "hasValue", Vec::new());
    // The same comprehension as that of `cel.bind`: it iterates over nothing and only names a value.
    let bound = node::node(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: node::node(Expr::List(ListExpr::default())),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name.clone(),
        accu_init: node::method(*target, "value", Vec::new()),
        loop_cond: node::node(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: node::name(&name),
        result: body,
    })));
    let library = |name: &str, args| node::method(node::name("optional"), name, args);
    let some = if macro_name == "optFlatMap" {
        bound
    } else {
        library("of", vec![bound])
    };
    let none = library("none", Vec::new());
    let args = vec![has_value, some, none];
    Ok(node::call(operators::CONDITIONAL, args))
}
