//! Transport-wide feedback: arrival times of packets, with a resolution of a quarter of a
//! millisecond.

use std::time::Duration;

use tautline_units::Instant;

/// One report: as large on the wire as WebRTC's, slightly more than two bytes per packet.
pub(super) struct Feedback {
    first: u32,
    base: Instant,
    ticks: Vec<u16>,
}

/// A collector of arrivals for the next report.
#[derive(Default)]
pub(super) struct Collector {
    first: u32,
    arrivals: Vec<(u32, Instant)>,
}

impl Collector {
    pub(super) fn note(&mut self, number: u32, at: Instant) {
        if number >= self.first {
            self.arrivals.push((number, at));
        }
    }

    /// Returns the report of the arrivals since the last one, with the packets missing among them
    /// as lost; `None` if nothing arrived.
    pub(super) fn report(&mut self) -> Option<Feedback> {
        let base = self.arrivals.first()?.1;
        let last = self.arrivals.iter().map(|(number, _)| *number).max()?;
        let mut ticks = vec![LOST; (last - self.first + 1) as usize];
        for (number, at) in self.arrivals.drain(..) {
            let since = at.since(base).as_nanos() / TICK.as_nanos();
            ticks[(number - self.first) as usize] = since.min(u128::from(LOST - 1)) as u16;
        }
        let first = std::mem::replace(&mut self.first, last + 1);
        Some(Feedback { first, base, ticks })
    }
}

impl Feedback {
    pub(super) fn packets(&self) -> impl Iterator<Item = (u32, Option<Instant>)> {
        let came = |ticks: u16| (ticks != LOST).then(|| self.base + TICK * u32::from(ticks));
        (self.first..).zip(self.ticks.iter().map(move |ticks| came(*ticks)))
    }

    pub(super) fn write(&self, datagram: &mut Vec<u8>) {
        datagram.extend_from_slice(&self.first.to_be_bytes());
        datagram.extend_from_slice(&self.base.as_nanos().to_be_bytes());
        datagram.extend(self.ticks.iter().flat_map(|ticks| ticks.to_be_bytes()));
    }

    pub(super) fn parse(datagram: &[u8]) -> Option<Self> {
        let (first, rest) = datagram.split_first_chunk()?;
        let (base, rest) = rest.split_first_chunk()?;
        let ticks = rest.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
        Some(Self {
            first: u32::from_be_bytes(*first),
            base: Instant::from_nanos(u64::from_be_bytes(*base)),
            ticks: ticks.collect(),
        })
    }
}

const TICK: Duration = Duration::from_micros(250);
const LOST: u16 = u16::MAX;
