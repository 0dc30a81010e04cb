/// A setting that cannot work.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The time without a fresh command is too short or too long.
    #[error("failsafe.command_timeout_ms = {millis}: must be 50 to 5000")]
    CommandTimeout {
        /// What was set, in milliseconds.
        millis: u128,
    },
    /// The age of a fresh command is too low or too high.
    #[error("failsafe.command_age_max_ms = {millis}: must be 20 to 5000")]
    CommandAgeMax {
        /// What was set, in milliseconds.
        millis: u128,
    },
    /// The brake of a stop is too weak to be one, or more than there is.
    #[error("failsafe.brake = {brake}: must be more than 0.2, at most 1")]
    Brake {
        /// What was set.
        brake: f32,
    },
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
