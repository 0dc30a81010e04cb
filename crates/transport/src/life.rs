/// The life of a link ([UGV]: no video on a path that does not answer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No pong has come yet: pings only.
    Validating,
    /// Pongs come.
    Up,
    /// Pongs have stopped: pings and, if no link is up, commands.
    Silent,
}
