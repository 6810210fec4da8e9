//! The agent under test, as a user of the test describes it.

use std::fmt;
use std::pin::Pin;

use crate::client::{Client, Endpoint, EndpointError};

/// The states whose work the test requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct States {
    /// A state whose work succeeds within about a second.
    pub brief: String,
    /// A state whose work fails, but not permanently.
    pub failing: String,
    /// A state whose work continues until it is cancelled.
    pub endless: String,
}

pub(super) type Killed = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// An agent to check.
pub struct Subject {
    pub(super) client: Client,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) states: States,
    pub(super) restart: Option<Box<dyn Fn() -> Killed + Send + Sync>>,
    pub(super) only: Option<Vec<String>>,
}

impl Subject {
    /// Returns a subject for the agent at an endpoint.
    ///
    /// # Errors
    ///
    /// See [`Client::new`].
    pub fn new(endpoint: Endpoint, states: States) -> Result<Self, EndpointError> {
        let client = Client::new(&endpoint)?;
        Ok(Self {
            endpoint: Some(endpoint),
            ..Self::behind(client, states)
        })
    }

    /// Returns a subject for the agent of a client. Checks that need their own connections are skipped.
    pub fn behind(client: Client, states: States) -> Self {
        Self {
            client,
            endpoint: None,
            states,
            restart: None,
            only: None,
        }
    }

    /// Sets how to kill the agent as `kill -9` does and start it again with the same records.
    #[must_use]
    pub fn restart<F>(mut self, restart: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.restart = Some(Box::new(move || Box::pin(restart())));
        self
    }

    /// Restricts the test to the checks of these [`names`](super::names).
    #[must_use]
    pub fn only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.only = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("client", &self.client)
            .field("states", &self.states)
            .finish_non_exhaustive()
    }
}
