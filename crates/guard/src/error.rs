/// An invalid setting.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting of the guard is out of range.
    #[error("guard.{setting} = {value}: must be {min} to {max}")]
    OutOfBounds {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        value: f64,
        /// Minimum value.
        min: f64,
        /// Maximum value.
        max: f64,
    },
    /// Two settings of the guard contradict each other.
    #[error("guard.{lower} = {low} must be at most guard.{upper} = {high}: {reason}")]
    Contradiction {
        /// Setting that must not exceed the other.
        lower: &'static str,
        /// Its value.
        low: f64,
        /// Setting that must be at least as high.
        upper: &'static str,
        /// Its value.
        high: f64,
        /// Reason for the order.
        reason: &'static str,
    },
}
