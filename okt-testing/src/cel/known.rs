//! This file holds what is known of the value of an expression before there is one.

use std::rc::Rc;

use kube::core::cel::cel::common::ast::LiteralValue;

use super::{
    cost::{Entries, Size},
    decl::Decl,
    types::Type,
};

/// What is known of the value of an expression before there is one.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) kind: Type,
    /// The most that evaluating it can cost.
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    pub(super) entries: Option<Entries>,
    pub(super) place: Place,
    /// The schema of the value, or of what is in the optional.
    pub(super) declared: Option<Rc<Decl>>,
    /// The number that is written there.
    pub(super) literal: Option<i64>,
}

/// Where in the declared values an expression points.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// It is computed.
    Nowhere,
    /// There, or where nothing is declared.
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

    /// The size of what is written out, declared or of a fixed size, in this order.
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

    /// Of what is written out.
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
