use tautline_units::Bounded;

use crate::Motion;

/// An invalid setting.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting of the guard is out of range.
    #[error("guard.{0}")]
    OutOfBounds(Bounded),
    /// A setting that only the owner of the machine knows is not set.
    #[error("guard.{setting} is missing: {purpose}")]
    Missing {
        /// Name of the setting.
        setting: &'static str,
        /// Meaning of the setting, and its use.
        purpose: &'static str,
    },
    /// A setting has no meaning for a machine of this kind.
    #[error(
        "guard.{setting} is no setting of a machine whose guard.machine.motion is {}",
        .motion.name()
    )]
    Foreign {
        /// Name of the setting.
        setting: &'static str,
        /// Kind of the machine.
        motion: Motion,
    },
    /// Two settings of the guard contradict each other.
    #[error("guard.{lower} = {low} must be at most guard.{upper} = {high}: {reason}")]
    Contradiction {
        /// Setting that must not exceed the other.
        lower: &'static str,
        /// Configured value of `lower`.
        low: f64,
        /// Setting that must be at least as high as `lower`.
        upper: &'static str,
        /// Configured value of `upper`.
        high: f64,
        /// Reason why `lower` must not exceed `upper`.
        reason: &'static str,
    },
}
