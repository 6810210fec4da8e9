//! This file goes round a fault in how the `cel` crate (0.13) selects optional fields.

use kube::core::cel::cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr, operators},
};

/// Writes `a.?b` as `a[?'b']`: on a missing field the library's first fails, and its second is right.
pub(crate) fn repair(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Call(call) => {
            if call.func_name == operators::OPT_SELECT {
                operators::OPT_INDEX.clone_into(&mut call.func_name);
            }
            if let Some(target) = &mut call.target {
                repair(target);
            }
            call.args.iter_mut().for_each(repair);
        }
        Expr::Select(select) => repair(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(repair),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    repair(&mut entry.key);
                    repair(&mut entry.value);
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
                repair(part);
            }
        }
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => {}
    }
}
