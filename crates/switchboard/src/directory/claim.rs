use super::told::Told;

/// A request of a vehicle or an operator to be registered under a name.
#[derive(Debug)]
pub(super) enum Claim {
    Vehicle(String, Told),
    Operator(String, Told),
}

impl Claim {
    /// Returns the data that the end reports with this registration.
    pub(super) fn told(&self) -> &Told {
        match self {
            Self::Vehicle(_, told) | Self::Operator(_, told) => told,
        }
    }
}
