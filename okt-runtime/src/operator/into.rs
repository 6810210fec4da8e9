//! What an operator can be made of.

use kube::Client;

use crate::author::application::Application;
use crate::operator::Operator;

/// An [`Operator`], or an [`Application`] for an operator with default settings.
pub trait IntoOperator {
    /// The application of the operator.
    type Application: Application;

    /// Returns the operator.
    fn into_operator(self, client: Client) -> Operator<Self::Application>;
}

impl<A: Application> IntoOperator for A {
    type Application = A;

    fn into_operator(self, client: Client) -> Operator<A> {
        Operator::new(client, self)
    }
}

impl<A: Application> IntoOperator for Operator<A> {
    type Application = A;

    fn into_operator(self, _: Client) -> Operator<A> {
        self
    }
}
