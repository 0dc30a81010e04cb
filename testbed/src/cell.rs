//! One cell of the matrix: a transport, what is offered to it, and the network.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::packet::Packet;
use crate::transport::Transport;

/// One run. The same cell gives the same result, to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) transport: Transport,
    /// Offered, in thousands of bytes a second.
    pub(crate) rate_kbyte_per_s: u32,
    /// Lost on the way there, of all packets, independently.
    pub(crate) loss_percent: f64,
    pub(crate) rtt_ms: u32,
    pub(crate) seed: u64,
    /// How long packets are offered.
    pub(crate) seconds: u32,
}

impl Cell {
    /// Returns a name for files, which no other cell has.
    pub(crate) fn name(&self) -> String {
        let Self { transport, rate_kbyte_per_s, loss_percent, rtt_ms, seed, seconds } = self;
        format!("{transport}_{rate_kbyte_per_s}_{loss_percent}_{rtt_ms}_{seconds}s_{seed}")
    }

    /// Returns when packet `number` is due after the first.
    pub(crate) fn due(&self, number: u64) -> Duration {
        let nanos = u128::from(number) * Packet::BYTES as u128 * 1_000_000;
        Duration::from_nanos((nanos / u128::from(self.rate_kbyte_per_s)) as u64)
    }

    /// Returns how long packets are offered.
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// Returns how many packets the application has in that time.
    pub(crate) fn offered(&self) -> u64 {
        let bytes = u64::from(self.rate_kbyte_per_s) * 1000 * u64::from(self.seconds);
        bytes.div_ceil(Packet::BYTES as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 2 of the paper, in microseconds.
    const INTERVALS: [(u32, u128); 4] = [(450, 2951), (700, 1897), (1200, 1106), (2000, 664)];

    #[test]
    fn packets_are_due_as_the_paper_says() {
        for (rate, micros) in INTERVALS {
            let cell = cell(rate);
            assert_eq!(cell.due(1).as_micros(), micros);
            assert!(cell.due(cell.offered() - 1) < cell.duration());
            assert!(cell.due(cell.offered()) >= cell.duration());
        }
    }

    #[test]
    fn names_tell_cells_apart() {
        let other = Cell { loss_percent: 0.4, ..cell(450) };
        assert_eq!(cell(450).name(), "udp-lite_450_5_20_10s_1");
        assert_eq!(other.name(), "udp-lite_450_0.4_20_10s_1");
    }

    fn cell(rate_kbyte_per_s: u32) -> Cell {
        let (transport, loss_percent, rtt_ms) = (Transport::UdpLite, 5.0, 20);
        Cell { transport, rate_kbyte_per_s, loss_percent, rtt_ms, seed: 1, seconds: 10 }
    }
}
