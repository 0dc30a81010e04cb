use tautline_units::{Bitrate, ByteCount, Instant};

use super::link::Link;
use super::policy::{Planner, Unit, UnitPlan};
use super::rhythm::Rhythm;
use super::schedule::{Block, Schedule};
use crate::config::Config;
use crate::error::SendError;
use crate::protect::{self, Code};
use crate::wire::stream::REPAIRED_AROUND_BYTES;
use crate::wire::{LinkNumber, Prefix, SYMBOL_AROUND_BYTES};

/// A planner that encodes every unit at one code rate ([LTE] III.A) and assigns each packet to a
/// link by a schedule.
#[derive(Debug)]
pub struct FixedRate {
    schedule: Schedule,
    protect: protect::Config,
    spread: bool,
    budget_share: f64,
    rhythm: Rhythm,
    /// Repair packets of the stream that are due by the code rate; fractions accumulate.
    owed: f64,
    assignment: Vec<Option<usize>>,
}

impl FixedRate {
    /// Creates the planner with the code rate of `config.protect`.
    pub fn new(config: &Config, schedule: Schedule) -> Self {
        Self {
            schedule,
            protect: config.protect.clone(),
            spread: config.spread,
            budget_share: config.budget_share,
            rhythm: Rhythm::new(config.media_deadline),
            owed: 0.0,
            assignment: Vec::new(),
        }
    }

    /// Returns the source bits per second within `granted`: the code rate's share, less our
    /// overhead for at least k source packets per unit.
    fn source(&self, granted: Bitrate, datagram_bytes: ByteCount) -> Bitrate {
        let source = granted.as_f64() * self.budget_share * self.protect.code_rate;
        let share = source * SYMBOL_AROUND_BYTES as f64 / datagram_bytes.get() as f64;
        let interval = self.rhythm.seconds();
        let least = interval.map_or(0.0, |interval| around(source, interval, &self.protect));
        let around = share.max(least).min(source * 0.9);
        Bitrate::from_bps((source - around) as u64)
    }
}

impl Planner for FixedRate {
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError> {
        self.rhythm.on_unit(unit.deadline, now);
        let Some(first) = links.first() else { return Err(SendError::NoLink) };
        let datagram_bytes = first.datagram_bytes.get() as usize;
        let Self { schedule, protect: config, owed, assignment, .. } = self;
        let unit_bytes = unit.bytes.get() as usize;
        let plan = match config.code {
            Code::Block => {
                protect::plan_media(config, unit_bytes, datagram_bytes - SYMBOL_AROUND_BYTES)
            }
            Code::Stream => {
                let payload_bytes_max = datagram_bytes - REPAIRED_AROUND_BYTES;
                protect::plan_stream(unit_bytes, payload_bytes_max, |source_count| {
                    repairs_due(owed, source_count, config.code_rate)
                })
            }
        };
        let packets = plan.map_err(|most| SendError::TooLarge { found: unit.bytes, most })?;
        let block = Block {
            source_count: packets.source_count,
            packet_count: packets.packet_count,
            datagram_bytes: ByteCount::new((packets.symbol_bytes + SYMBOL_AROUND_BYTES) as u64),
            deadline: unit.deadline,
            spread: self.spread,
            now,
        };
        schedule.assign(&block, links, assignment);
        Ok(UnitPlan { packets, assignment })
    }

    fn budget(&self, links: &[Link], _now: Instant) -> Bitrate {
        let Some(first) = links.first() else { return Bitrate::ZERO };
        let mut granted = [Bitrate::ZERO; LinkNumber::COUNT];
        let in_time = links.iter().filter(|link| link.owd < self.rhythm.span());
        let mut count = 0;
        for (granted, link) in granted.iter_mut().zip(in_time) {
            *granted = link.sustained;
            count += 1;
        }
        let granted = &mut granted[..count];
        granted.sort_unstable_by(|a, b| b.cmp(a));
        self.source(self.schedule.usable(granted), first.datagram_bytes)
    }

    fn copies(&self) -> bool {
        self.schedule.copies()
    }
}

/// Returns how many repair packets are due after `source_count` more source packets; the fraction
/// is carried over.
fn repairs_due(owed: &mut f64, source_count: usize, code_rate: f64) -> usize {
    *owed += source_count as f64 * (1.0 / code_rate - 1.0);
    // The small term keeps six sixths at 1.
    let due = (*owed + 1e-9).floor();
    *owed = (*owed - due).max(0.0);
    due as usize
}

/// Returns our overhead in bits per second if units at this interval share `source` bits per
/// second. Fewer bits mean fewer source packets per unit.
fn around(source: f64, interval: f64, protect: &protect::Config) -> f64 {
    let counts = (1..=protect.source_count_min).rev();
    let mut bits = counts.map(|count| {
        let bits = (SYMBOL_AROUND_BYTES * count + Prefix::BYTES) as f64 * 8.0 / interval;
        let unit_bytes = ((source - bits) * interval / 8.0) as usize;
        (bits, protect.source_count_for(unit_bytes) >= count)
    });
    bits.find_map(|(bits, fits)| fits.then_some(bits)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use tautline_units::Duration;

    use super::*;

    fn planner() -> FixedRate {
        FixedRate::new(&Config::default(), Schedule::EarliestDelivery)
    }

    fn budget(planner: &FixedRate, granted: Bitrate) -> u64 {
        let link = Link::new(granted, Duration::from_millis(20));
        planner.budget(&[link], Instant::ZERO).bps()
    }

    #[test]
    fn the_budget_is_the_code_rates_part_less_our_bytes() {
        assert_eq!(budget(&planner(), Bitrate::from_mbps(32)), 14_028_000);
        assert_eq!(budget(&planner(), Bitrate::ZERO), 0);
        assert_eq!(planner().budget(&[], Instant::ZERO), Bitrate::ZERO);
    }

    #[test]
    fn many_small_units_leave_less_for_their_content() {
        let mut planner = planner();
        for unit in 0..3_600 {
            let now = Instant::from_micros(unit * 2_778);
            planner.rhythm.on_unit(now + Duration::from_millis(200), now);
        }
        let told = budget(&planner, Bitrate::from_mbps(4));
        // 1.8 Mbit/s of source, 132 bytes of overhead for each of 360 units a second.
        assert!(told.abs_diff(1_800_000 - 380_160) < 2_000, "{told}");
        // 0.36 Mbit/s of source: two source packets per unit, 70 bytes of overhead.
        let told = budget(&planner, Bitrate::from_kbps(800));
        assert!(told.abs_diff(360_000 - 201_600) < 2_000, "{told}");
    }

    #[test]
    fn the_code_rate_makes_whole_repair_packets_due() {
        let mut owed = 0.0;
        let mut due = |count, code_rate| repairs_due(&mut owed, count, code_rate);
        let each: Vec<usize> = (0..8).map(|_| due(1, 0.8)).collect();
        assert_eq!(each, [0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!((due(4, 0.5), due(1, 1.0)), (4, 0));
        assert_eq!((due(6, 6.0 / 7.0), due(3, 0.6)), (1, 2));
    }
}
