/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting of the guard is out of its bounds.
    #[error("guard.{setting} = {value}: must be {min} to {max}")]
    OutOfBounds {
        /// Which one.
        setting: &'static str,
        /// What was set.
        value: f64,
        /// The least that works.
        min: f64,
        /// The most that works.
        max: f64,
    },
    /// Two settings of the guard contradict each other.
    #[error("guard.{lower} = {low} must be at most guard.{upper} = {high}: {reason}")]
    Contradiction {
        /// The one that is too high beside the other.
        lower: &'static str,
        /// What it comes to.
        low: f64,
        /// The one that is too low beside it.
        upper: &'static str,
        /// What it comes to.
        high: f64,
        /// Why it must be so.
        reason: &'static str,
    },
}
