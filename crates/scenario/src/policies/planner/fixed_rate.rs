use tautline_transport::SendError;
use tautline_transport::planner::{Config, Factory, Link, Planner, Unit, UnitPlan};
use tautline_transport::protect::{self, Plan};
use tautline_transport::wire::stream::REPAIRED_AROUND_BYTES;
use tautline_transport::wire::{LinkNumber, Prefix, SYMBOL_AROUND_BYTES};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::interval::Interval;
use super::schedule::{Block, Schedule};

/// Cut of a unit into source packets, and its code rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Code {
    /// Ratio of source packets to all packets, above 0.05 to 1; default 0.5: 4 of 8, the minimum
    /// that survives the loss of one of two links.
    pub rate: f64,
    /// Minimum number of source packets, so that even a small unit spreads over the links; 1 to 64,
    /// default 4 ([LTE] Fig. 15). A unit too small for [`symbol_bytes_min`] in each gets fewer. The
    /// streaming code cuts into as few as possible.
    ///
    /// [`symbol_bytes_min`]: Self::symbol_bytes_min
    pub source_count_min: usize,
    /// Minimum symbol bytes; default 64. A unit too small to fill that many packets with this many
    /// bytes each gets fewer packets, at least two. Below it our overhead and IP's exceed the
    /// unit's bytes, and a slow link carries little else ([LLMLNCL] keeps packets above 500).
    pub symbol_bytes_min: usize,
}

impl Default for Code {
    fn default() -> Self {
        Self { rate: 0.5, source_count_min: 4, symbol_bytes_min: 64 }
    }
}

impl Code {
    /// Returns the default cut with this code rate.
    pub fn of_rate(rate: f64) -> Self {
        Self { rate, ..Self::default() }
    }

    /// Returns the minimum number of source packets for a unit of `unit_bytes` under a block code:
    /// fewer than the configured minimum for a small unit, but at least two if that allows.
    fn source_count_for(&self, unit_bytes: usize) -> usize {
        let filled = unit_bytes.saturating_add(Prefix::BYTES) / self.symbol_bytes_min.max(1);
        filled.clamp(self.source_count_min.min(2), self.source_count_min)
    }
}

/// The factory of [`FixedRate`].
#[derive(Debug, Clone, Copy)]
pub struct FixedRateFactory {
    /// Cut and code rate of every unit, for each new planner.
    pub code: Code,
    /// Rule by which each new planner assigns packets to links.
    pub schedule: Schedule,
}

impl Factory for FixedRateFactory {
    fn planner(&self, config: &Config) -> Box<dyn Planner> {
        Box::new(FixedRate::new(config, self.code, self.schedule))
    }
}

/// A planner that encodes every unit at one code rate ([LTE] III.A) and assigns each packet to a
/// link by a schedule.
#[derive(Debug)]
pub struct FixedRate {
    schedule: Schedule,
    code: Code,
    /// True if units are sent under the streaming code, false under a block code.
    streams: bool,
    spread: bool,
    interval: Interval,
    /// Time from the planning of the last unit to its deadline.
    span: Duration,
    /// Repair packets of the stream that are due by the code rate; fractions accumulate.
    owed: f64,
    assignment: Vec<Option<usize>>,
}

impl FixedRate {
    /// Creates a planner; `config` says which code to use, and whether units are spread.
    pub fn new(config: &Config, code: Code, schedule: Schedule) -> Self {
        Self {
            schedule,
            code,
            streams: config.protect.code == protect::Code::Stream,
            spread: config.spread,
            interval: Interval::default(),
            span: config.media_deadline,
            owed: 0.0,
            assignment: Vec::new(),
        }
    }

    /// Returns the bitrate of units that fits into the granted rates `granted`: [`BUDGET_SHARE`] of
    /// them times the code rate, less our overhead for at least k source packets per unit, at most
    /// nine tenths.
    fn source(&self, granted: Bitrate, datagram_bytes: ByteCount) -> Bitrate {
        let source = granted.as_f64() * BUDGET_SHARE * self.code.rate;
        let share = source * SYMBOL_AROUND_BYTES as f64 / datagram_bytes.get() as f64;
        let interval = self.interval.seconds();
        let least = interval.map_or(0.0, |interval| self.around(source, interval));
        let around = share.max(least).min(source * 0.9);
        Bitrate::from_bps((source - around) as u64)
    }

    /// Returns our overhead in bits per second if units at this interval share `source` bits per
    /// second. Fewer bits mean fewer source packets per unit.
    fn around(&self, source: f64, interval: f64) -> f64 {
        let counts = (1..=self.code.source_count_min).rev();
        let mut bits = counts.map(|count| {
            let bits = (SYMBOL_AROUND_BYTES * count + Prefix::BYTES) as f64 * 8.0 / interval;
            let unit_bytes = ((source - bits) * interval / 8.0) as usize;
            (bits, self.source_count_for(unit_bytes) >= count)
        });
        bits.find_map(|(bits, fits)| fits.then_some(bits)).unwrap_or(0.0)
    }

    /// Returns the minimum number of source packets for a unit of `unit_bytes`: 1 under the
    /// streaming code.
    fn source_count_for(&self, unit_bytes: usize) -> usize {
        if self.streams { 1 } else { self.code.source_count_for(unit_bytes) }
    }
}

impl Planner for FixedRate {
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError> {
        self.interval.on_unit(now);
        self.span = unit.deadline.since(now);
        let Some(first) = links.first() else { return Err(SendError::NoLink) };
        let datagram_bytes = first.datagram_bytes.get() as usize;
        let Self { schedule, code, owed, assignment, .. } = self;
        let unit_bytes = unit.bytes.get() as usize;
        let plan = match self.streams {
            false => plan_block(code, unit_bytes, datagram_bytes - SYMBOL_AROUND_BYTES),
            true => plan_stream(unit_bytes, datagram_bytes - REPAIRED_AROUND_BYTES, |sources| {
                repairs_due(owed, sources, code.rate)
            }),
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
        let in_time = links.iter().filter(|link| link.owd < self.span);
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

/// Plans a unit of `unit_bytes` as a block, for packets that carry `symbol_bytes_max`.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
fn plan_block(code: &Code, unit_bytes: usize, symbol_bytes_max: usize) -> Result<Plan, ByteCount> {
    plan(unit_bytes, symbol_bytes_max, code.source_count_for(unit_bytes), code.rate)
}

/// Plans a unit of `unit_bytes` under the streaming code, for source packets that carry
/// `payload_bytes_max`. `repair_count` maps the number of source packets to that of repair packets.
///
/// # Errors
/// The largest unit that can be planned, if this one is larger.
fn plan_stream(
    unit_bytes: usize,
    payload_bytes_max: usize,
    repair_count: impl FnOnce(usize) -> usize,
) -> Result<Plan, ByteCount> {
    let plan = plan(unit_bytes, payload_bytes_max, 1, 1.0)?;
    Ok(Plan { packet_count: plan.source_count + repair_count(plan.source_count), ..plan })
}

fn plan(
    unit_bytes: usize,
    symbol_bytes_max: usize,
    source_count_min: usize,
    code_rate: f64,
) -> Result<Plan, ByteCount> {
    let content = unit_bytes.saturating_add(Prefix::BYTES);
    let source_count = content.div_ceil(symbol_bytes_max).max(source_count_min);
    let packet_count = packet_count(source_count, code_rate);
    if source_count > SOURCES_MAX || packet_count > PACKETS_MAX {
        let most = (1..=SOURCES_MAX)
            .rev()
            .find(|k| self::packet_count(*k, code_rate) <= PACKETS_MAX)
            .unwrap_or(1);
        return Err(ByteCount::new((most * symbol_bytes_max - Prefix::BYTES) as u64));
    }
    Ok(Plan { source_count, packet_count, symbol_bytes: content.div_ceil(source_count) })
}

fn packet_count(source_count: usize, code_rate: f64) -> usize {
    // The small term keeps 3 / 0.3 at 10.
    (source_count as f64 / code_rate - 1e-9).ceil() as usize
}

/// Share of the granted rates that the budget uses, so that a slice larger than its budget does not
/// leave a queue behind.
const BUDGET_SHARE: f64 = 0.9;
/// Maximum packets of a block: GF(2^8) has room for 256.
const PACKETS_MAX: usize = 256;
/// Maximum source packets of a block: their number k is one byte on the wire.
const SOURCES_MAX: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;

    fn planner() -> FixedRate {
        let config = tautline_transport::Config::default().planning();
        FixedRate::new(&config, Code::default(), Schedule::EarliestDelivery)
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
            planner.interval.on_unit(now);
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

    #[test]
    fn a_small_unit_becomes_four_of_eight() {
        let plan = plan_block(&Code::default(), 1_392, 1_169).unwrap();
        assert_eq!(plan, Plan { source_count: 4, packet_count: 8, symbol_bytes: 350 });
        let tiny = plan_block(&Code::default(), 120, 1_169).unwrap();
        assert_eq!(tiny, Plan { source_count: 2, packet_count: 4, symbol_bytes: 64 });
        let empty = plan_block(&Code::default(), 0, 1_169).unwrap();
        assert_eq!(empty, Plan { source_count: 2, packet_count: 4, symbol_bytes: 4 });
    }

    #[test]
    fn a_large_unit_has_as_many_packets_as_it_needs_up_to_256() {
        let code = Code::default();
        let plan = plan_block(&code, 128 * 1_169 - 8, 1_169).unwrap();
        assert_eq!((plan.source_count, plan.packet_count, plan.symbol_bytes), (128, 256, 1_169));
        let most = ByteCount::new(128 * 1_169 - 8);
        assert_eq!(plan_block(&code, 128 * 1_169 - 7, 1_169), Err(most));
        assert_eq!(plan_block(&code, usize::MAX, 1_169), Err(most));
    }
}
