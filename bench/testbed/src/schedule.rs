//! Due times of the packets.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::clock;
use crate::packet::Packet;

/// Due time of each packet, relative to the start, and the frame to which it belongs. It is stored
/// next to the cell in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule(Vec<Due>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    nanos: u64,
    frame: u64,
}

impl Schedule {
    /// Creates the schedule of packets with a due time and a frame each, in order.
    pub(crate) fn new(due: Vec<(Duration, u32)>) -> Self {
        let due = due.into_iter();
        let due = due.map(|(at, frame)| Due { nanos: clock::nanos(at), frame: frame.into() });
        Self(due.collect())
    }

    /// Creates the schedule of a constant rate in kB/s; each packet is a frame.
    pub(crate) fn constant(rate_kbyte_per_s: u32, seconds: u32) -> Self {
        let bytes = u64::from(rate_kbyte_per_s) * 1000 * u64::from(seconds);
        let nanos = |number: u64| {
            let nanos = u128::from(number) * Packet::BYTES as u128 * 1_000_000;
            (nanos / u128::from(rate_kbyte_per_s)) as u64
        };
        let numbers = 0..bytes.div_ceil(Packet::BYTES as u64);
        Self(numbers.map(|number| Due { nanos: nanos(number), frame: number }).collect())
    }

    /// Returns the number of packets.
    pub(crate) fn packets(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Returns a packet's due time from the start; packets beyond the last one are due with it.
    pub(crate) fn due(&self, number: u32) -> Duration {
        let due = self.0.get(number as usize).or(self.0.last());
        Duration::from_nanos(due.map_or(0, |due| due.nanos))
    }

    /// Returns the frame of a packet; 0 for packets beyond the last one.
    pub(crate) fn frame(&self, number: u32) -> u32 {
        let due = self.0.get(number as usize);
        due.map_or(0, |due| u32::try_from(due.frame).unwrap_or(u32::MAX))
    }

    /// Returns the due time of the last packet in this one's frame, from the start; 0 for packets
    /// beyond the last one.
    pub(crate) fn frame_complete(&self, number: u32) -> Duration {
        let rest = self.0.get(number as usize..).unwrap_or_default();
        let same = rest.iter().take_while(|due| due.frame == rest[0].frame);
        Duration::from_nanos(same.last().map_or(0, |due| due.nanos))
    }

    /// Returns the mean rate up to the last due time, in bytes per second.
    pub(crate) fn rate_bytes_per_s(&self) -> f64 {
        let seconds = self.due(u32::MAX).as_secs_f64().max(1e-3);
        (self.0.len() * Packet::BYTES) as f64 / seconds
    }

    /// Returns the file format: two little-endian numbers of 8 bytes per packet.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = self.0.iter().flat_map(|due| [due.nanos, due.frame]);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("no {}", file.display()))?;
        let (records, rest) = bytes.as_chunks::<16>();
        ensure!(rest.is_empty(), "{} ends within a packet", file.display());
        let due = records.iter().map(|record| {
            let (numbers, _) = record.as_chunks::<8>();
            let [nanos, frame] = [0, 1].map(|at: usize| u64::from_le_bytes(numbers[at]));
            Due { nanos, frame }
        });
        Ok(Self(due.collect()))
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
    fn a_frame_is_complete_with_its_last_packet() {
        let due = [(0, 0), (10, 0), (20, 1), (30, 1), (40, 2)];
        let due = due.map(|(ms, frame)| (Duration::from_millis(ms), frame));
        let schedule = Schedule::new(due.to_vec());
        let complete = [0, 1, 2, 3, 4].map(|number| schedule.frame_complete(number).as_millis());
        assert_eq!(complete, [10, 10, 30, 30, 40]);
        assert_eq!([1, 2, 4].map(|number| schedule.frame(number)), [0, 1, 2]);
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
