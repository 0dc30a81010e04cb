//! Rate controllers by name: the transport's own, and those that it is compared with.

mod fixed;
mod two_state;

use std::sync::Arc;

pub use fixed::{Fixed, FixedFactory};
use tautline_transport::rate::{DelayRateFactory, Factory};
pub use two_state::{TwoState, TwoStateFactory};

/// Name of a rate controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// [`TwoState`].
    TwoState,
    /// [`DelayRate`](tautline_transport::rate::DelayRate).
    DelayRate,
    /// [`Fixed`].
    Fixed,
}

impl Kind {
    /// Returns the factory of these controllers.
    pub fn factory(self) -> Arc<dyn Factory> {
        match self {
            Self::TwoState => Arc::new(TwoStateFactory::default()),
            Self::DelayRate => Arc::new(DelayRateFactory),
            Self::Fixed => Arc::new(FixedFactory),
        }
    }
}
