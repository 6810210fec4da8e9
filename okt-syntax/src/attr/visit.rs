//! The attribute `#[visit]`, with the types of a request: `#[visit(args = RestoreArgs, result = RestoreResult)]`.

use okt_core::Mark;
use okt_core::check::Rule;
use syn::Attribute;

use super::{Attributes, spot};
use crate::items;
use crate::report::ErrorReport;

impl Attributes {
    /// Reads `#[visit]`.
    pub(super) fn visit(&mut self, report: &mut ErrorReport, attr: &Attribute) {
        let own = spot(report, attr);
        self.set(report, attr, Mark::Visit, own);
        let (mut seen, mut result) = (Vec::new(), None);
        for item in items::of_attribute(report, attr).unwrap_or_default() {
            match item.word().as_deref() {
                Some("args") if item.once(report, &mut seen) => {
                    self.marks.push((Mark::Args, item.spot));
                    self.args = item.r#type(report, "args");
                }
                Some("result") if item.once(report, &mut seen) => {
                    result = Some(item.spot);
                    self.result = item.r#type(report, "result");
                }
                Some("args" | "result") => {}
                _ => item.unknown(report, &["args", "result"]),
            }
        }
        if let Some(result) = result.filter(|_| !self.has(Mark::Args)) {
            report.error(
                Rule::Arguments,
                result,
                "only a request has a `result`, and this visit takes no arguments",
                "write `#[visit(args = .., result = ..)]`",
            );
        }
    }
}
