/// The liveness state of a link ([UGV]: no video over a path that does not answer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No pong has arrived yet: the link carries pings and pongs only.
    Validating,
    /// Pongs arrive: the link may carry everything.
    Up,
    /// Pongs have stopped for the link timeout: the link carries pings and pongs and, if no link is
    /// live, commands, feedback and telemetry.
    Silent,
}
