//! This file refuses rules that exceed the cost limits of the API server.

use super::rule::Rule;
use crate::api::{
    refusal::Cause,
    schema::{Additional, Schema, Type},
};

/// The maximum cost of one expression, over all the places of an object where it runs.
const OF_EXPRESSION: u64 = 10_000_000;
/// The maximum cost of all expressions of a schema.
const OF_SCHEMA: u64 = 100_000_000;

/// Adds the rules of a schema that exceed a cost limit to `causes`.
pub(crate) fn check_costs(root: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let mut bill = Bill::default();
    bill.add(root, path, Some(1), causes);
    if bill.total <= OF_SCHEMA {
        return;
    }
    bill.dearest
        .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    for (_, path) in bill.dearest.into_iter().take(4) {
        causes.push(Cause::forbidden(
            path,
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
        ));
    }
    let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    causes.push(Cause::forbidden(
        path,
        &too_much(what, bill.total, OF_SCHEMA),
    ));
}

/// The total cost of the rules of a schema.
#[derive(Default)]
struct Bill {
    total: u64,
    dearest: Vec<(u64, String)>,
}

impl Bill {
    /// Adds the rules of a schema. `times` is the maximum number of its values in one object, if that is limited.
    fn add(&mut self, schema: &Schema, path: &str, times: Option<u64>, causes: &mut Vec<Cause>) {
        let below = match (schema.kind, &schema.additional) {
            (Some(Type::Array), _) => multiply(times, schema.max_items),
            (Some(Type::Object), Additional::Of(_) | Additional::Anything) => {
                multiply(times, schema.max_properties)
            }
            _ => times,
        };
        if let Additional::Of(values) = &schema.additional {
            self.add(
                values,
                &format!("{path}.additionalProperties"),
                below,
                causes,
            );
        }
        for (name, property) in &schema.properties {
            self.add(
                property,
                &format!("{path}.properties[{name}]"),
                below,
                causes,
            );
        }
        if let Some(items) = &schema.items {
            self.add(items, &format!("{path}.items"), below, causes);
        }
        for rule in &schema.rules {
            self.add_rule(rule, path, times, causes);
        }
    }

    fn add_rule(&mut self, rule: &Rule, path: &str, times: Option<u64>, causes: &mut Vec<Cause>) {
        let path = format!("{path}.x-kubernetes-validations[{}]", rule.index);
        let cost = rule
            .cost
            .saturating_mul(times.unwrap_or(rule.most_in_request));
        self.take(cost, format!("{path}.rule"), "estimated rule cost", causes);
        if let Some(cost) = rule.message_cost {
            let field = format!("{path}.messageExpression");
            self.take(cost, field, "estimated messageExpression cost", causes);
        }
    }

    fn take(&mut self, cost: u64, field: String, what: &str, causes: &mut Vec<Cause>) {
        self.total = self.total.saturating_add(cost);
        if cost > OF_EXPRESSION {
            causes.push(Cause::forbidden(
                field.clone(),
                &too_much(what, cost, OF_EXPRESSION),
            ));
        }
        if cost >= OF_SCHEMA / 100 {
            self.dearest.push((cost, field));
        }
    }
}

fn multiply(times: Option<u64>, limit: Option<u64>) -> Option<u64> {
    Some(times?.saturating_mul(limit?))
}

fn too_much(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "it is shown with few digits")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
