use tautline_scenario::measure::Unit;
use tautline_units::{ByteCount, Duration, Instant};

/// A unit or datagram sent, with its arrival time; `None` if it never arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) bytes: ByteCount,
    pub(crate) arrived: Option<Instant>,
}

impl Sent {
    pub(super) fn of(unit: &Unit) -> Self {
        let arrived = unit.received.map(|received| received.at);
        Self { at: unit.offered.at, bytes: unit.offered.bytes, arrived }
    }

    /// Returns the time from sending to arrival; `None` if it never arrived.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.arrived.map(|arrived| arrived.since(self.at))
    }
}

/// Returns a hash that identifies a datagram (FNV-1a).
pub(super) fn digest(datagram: &[u8]) -> u64 {
    datagram.iter().fold(0xCBF2_9CE4_8422_2325, |digest, byte| {
        (digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
