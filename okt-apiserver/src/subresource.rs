//! [`Subresource`]: the endpoint of an object that a write goes to.

/// The endpoint of an object that a write goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Scale,
    /// The conditions of a request for a certificate.
    Approval,
    EphemeralContainers,
    Resize,
}

impl Subresource {
    /// Returns its name in paths; empty for the object itself.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Approval => "approval",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
        }
    }

    /// Whether only the status is written.
    pub(crate) fn is_status(self) -> bool {
        matches!(self, Self::Status | Self::Approval)
    }
}
