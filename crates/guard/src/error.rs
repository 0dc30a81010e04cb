/// A setting of the failsafe that cannot work.
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
}
