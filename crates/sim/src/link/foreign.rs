use std::fmt;

/// A bulk flow of another sender in the link's queue, with unlimited data.
///
/// The link advances it from event to event and takes packets from it while it may send.
pub(super) trait Foreign: fmt::Debug + Send + Sync {
    /// Returns the time of the next event in ns, or `None` if there are no more.
    fn next_at(&self) -> Option<u64>;

    /// Handles all acknowledgements up to `at`.
    fn advance(&mut self, at: u64);

    /// Returns whether a packet of [`PACKET_BYTES`] may leave at `at`.
    fn may_send(&self, at: u64) -> bool;

    /// Records a packet sent at `at` that leaves the queue at `departure`. `arrived` is false if
    /// the queue dropped it; `departure` is then that of the packet before it.
    fn on_sent(&mut self, at: u64, departure: u64, arrived: bool);
}

/// Converts seconds to nanoseconds.
pub(super) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Size of a full TCP packet, IP header included.
pub(super) const PACKET_BYTES: u64 = 1_500;
/// Initial congestion window in packets ([RFC6928]).
pub(super) const WINDOW_FIRST: f64 = 10.0;
