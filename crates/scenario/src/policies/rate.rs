//! Rate controllers by name: the transport's own, and those that it is compared with.

mod fixed;
mod two_state;

use std::sync::Arc;

pub use fixed::{Fixed, FixedFactory};
use tautline_transport::rate::{DelayRateFactory, Factory};
pub use two_state::{TwoState, TwoStateFactory};

/// Rate controller that a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// The two-state rate control of [LTE]: [`TwoState`].
    TwoState,
    /// The transport's own rate control, [`DelayRate`](tautline_transport::rate::DelayRate).
    DelayRate,
    /// The initial rate, regardless of reports: [`Fixed`].
    Fixed,
}

impl Kind {
    /// Returns the factory of the controller, with its default parameters.
    pub fn factory(self) -> Arc<dyn Factory> {
        match self {
            Self::TwoState => Arc::new(TwoStateFactory::default()),
            Self::DelayRate => Arc::new(DelayRateFactory),
            Self::Fixed => Arc::new(FixedFactory),
        }
    }
}
