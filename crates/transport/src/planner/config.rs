use tautline_units::Duration;

use crate::protect;

/// Parameters of the planners, from the session's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Parameters of the erasure code that protects media units.
    pub protect: protect::Config,
    /// True if a media unit must survive the loss of any one link.
    pub spread: bool,
    /// Assumed lifetime of media units before the first one is handed over.
    pub media_deadline: Duration,
}
