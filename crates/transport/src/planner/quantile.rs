use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::config::Config;
use super::link::Link;
use super::policy::{Factory, Planner, Unit, UnitPlan};
use super::price::Price;
use super::shares::{self, LinkBudget, Shares};
use super::unit_interval::UnitInterval;
use crate::error::SendError;
use crate::protect::Code;
use crate::wire::stream::REPAIRED_AROUND_BYTES;
use crate::wire::{LinkNumber, SYMBOL_AROUND_BYTES};

/// A planner that chooses size, repair and shares together so that a unit arrives with the
/// probability demanded by `protect.miss_target`: docs/decisions/0012-quantile-of-the-sum.md.
#[derive(Debug)]
pub struct Quantile {
    price: Price,
    code: Code,
    /// True if units must survive the loss of any one link.
    spread: bool,
    /// True if the links other than the fastest carry enough to make that survival worthwhile at
    /// present.
    survival_pays: bool,
    /// Smoothed rate and on-time probability of each link, by link number.
    weights: [Weight; LinkNumber::COUNT],
    /// Time at which `weights` was last updated; [`Instant::ZERO`] before the first unit.
    weighed_at: Instant,
    /// Minimum media budget, as far as the links carry it.
    floor: Bitrate,
    unit_interval: UnitInterval,
    /// Bytes by which media in flight may exceed each link's window, as of the last unit.
    reserve: ByteCount,
    /// Time of the last repair packet sent to probe each link without media, by link number;
    /// [`Instant::ZERO`] before the first.
    probed_at: [Instant; LinkNumber::COUNT],
    assignment: Vec<Option<usize>>,
}

/// The factory of [`Quantile`].
#[derive(Debug, Clone, Copy)]
pub struct QuantileFactory;

impl Factory for QuantileFactory {
    fn planner(&self, config: &Config) -> Box<dyn Planner> {
        Box::new(Quantile::new(config))
    }
}

/// Smoothed state of a link: its rate in bit/s, and the probability that its packets arrive in
/// time.
#[derive(Debug, Clone, Copy)]
struct Weight {
    rate: f64,
    probability: f64,
}

impl Weight {
    /// State before the first sample: no rate, and assumed reliable.
    const NONE: Self = Self { rate: 0.0, probability: 1.0 };
}

impl Quantile {
    /// Creates the planner for `config.protect.miss_target`.
    pub fn new(config: &Config) -> Self {
        Self {
            price: Price::new(config.protect.miss_target),
            code: config.protect.code,
            spread: config.spread,
            survival_pays: true,
            weights: [Weight::NONE; LinkNumber::COUNT],
            weighed_at: Instant::ZERO,
            floor: config.protect.floor,
            unit_interval: UnitInterval::new(config.media_deadline),
            reserve: ByteCount::ZERO,
            probed_at: [Instant::ZERO; LinkNumber::COUNT],
            assignment: Vec::new(),
        }
    }

    /// Returns whether units must survive the loss of any one link at present.
    fn is_spread(&self) -> bool {
        self.spread && self.survival_pays
    }

    /// Updates the smoothed `weights`, and `survival_pays` from them. Survival pays while the other
    /// links together carry a sufficient share of what the fastest carries, smoothed and at
    /// present. It also pays while they alone carry more than all links are worth without that
    /// protection, given the reliability of the fastest. It always pays with fewer than two links.
    fn weigh_survival(&mut self, links: &[Link], budgets: &[LinkBudget], now: Instant) {
        let elapsed = now.since(self.weighed_at).as_secs_f64();
        self.weighed_at = now;
        let share = 1.0 - (-elapsed / WEIGHED_OVER.as_secs_f64()).exp();
        let (mut sum, mut fastest) = (0.0, Weight::NONE);
        for (link, budget) in links.iter().zip(budgets) {
            let weight = &mut self.weights[usize::from(link.number.get())];
            weight.rate += (link.rate.as_f64() - weight.rate) * share;
            weight.probability += (budget.probability - weight.probability) * share;
            sum += weight.rate;
            if weight.rate > fastest.rate {
                fastest = *weight;
            }
        }
        let least = if self.survival_pays { SURVIVAL_LEFT } else { SURVIVAL_BEGINS };
        let rates = || links.iter().map(|link| link.rate.as_f64());
        let most = rates().fold(0.0, f64::max);
        let others = rates().sum::<f64>() - most;
        let worth = sum - fastest.rate >= least * fastest.rate && others >= SURVIVAL_NOW * most;
        let price = self.price.target(self.spread).price * FAILURE_DEARER;
        let (_, unprotected) = shares::worth(1.0, fastest.probability, price);
        let needed = others >= SURVIVAL_NEEDED * most && others >= unprotected * (others + most);
        self.survival_pays = links.len() < 2 || worth || needed;
    }

    /// Returns for each link how much it can carry of a unit with lifetime `span`, and its on-time
    /// probability for a unit whose packets it takes the time `taken` to send.
    fn budgets(
        &self,
        links: &[Link],
        span: Duration,
        taken: Duration,
        now: Instant,
    ) -> [LinkBudget; LinkNumber::COUNT] {
        let interval = self.unit_interval.interval();
        let granted = granted(links);
        let reserve = reserve(self.floor.min(granted), span, interval);
        let mut budgets = [LinkBudget::NONE; LinkNumber::COUNT];
        for (budget, link) in budgets.iter_mut().zip(links) {
            let wait = link.free_at.since(now);
            let bytes = |time: Duration| (link.rate * time).get() as f64;
            let headroom = span.saturating_sub(wait + taken + link.owd);
            let left = span.saturating_sub(wait + link.owd);
            let unreported = (link.in_flight + link.queued).get() as f64;
            let pace = (media_rate(link, granted) * interval).get() as f64;
            // When the last packets of a picture leave, much of what is in flight now has been
            // reported.
            let ahead = if interval >= FAR_APART { pace } else { 0.0 };
            *budget = LinkBudget {
                pace,
                in_time: (granted < THIN).then(|| bytes(left)),
                credit: bytes(CREDIT_TIME) - bytes(wait),
                room: link
                    .window
                    .map_or(f64::INFINITY, |most| most.get() as f64 + ahead - unreported),
                reserve,
                idle: wait.is_zero(),
                probability: link.on_time.at(headroom).get(),
                loss: link.loss.get(),
            };
        }
        budgets
    }

    /// Returns how long the links take to send the packets of a unit that is shared among them: one
    /// unit interval, or less for a small unit when units are far apart.
    fn taken(&self, unit: ByteCount, links: &[Link]) -> Duration {
        let interval = self.unit_interval.interval();
        match interval >= FAR_APART {
            true => granted(links).time_for(unit).min(interval),
            false => interval,
        }
    }

    /// Returns the unit size in bytes that the links carry within the target, for a unit with
    /// lifetime `span`.
    ///
    /// If units are far apart, the last packets of a large unit have little time left. A part of
    /// the links' capacity until the next unit may then be worth more. `whole` holds the budgets of
    /// a unit that uses all of that capacity.
    fn size(
        &self,
        links: &[Link],
        whole: &[LinkBudget],
        span: Duration,
        symbol_bytes: usize,
        now: Instant,
    ) -> f64 {
        let target = self.price.target(self.is_spread());
        let is_thin = granted(links) < THIN;
        let size_of = |budgets: &[LinkBudget]| {
            let bytes = shares::size(budgets, &target, symbol_bytes);
            match is_thin {
                true => shares::size_as_planned(bytes, budgets, &target, symbol_bytes),
                false => bytes,
            }
        };
        let interval = self.unit_interval.interval();
        if interval < FAR_APART {
            return size_of(whole);
        }
        let sizes = LOADS.iter().map(|load| {
            let mut budgets = self.budgets(links, span, interval.mul_f64(load * LONGER), now);
            let budgets = &mut budgets[..links.len()];
            budgets.iter_mut().for_each(|budget| budget.pace *= load);
            size_of(budgets)
        });
        sizes.fold(0.0, f64::max)
    }

    /// Returns the maximum rate of media units that the links carry, regardless of reliability,
    /// without headers and reduced by queueing. If units must survive the loss of a link and there
    /// are several, the fastest does not count. It caps the floor.
    fn carried(&self, links: &[Link], now: Instant) -> Bitrate {
        let half = self.unit_interval.span().as_secs_f64() / 2.0;
        let granted = granted(links);
        let rate = |link: &Link| {
            let wait = link.free_at.since(now).as_secs_f64();
            media_rate(link, granted).as_f64() * (1.0 - wait / half).clamp(0.0, 1.0)
        };
        let (sum, most) = links
            .iter()
            .map(rate)
            .fold((0.0_f64, 0.0_f64), |(sum, most), rate| (sum + rate, most.max(rate)));
        // Spread units count what survives the loss of the fastest link, and one packet's overhead
        // on each of two links.
        let (rate, packets) = match self.is_spread() && links.len() > 1 {
            true => (sum - most, 2.0),
            false => (sum, 1.0),
        };
        let around = packets * SYMBOL_AROUND_BYTES as f64 * 8.0;
        let around = around / self.unit_interval.interval().as_secs_f64();
        Bitrate::from_bps((rate - around).max(rate * SOURCE_LEAST) as u64)
    }
}

/// Returns the part of the link's rate that is left for media; `granted` is the total rate of all
/// links. If that is at least [`THIN`], it is the link's whole rate, because the other traffic is
/// small.
fn media_rate(link: &Link, granted: Bitrate) -> Bitrate {
    match granted < THIN {
        true => (link.rate - link.control_rate).max(link.rate.scale(MEDIA_LEAST)),
        false => link.rate,
    }
}

/// Returns the sum of the links' pacing rates.
fn granted(links: &[Link]) -> Bitrate {
    Bitrate::from_bps(links.iter().map(|link| link.rate.bps()).sum())
}

impl Planner for Quantile {
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError> {
        self.unit_interval.on_unit(unit.deadline, now);
        let Some(first) = links.first() else { return Err(SendError::NoLink) };
        let around = match self.code {
            Code::Block => SYMBOL_AROUND_BYTES,
            Code::Stream => REPAIRED_AROUND_BYTES,
        };
        let (unit_bytes, symbol_bytes_max) =
            (unit.bytes.get() as usize, first.datagram_bytes.get() as usize - around);
        let taken = self.taken(unit.bytes, links);
        let budgets = self.budgets(links, unit.deadline.since(now), taken, now);
        self.weigh_survival(links, &budgets, now);
        self.reserve = ByteCount::new(budgets[0].reserve as u64);
        let target = self.price.target(self.is_spread());
        let shares = shares::plan(unit_bytes, symbol_bytes_max, &budgets[..links.len()], &target);
        let Some(Shares { plan: mut packets, mut counts }) = shares else {
            let most = ByteCount::new(shares::unit_bytes_max(symbol_bytes_max) as u64);
            return Err(match unit.bytes > most {
                true => SendError::TooLarge { found: unit.bytes, most },
                false => SendError::Congested,
            });
        };
        // A link without traffic yields no measurements: it occasionally gets a repair packet.
        let datagram = ByteCount::new((packets.symbol_bytes + SYMBOL_AROUND_BYTES) as u64);
        for (count, link) in counts.iter_mut().zip(links) {
            let probed_at = &mut self.probed_at[usize::from(link.number.get())];
            let idle = *count == 0 && now.since(link.media_at.max(*probed_at)) >= PROBE_INTERVAL;
            let most = link.window.map(|window| window + self.reserve);
            let has_room = most.is_none_or(|most| link.in_flight + datagram < most);
            if idle && packets.packet_count < PACKETS_MAX && has_room {
                *count = 1;
                packets.packet_count += 1;
                *probed_at = now;
            }
        }
        self.assignment.clear();
        // Packets of a link are interleaved in the block, so that its failure affects source and
        // repair packets alike.
        while self.assignment.len() < packets.packet_count {
            for (place, count) in counts.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                *count -= 1;
                self.assignment.push(Some(place));
            }
        }
        Ok(UnitPlan { packets, assignment: &self.assignment })
    }

    fn budget(&self, links: &[Link], now: Instant) -> Bitrate {
        let Some(first) = links.first() else { return Bitrate::ZERO };
        let (span, interval) = (self.unit_interval.span(), self.unit_interval.interval());
        let budgets = self.budgets(links, span, interval, now);
        let budgets = &budgets[..links.len()];
        let room = |budget: &LinkBudget| budget.room + budget.reserve;
        if !budgets.iter().any(|budget| room(budget) >= ROOM_LEAST) {
            // No window has room, so no link is confirmed to deliver.
            return Bitrate::ZERO;
        }
        let symbol_bytes = first.datagram_bytes.get() as usize - SYMBOL_AROUND_BYTES;
        let bits =
            self.size(links, budgets, span, symbol_bytes, now) * 8.0 / interval.as_secs_f64();
        Bitrate::from_bps(bits as u64).max(self.floor.min(self.carried(links, now)))
    }

    fn reserve(&self) -> ByteCount {
        self.reserve
    }

    fn on_delivery_report(&mut self, delivered: u64, lost: u64) {
        self.price.on_delivery_report(delivered, lost);
    }

    fn on_missed(&mut self, by_chance: bool) {
        self.price.on_missed(by_chance);
    }
}

/// Returns the bytes by which units at the rate `floor` may exceed a link's window in flight: those
/// of one lifetime `span`, with the headers of one packet per `interval`.
///
/// The window holds back packets that would only lengthen a stall. Small units lengthen it little.
/// Those of its last `span` arrive in time if they wait inside the link rather than here. The
/// sender learns of a stall's end half a round trip late.
fn reserve(floor: Bitrate, span: Duration, interval: Duration) -> f64 {
    let units = span.as_secs_f64() / interval.as_secs_f64();
    (floor * span).get() as f64 + SYMBOL_AROUND_BYTES as f64 * units
}

/// Smoothed rate of the other links, as a share of the fastest link's, below which units need no
/// longer survive the loss of any one link. A small link must not hold a large one down.
const SURVIVAL_LEFT: f64 = 0.5;
/// Smoothed rate of the other links, as a share of the fastest link's, from which units must
/// survive the loss of any one link again.
const SURVIVAL_BEGINS: f64 = 0.7;
/// Current rate of the other links, as a share of the fastest link's, below which units need not
/// survive the loss of one either: of two links that are fast in turns, both have high smoothed
/// rates.
const SURVIVAL_NOW: f64 = 0.4;
/// Share of the fastest link's rate below which the other links cannot replace it, however
/// unreliable it is.
const SURVIVAL_NEEDED: f64 = 0.25;
/// Price factor of a miss caused by failure of the fastest link: such misses are consecutive.
const FAILURE_DEARER: f64 = 2.0;
const WEIGHED_OVER: Duration = Duration::from_secs(2);
/// Total rate of all links below which they count as low-rate: a unit is one or two packets, and
/// each further one takes a large share.
const THIN: Bitrate = Bitrate::from_kbps(2_000);
/// Minimum share of a link's rate for media, whatever else is sent there.
const MEDIA_LEAST: f64 = 0.1;
/// Minimum share of media's rate for source bytes, however small the units are.
const SOURCE_LEAST: f64 = 0.1;
/// Interval at which a link without media gets a repair packet to measure it.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);
/// Unit interval from which units are pictures: their transmission time then affects their
/// reliability.
const FAR_APART: Duration = Duration::from_millis(8);
/// Factor on a unit's transmission time, in case a link's rate drops meanwhile.
const LONGER: f64 = 1.25;
/// Candidate unit sizes as shares of what the links carry between two such units.
const LOADS: [f64; 6] = [1.0, 0.85, 0.7, 0.55, 0.4, 0.25];
/// Maximum time for which pacing may delay a packet beyond one unit's interval.
const CREDIT_TIME: Duration = Duration::from_millis(5);
/// Minimum room in bytes of at least one link for a budget above zero: that of a small packet.
const ROOM_LEAST: f64 = 150.0;
/// Maximum number of packets in a block: the elements of GF(2^8).
const PACKETS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use tautline_units::Probability;

    use super::*;
    use crate::planner::OnTimeCurve;

    const SPAN: Duration = Duration::from_millis(200);

    fn quantile() -> Quantile {
        Quantile::new(&crate::Config::default().planning())
    }

    fn curve(by_headroom: [f64; OnTimeCurve::STEPS]) -> OnTimeCurve {
        OnTimeCurve::new(by_headroom.map(|share| Probability::new(share).unwrap()))
    }

    fn unit(bytes: u64, now: Instant) -> Unit {
        Unit { bytes: ByteCount::new(bytes), deadline: now + SPAN }
    }

    /// Returns how many packets of a unit each link gets.
    fn counts(planner: &mut Quantile, bytes: u64, links: &[Link], now: Instant) -> Vec<usize> {
        let plan = planner.plan(&unit(bytes, now), links, now).unwrap();
        assert_eq!(plan.assignment.len(), plan.packets.packet_count);
        let of = |place| plan.assignment.iter().filter(|at| **at == Some(place)).count();
        (0..links.len()).map(of).collect()
    }

    fn link(number: u8, free_at: Instant) -> Link {
        let link = Link::new(Bitrate::from_mbps(8), Duration::from_millis(20));
        Link { number: LinkNumber::new(number).unwrap(), free_at, ..link }
    }

    #[test]
    fn a_link_without_media_is_given_a_packet_every_100_ms() {
        let mut planner = quantile();
        let begin = Instant::from_millis(1_000);
        let given: Vec<u64> = (0..30)
            .map(|unit| unit * 10)
            .filter(|millis| {
                let now = begin + Duration::from_millis(*millis);
                // The third link has a longer queue than one unit interval drains.
                let busy = link(2, now + Duration::from_millis(150));
                let links = [link(0, now), link(1, now), busy];
                match counts(&mut planner, 1_000, &links, now)[2] {
                    0 => false,
                    count => {
                        assert_eq!(count, 1);
                        true
                    }
                }
            })
            .collect();
        assert_eq!(given, [0, 100, 200]);
    }

    #[test]
    fn a_small_link_does_not_hold_a_large_one_back() {
        let mut planner = quantile();
        let mut now = Instant::from_millis(1_000);
        let beside =
            |rate, now| [link(0, now), Link { rate: Bitrate::from_kbps(rate), ..link(1, now) }];
        let mut survives = |rate| {
            for _ in 0..2_000 {
                now += Duration::from_millis(10);
                planner.plan(&unit(2_000, now), &beside(rate, now), now).unwrap();
            }
            planner.survival_pays
        };
        let found = [8_000, 4_100, 3_900, 5_500, 5_700, 4_100].map(&mut survives);
        assert_eq!(found, [true, true, false, false, true, true]);
        assert!(!survives(1_600));
        let links = beside(1_600, now);
        let alone = planner.budget(&links[..1], now);
        assert!(planner.budget(&links, now) > alone.scale(0.95));
    }

    #[test]
    fn units_survive_a_fast_links_loss_while_misses_cost_more() {
        // Arguments: kbit/s of the other links next to 8 Mbit/s, on-time probability of the fast
        // link, and missed units of 100. Returns whether units survive the fast link's loss.
        let survives = |rate: u64, sure: f64, missed: u64| {
            let mut planner = quantile();
            let mut now = Instant::from_millis(1_000);
            for round in 0..1_000 {
                now += Duration::from_millis(10);
                planner.on_delivery_report(round * (100 - missed), round * missed);
                let fast = Link { on_time: curve([sure; 5]), ..link(0, now) };
                let links = [fast, Link { rate: Bitrate::from_kbps(rate), ..link(1, now) }];
                planner.plan(&unit(2_000, now), &links, now).unwrap();
            }
            planner.survival_pays
        };
        let missed = 3;
        assert_eq!(
            [0.999, 0.99, 0.95].map(|sure| survives(2_400, sure, missed)),
            [false, false, true]
        );
        assert!(!survives(1_600, 0.95, missed), "they stand in for nothing");
        assert!(!survives(2_400, 0.95, 0), "fewer are missed than may be");
        assert!(survives(6_000, 0.95, 0), "they can stand in for it");
    }

    #[test]
    fn a_picture_may_use_the_links_capacity_until_its_deadline() {
        let headroom = |millis: u64| Duration::from_millis(millis);
        // 15 units a second; 8 Mbit/s carry 66.7 kB between two.
        let of = |deadline: u64| {
            let mut planner = quantile();
            let mut now = Instant::from_millis(1_000);
            let mut budget = Bitrate::ZERO;
            for round in 0..20 {
                now += Duration::from_nanos(66_666_667);
                // The default curve of a new link: more time to spare means a higher probability.
                let on_time = curve([0.1, 0.8, 0.95, 0.99, 1.0]);
                let window = Some(ByteCount::new(50_000));
                let links = [Link { on_time, window, ..link(0, now) }];
                budget = planner.budget(&links, now);
                let bytes = (budget * Duration::from_nanos(66_666_667)).get().max(100);
                let unit =
                    Unit { bytes: ByteCount::new(bytes), deadline: now + headroom(deadline) };
                // The unit interval is unknown before the second unit.
                let planned = planner.plan(&unit, &links, now).is_ok();
                assert!(planned || round < 2, "{round}");
            }
            budget.as_f64() / 1e6
        };
        // 20 ms of delay and 30 ms to headroom leave 50 and 150 of 66.7 ms.
        assert!(of(100) > 4.5, "{}", of(100));
        assert!(of(200) > 7.0, "{}", of(200));
    }

    #[test]
    fn a_unit_outlives_any_link_and_a_refusal_says_why() {
        let mut planner = quantile();
        let now = Instant::from_millis(1_000);
        let links = [link(0, now), link(1, now), link(2, now)];
        let plan = planner.plan(&unit(1_000, now), &links, now).unwrap().packets;
        let counts = counts(&mut planner, 1_000, &links, now);
        assert!(plan.packet_count - counts.iter().max().unwrap() >= plan.source_count);
        assert_eq!(planner.plan(&unit(1_000, now), &[], now), Err(SendError::NoLink));
        let large = planner.plan(&unit(1 << 20, now), &links, now);
        assert!(matches!(large, Err(SendError::TooLarge { .. })), "{large:?}");
        let full = links.map(|link| Link {
            window: Some(ByteCount::ZERO),
            in_flight: ByteCount::new(100_000),
            ..link
        });
        assert_eq!(planner.plan(&unit(1_000, now), &full, now), Err(SendError::Congested));
        assert!(planner.reserve() > ByteCount::ZERO);
        assert_eq!(planner.budget(&full, now), Bitrate::ZERO);
        assert!(planner.budget(&links, now) > Bitrate::from_mbps(1));
    }
}
