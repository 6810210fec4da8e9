//! Lets `all` and `exists` continue after an item whose predicate fails, as cel-go does: one deciding item is
//! enough.

use std::sync::Arc;

use kube::core::cel::cel::common::ast::{ComprehensionExpr, Expr, LiteralValue, operators};
use kube::core::cel::cel::objects::Opaque;
use kube::core::cel::cel::{Context, ExecutionError, FunctionContext, ResolveResult, Value};

use super::node;

const ALL: &str = "@all";
const EXISTS: &str = "@exists";
const SETTLE: &str = "@settle";

pub(super) fn add(context: &mut Context<'_>) {
    context.add_function(ALL, |cx: &FunctionContext| step(cx, false));
    context.add_function(EXISTS, |cx: &FunctionContext| step(cx, true));
    context.add_function(SETTLE, settle);
}

/// Rewrites the comprehension of `all` or `exists`.
pub(super) fn rewrite(inner: &mut ComprehensionExpr) {
    let starts_with_bool = matches!(
        inner.accu_init.expr,
        Expr::Literal(LiteralValue::Boolean(_))
    );
    let Expr::Call(step) = &mut inner.loop_step.expr else {
        return;
    };
    let name = match step.func_name.as_str() {
        operators::LOGICAL_AND => ALL,
        operators::LOGICAL_OR => EXISTS,
        _ => return,
    };
    let accumulates = matches!(
        step.args.first().map(|node| &node.expr),
        Some(Expr::Ident(name)) if *name == inner.accu_var
    );
    if !starts_with_bool || !accumulates {
        return;
    }
    name.clone_into(&mut step.func_name);
    let result = std::mem::take(&mut inner.result);
    inner.result = node::call(SETTLE, vec![result]);
}

/// The error of an item whose predicate failed.
#[derive(Debug, PartialEq)]
struct QuantifierError(ExecutionError);

// The errors of the crate hold floats; none of them is NaN here.
impl Eq for QuantifierError {}

impl Opaque for QuantifierError {
    fn runtime_type_name(&self) -> &'static str {
        "error"
    }
}

/// Combines the result so far with that of this item; the value `deciding` decides the result.
fn step(cx: &FunctionContext<'_, '_>, deciding: bool) -> ResolveResult {
    let [before, item] = cx.args else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let before = Value::resolve(before, cx.ptx)?;
    Ok(match Value::resolve(item, cx.ptx) {
        Ok(Value::Bool(held)) if held == deciding => held.into(),
        Ok(Value::Bool(_)) => before,
        Ok(_) => Value::Opaque(Arc::new(QuantifierError(ExecutionError::NoSuchOverload))),
        // An unknown name is an error of the rule, not of the item.
        Err(error @ ExecutionError::UndeclaredReference(_)) => return Err(error),
        Err(error) => Value::Opaque(Arc::new(QuantifierError(error))),
    })
}

/// Returns the result, or the error of an item that failed.
fn settle(result: Value) -> ResolveResult {
    match &result {
        Value::Opaque(opaque) => match opaque.downcast_ref::<QuantifierError>() {
            Some(QuantifierError(error)) => Err(error.clone()),
            None => Ok(result),
        },
        _ => Ok(result),
    }
}
