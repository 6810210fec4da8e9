//! This file holds the facts that are known about an expression before its evaluation.

use std::rc::Rc;

use kube::core::cel::cel::common::ast::LiteralValue;

use super::{
    decl::Decl,
    size::{Entries, Size},
    types::Type,
};

/// The facts that are known about the value of an expression before its evaluation.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) kind: Type,
    /// The maximum cost of its evaluation.
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    pub(super) entries: Option<Entries>,
    pub(super) place: Place,
    /// The schema of the value, or of the value in the optional.
    pub(super) declared: Option<Rc<Decl>>,
    /// The number, if the expression is an integer literal.
    pub(super) literal: Option<i64>,
}

/// The place among the declared values that an expression points to.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The value is computed.
    Nowhere,
    /// This declaration, or a place without one.
    At(Option<Rc<Decl>>),
}

impl Known {
    pub(super) fn of(kind: Type) -> Self {
        Self {
            kind,
            cost: 0,
            size: None,
            entries: None,
            place: Place::Nowhere,
            declared: None,
            literal: None,
        }
    }

    pub(super) fn costing(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Sets the size: that of the literal, else the declared maximum, else the fixed size of a scalar.
    pub(super) fn sized(mut self) -> Self {
        if self.size.is_none()
            && let Place::At(Some(decl)) = &self.place
        {
            self.size = Some(Size::up_to(decl.most));
        } else if self.size.is_none() && self.kind.is_scalar() {
            self.size = Some(Size::ONE);
        }
        self
    }

    /// Returns the facts about a literal.
    pub(super) fn of_literal(literal: &LiteralValue) -> Self {
        let (kind, size) = match literal {
            LiteralValue::Boolean(_) => ("bool", 1),
            LiteralValue::Bytes(bytes) => ("bytes", bytes.inner().len() as u64),
            LiteralValue::Double(_) => ("double", 1),
            LiteralValue::Int(_) => ("int", 1),
            LiteralValue::Null => ("null_type", 1),
            LiteralValue::String(text) => ("string", text.inner().chars().count() as u64),
            LiteralValue::UInt(_) => ("uint", 1),
        };
        let number = match literal {
            LiteralValue::Int(number) => Some(*number.inner()),
            _ => None,
        };
        Self {
            size: Some(Size::fixed(size)),
            literal: number,
            ..Self::of(Type::parse(kind))
        }
    }

    pub(super) fn size_or_any(&self) -> Size {
        self.size.unwrap_or(Size::ANY)
    }
}
