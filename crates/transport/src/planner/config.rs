use tautline_units::Duration;

use crate::protect;

/// Parameters of the planners, from the session's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Coding of media units.
    pub protect: protect::Config,
    /// True if a unit must survive the loss of any one link.
    pub spread: bool,
    /// Assumed lifetime of a unit before the first one.
    pub media_deadline: Duration,
}
