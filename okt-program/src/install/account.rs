//! The service account that an operator runs as.

use std::str::FromStr;

use okt_runtime::__program::is_label;

/// The service account that an operator runs as; parses from `NAMESPACE/NAME`.
///
/// ```
/// use okt::ServiceAccount;
///
/// let account: ServiceAccount = "ops/databases".parse()?;
/// assert_eq!((&*account.namespace, &*account.name), ("ops", "databases"));
/// assert!("databases".parse::<ServiceAccount>().is_err());
/// # Ok::<(), okt::ServiceAccountError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An error for a text that is no service account; correct the text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a service account is written NAMESPACE/NAME, in lower case letters, digits, `-`, and in its name `.`"
)]
pub struct ServiceAccountError;

impl FromStr for ServiceAccount {
    type Err = ServiceAccountError;

    fn from_str(text: &str) -> Result<Self, ServiceAccountError> {
        let (namespace, name) = text.split_once('/').ok_or(ServiceAccountError)?;
        if !is_label(namespace) || name.len() > 253 || !name.split('.').all(is_label) {
            return Err(ServiceAccountError);
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}
