//! Record of received packets.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::packet::Packet;

/// All packets that the receiving application got, in that order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) arrivals: Vec<Arrival>,
}

/// One packet and its arrival time, on the machine's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) packet: Packet,
    pub(crate) at_nanos: u64,
}

impl Log {
    pub(crate) fn push(&mut self, packet: Packet, at_nanos: u64) {
        self.arrivals.push(Arrival { packet, at_nanos });
    }

    /// Returns the log's file format: 24 bytes per packet, three little-endian numbers of 8 bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self
            .arrivals
            .iter()
            .flat_map(|arrival| {
                [arrival.packet.number.into(), arrival.packet.due_nanos, arrival.at_nanos]
            })
            .flat_map(u64::to_le_bytes);
        numbers.collect()
    }

    /// Parses the output of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// If the bytes end within a packet, or a packet's number has more than 32 bits.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let (records, rest) = bytes.as_chunks::<24>();
        ensure!(rest.is_empty(), "a log of {} bytes ends within a packet", bytes.len());
        let arrivals = records.iter().map(|record| {
            let (numbers, _) = record.as_chunks::<8>();
            let [number, due_nanos, at_nanos] =
                [0, 1, 2].map(|at: usize| u64::from_le_bytes(numbers[at]));
            let number = u32::try_from(number).context("a number beyond those of packets")?;
            Ok(Arrival { packet: Packet { number, due_nanos }, at_nanos })
        });
        Ok(Self { arrivals: arrivals.collect::<Result<_>>()? })
    }

    pub(crate) fn read(file: &Path) -> Result<Self> {
        Self::parse(&std::fs::read(file).with_context(|| format!("no log {}", file.display()))?)
    }

    /// Returns a hash (FNV-1a) that is practically unique to this log.
    pub(crate) fn digest(&self) -> u64 {
        let bytes = self.to_bytes();
        bytes.iter().fold(0xCBF2_9CE4_8422_2325, |digest, byte| {
            (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let mut log = Log::default();
        assert_eq!(Log::parse(&log.to_bytes()).unwrap(), log);
        let empty = log.digest();
        log.push(Packet { number: 3, due_nanos: 5 }, 9);
        assert_eq!(Log::parse(&log.to_bytes()).unwrap(), log);
        assert_ne!(log.digest(), empty);
        assert!(Log::parse(&log.to_bytes()[1..]).is_err());
    }
}
