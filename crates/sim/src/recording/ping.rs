/// One line of a recording: time and round trip, `None` if lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ping {
    pub(super) at: u64,
    pub(super) rtt: Option<u64>,
    pub(super) line: usize,
}
