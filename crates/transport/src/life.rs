/// The liveness state of a link ([UGV]: no video over a path that does not answer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No pong has arrived yet: pings only.
    Validating,
    /// Pongs arrive.
    Up,
    /// Pongs have stopped: pings and, if no link is up, commands.
    Silent,
}
