//! Checks the calls of functions and operators.

use std::rc::Rc;

use kube::core::cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

use super::super::functions::FUNCTIONS;
use super::super::types::Type;
use super::super::{NoValue, evaluate, library, merge, node};
use super::{Checker, RuleMistake, field_type, unwrap};

impl Checker {
    /// Returns the type of the result of a function.
    pub(super) fn check_call(&mut self, id: u64, call: &CallExpr) -> Result<Type, RuleMistake> {
        if call.func_name == operators::OPT_SELECT {
            return self.check_optional_select(call);
        }
        let mut name = call.func_name.clone();
        let mut target = None;
        if let Some(node) = &call.target {
            let outer = self.qualified(node).map(|outer| format!("{outer}.{name}"));
            match outer.filter(|outer| library::overloads(outer).is_some()) {
                // The function belongs to a library (e.g. `sets.contains`), not to a value.
                Some(outer) => name = outer,
                None if library::MACROS.contains(&name.as_str()) => {
                    return Err(RuleMistake::Lacking(name));
                }
                None => target = Some(self.check(node)?),
            }
        }
        let mut arguments = Vec::new();
        let is_macro = target.is_some()
            && call.args.len() == 3
            && matches!(name.as_str(), "all" | "exists" | "existsOne" | "exists_one");
        if is_macro {
            return Err(RuleMistake::Lacking(format!("{name} with two variables")));
        }
        let outside = std::mem::replace(&mut self.takes_mixed, name == "format");
        for argument in &call.args {
            arguments.push(self.check(argument)?);
        }
        self.takes_mixed = outside;
        let overloads = library::overloads(&name).ok_or_else(|| RuleMistake::undeclared(&name))?;
        let is_method = target.is_some();
        let given: Vec<&Type> = target.iter().chain(&arguments).collect();
        let possible: Vec<_> = overloads
            .iter()
            .filter(|overload| overload.is_method == is_method)
            .filter_map(|overload| overload.result_for(&given))
            .collect();
        let Some(first) = possible.first() else {
            return Err(no_overload(&name, target.as_ref(), &arguments));
        };
        let is_one = |kind: &Type| kind.to_string() == first.to_string();
        let mut kind = first.clone();
        if !possible.iter().all(is_one) {
            kind = Type::Dyn;
        }
        if !is_operator(&name) && !exists(&name) {
            return Err(RuleMistake::Lacking(name));
        }
        check_literals(&name, call)?;
        if let (operators::EQUALS | operators::NOT_EQUALS | operators::ADD, Some(left)) =
            (name.as_str(), arguments.first())
        {
            if let Some(plan) = merge::plan(left) {
                self.plans.insert(id, plan.to_string());
            } else if name != operators::ADD && arguments.iter().any(Type::is_open) {
                // The library compares numbers of different types only in functions.
                self.plans.insert(id, "null".to_owned());
            }
        }
        if let (operators::ADD, Type::List(_, sum), Some(Type::List(_, left))) =
            (name.as_str(), &mut kind, arguments.first())
        {
            sum.clone_from(left);
        }
        Ok(kind)
    }

    /// Checks `a.?b`, which is an optional for every type of `a`.
    fn check_optional_select(&mut self, call: &CallExpr) -> Result<Type, RuleMistake> {
        let [operand, field] = call.args.as_slice() else {
            return Err(RuleMistake::undeclared(&call.func_name));
        };
        let operand = self.check(operand)?;
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            return Err(RuleMistake::Wrong(
                "unsupported optional field selection".to_owned(),
            ));
        };
        let found = field_type(&unwrap(operand).0, name.inner())?;
        Ok(Type::Optional(Rc::new(found)))
    }
}

fn no_overload(name: &str, target: Option<&Type>, arguments: &[Type]) -> RuleMistake {
    let is_logical = matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR);
    let other = arguments.iter().find(|one| !one.is("bool"));
    if let (true, Some(other)) = (is_logical, other) {
        return RuleMistake::Wrong(format!("expected type 'bool' but found '{other}'"));
    }
    let types: Vec<_> = arguments.iter().map(Type::to_string).collect();
    let list = types.join(", ");
    let owner = target.map_or_else(String::new, |target| format!("{target}."));
    RuleMistake::Wrong(format!(
        "found no matching overload for '{name}' applied to '{owner}({list})'"
    ))
}

/// Checks literals that are used as a pattern, a duration or a time.
fn check_literals(name: &str, call: &CallExpr) -> Result<(), RuleMistake> {
    let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|node| &node.expr)
    else {
        return Ok(());
    };
    let holds = match name {
        "matches" => regex::Regex::new(text.inner()).is_ok(),
        "duration" | "timestamp" => {
            let call = node::node(Expr::Call(call.clone()));
            evaluate(&call, &FUNCTIONS).is_ok()
        }
        _ => true,
    };
    if holds {
        Ok(())
    } else {
        Err(RuleMistake::Wrong(format!("invalid {name} argument")))
    }
}

fn is_operator(name: &str) -> bool {
    name.starts_with(['_', '!', '-', '@'])
}

/// Whether the library has this function. It is called without arguments, because the registry cannot be read.
fn exists(name: &str) -> bool {
    let call = node::call(name, Vec::new());
    !matches!(evaluate(&call, &FUNCTIONS), Err(NoValue::NotKnown(_)))
}
