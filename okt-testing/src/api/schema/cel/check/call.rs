//! Checks the calls of functions and operators.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use kube::core::cel::cel::common::ast::{CallExpr, Expr, LiteralValue, operators};
use kube::core::cel::cel::{ExecutionError, IdedExpr, Value as CelValue};

use super::super::functions::FUNCTIONS;
use super::super::types::{Bindings, Type};
use super::super::{library, merge};
use super::{Checker, DeclStep, Known, RuleMistake, below, field_type, unwrap};

impl Checker {
    /// Returns the known facts about the result of a function.
    pub(super) fn check_call(&mut self, id: u64, call: &CallExpr) -> Result<Known, RuleMistake> {
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
        let given: Vec<&Type> = target
            .iter()
            .chain(&arguments)
            .map(|one| &one.kind)
            .collect();
        let mut fitting = Vec::new();
        for overload in overloads.iter() {
            let mut bound = Bindings::new();
            if overload.is_method == target.is_some()
                && overload.parameters.len() == given.len()
                && overload
                    .parameters
                    .iter()
                    .zip(&given)
                    .all(|(wanted, given)| wanted.takes(given, &mut bound))
            {
                fitting.push((overload, overload.result.fill(&bound)));
            }
        }
        let Some((_, first)) = fitting.first() else {
            return Err(no_overload(&name, target.as_ref(), &arguments));
        };
        let same = fitting
            .iter()
            .all(|(_, kind)| kind.to_string() == first.to_string());
        let kind = if same { first.clone() } else { Type::Dyn };
        if !is_operator(&name) && !exists(&name) {
            return Err(RuleMistake::Lacking(name));
        }
        check_literals(&name, call)?;
        if let (operators::EQUALS | operators::NOT_EQUALS | operators::ADD, Some(left)) =
            (name.as_str(), arguments.first())
        {
            let plan = left.declared.as_deref().and_then(merge::plan);
            if let Some(plan) = plan {
                self.plans.insert(id, plan.to_string());
            } else if name != operators::ADD && arguments.iter().any(|one| one.kind.is_open()) {
                // The library compares numbers of different types only in functions.
                self.plans.insert(id, "null".to_owned());
            }
        }
        let declared = match (name.as_str(), &target, arguments.first()) {
            (operators::INDEX | operators::OPT_INDEX, _, Some(operand)) => {
                below(operand.declared.as_deref(), &DeclStep::Element)
            }
            (operators::ADD, _, Some(left)) => left.declared.clone(),
            (operators::CONDITIONAL, ..) => arguments[1].declared.clone(),
            ("value" | "orValue" | "or", Some(target), _) => target.declared.clone(),
            ("optional.of", _, Some(value)) => value.declared.clone(),
            _ => None,
        };
        Ok(Known { kind, declared })
    }

    /// Checks `a.?b`, which is an optional for every type of `a`.
    fn check_optional_select(&mut self, call: &CallExpr) -> Result<Known, RuleMistake> {
        let [operand, field] = call.args.as_slice() else {
            return Err(RuleMistake::undeclared(&call.func_name));
        };
        let operand = self.check(operand)?;
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            return Err(RuleMistake::Wrong(
                "unsupported optional field selection".to_owned(),
            ));
        };
        let found = field_type(&unwrap(&operand.kind).0, name.inner())?;
        Ok(Known {
            kind: Type::Optional(Rc::new(found)),
            declared: below(operand.declared.as_deref(), &DeclStep::Field(name.inner())),
        })
    }
}

fn no_overload(name: &str, target: Option<&Known>, arguments: &[Known]) -> RuleMistake {
    let is_logical = matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR);
    let other = arguments.iter().find(|one| !one.kind.is("bool"));
    if let (true, Some(other)) = (is_logical, other) {
        return RuleMistake::Wrong(format!("expected type 'bool' but found '{}'", other.kind));
    }
    let list = arguments
        .iter()
        .map(|one| one.kind.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let owner = target.map_or_else(String::new, |target| format!("{}.", target.kind));
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
            let node = IdedExpr {
                id: 0,
                expr: Expr::Call(call.clone()),
            };
            let value = catch_unwind(AssertUnwindSafe(|| CelValue::resolve(&node, &FUNCTIONS)));
            matches!(value, Ok(Ok(_)))
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
    let call = IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args: Vec::new(),
        }),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| CelValue::resolve(&call, &FUNCTIONS)));
    !matches!(outcome, Ok(Err(ExecutionError::UndeclaredReference(_))))
}
