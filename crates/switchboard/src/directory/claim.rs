use super::told::Told;

/// Registration of a vehicle or an operator under a name.
#[derive(Debug)]
pub(super) enum Claim {
    Vehicle(String, Told),
    Operator(String, Told),
}

impl Claim {
    /// Returns the reported data.
    pub(super) fn told(&self) -> &Told {
        match self {
            Self::Vehicle(_, told) | Self::Operator(_, told) => told,
        }
    }
}
