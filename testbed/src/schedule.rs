//! When the application has each packet.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::clock;
use crate::packet::Packet;

/// When each packet is due after the first could be, in nanoseconds; what lies beside the cell in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule(Vec<u64>);

impl Schedule {
    pub(crate) fn new(due: Vec<Duration>) -> Self {
        Self(due.into_iter().map(clock::nanos).collect())
    }

    /// Returns that of a constant rate, in thousands of bytes a second.
    pub(crate) fn constant(rate_kbyte_per_s: u32, seconds: u32) -> Self {
        let bytes = u64::from(rate_kbyte_per_s) * 1000 * u64::from(seconds);
        let nanos = |number: u64| {
            let nanos = u128::from(number) * Packet::BYTES as u128 * 1_000_000;
            (nanos / u128::from(rate_kbyte_per_s)) as u64
        };
        Self((0..bytes.div_ceil(Packet::BYTES as u64)).map(nanos).collect())
    }

    /// Returns how many packets there are.
    pub(crate) fn packets(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Returns when a packet is due; all beyond the last one are due with it.
    pub(crate) fn due(&self, number: u32) -> Duration {
        let due = self.0.get(number as usize).or(self.0.last());
        Duration::from_nanos(due.copied().unwrap_or_default())
    }

    /// Returns it as it stands on disk: numbers of 8 bytes, little endian.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().copied().flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("no {}", file.display()))?;
        let (numbers, rest) = bytes.as_chunks();
        ensure!(rest.is_empty(), "{} ends within a number", file.display());
        Ok(Self(numbers.iter().copied().map(u64::from_le_bytes).collect()))
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
            let schedule = Schedule::constant(rate, 10);
            assert_eq!(schedule.due(1).as_micros(), micros);
            assert!(schedule.due(schedule.packets() - 1) < Duration::from_secs(10));
            let all = u64::from(schedule.packets()) * Packet::BYTES as u64;
            assert!(all >= u64::from(rate) * 10_000);
        }
    }

    #[test]
    fn a_schedule_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("testbed-schedule-{}", std::process::id()));
        let schedule = Schedule::constant(450, 1);
        std::fs::write(&folder, schedule.to_bytes()).unwrap();
        assert_eq!(Schedule::read(&folder).unwrap(), schedule);
        std::fs::remove_file(&folder).unwrap();
    }
}
