//! Joint choice of a unit's size, repair and shares.
//!
//! With a block code the usable rate is the quantile of the sum of what the links deliver in time,
//! not the sum of their quantiles. Link i delivers its share in time with probability u_i, or none
//! of it: packets of one link are late together. Of a delivered share, each packet is lost by
//! chance. So a unit of k source packets arrives if the links together deliver k packets or more.

use crate::protect::Plan;
use crate::wire::{LinkNumber, Prefix, SYMBOL_AROUND_BYTES};

/// Amount of one unit that one link can carry, and how reliably.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkBudget {
    /// Datagram bytes that the link sends between two units at its rate.
    pub(crate) pace: f64,
    /// Datagram bytes that the link could take now beyond `pace` with little queueing; negative
    /// while its queue is longer.
    pub(crate) credit: f64,
    /// Datagram bytes that the link can send before the unit's deadline; `None` unless the links'
    /// total rate is low. Units encoded for such links are accepted up to this limit. On other
    /// links, units that would wait long are refused.
    pub(crate) in_time: Option<f64>,
    /// Datagram bytes that the link's window allows in addition to media in flight and queued, plus
    /// `pace` if units are pictures; negative if it is exceeded, infinite without a window.
    pub(crate) room: f64,
    /// Datagram bytes beyond `room`, for units that could not be sent otherwise.
    pub(crate) reserve: f64,
    /// True if no media is queued on the link.
    pub(crate) idle: bool,
    /// Probability that a packet queued now arrives in time.
    pub(crate) probability: f64,
    /// Probability of a random, independent packet loss.
    pub(crate) loss: f64,
}

impl LinkBudget {
    pub(crate) const NONE: Self = Self {
        pace: 0.0,
        credit: 0.0,
        in_time: None,
        room: 0.0,
        reserve: 0.0,
        idle: false,
        probability: 0.0,
        loss: 0.0,
    };
}

/// Returns the length of the largest unit that can be planned, in bytes.
pub(crate) fn unit_bytes_max(symbol_bytes_max: usize) -> usize {
    SOURCES_MAX * symbol_bytes_max - Prefix::BYTES
}

/// The reliability that a plan must reach, and the price of a miss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Target {
    /// Cost of a miss, as a multiple of the links' total capacity.
    pub(crate) price: f64,
    /// Miss probability below which no more repair is needed.
    pub(crate) risk: f64,
    /// True if the unit must survive the loss of any one link.
    pub(crate) spread: bool,
}

/// A unit's plan with the number of packets for each link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) plan: Plan,
    pub(crate) counts: [usize; LinkNumber::COUNT],
}

/// Returns the unit size, in bytes, that the links carry within the target; zero if there is none.
///
/// Among the sums V of subsets of shares, it takes the one with the largest V P(sum >= V) minus the
/// price of a miss. With `spread` it is limited to what remains without the largest share; links
/// without room count, because they recover soon. A bound on the risk of each single unit would pay
/// for reliability regardless of its cost.
///
/// A high price of a miss makes the links carry less than they could, too: the packets in flight
/// when a link stalls delay the next units.
pub(crate) fn size(budgets: &[LinkBudget], target: &Target, symbol_bytes_max: usize) -> f64 {
    let mut shares = [(0.0, 0.0); LinkNumber::COUNT];
    let mut count = 0;
    for budget in budgets {
        let bytes = (budget.pace + budget.credit / CREDIT_UNITS).min(budget.room);
        // Packets that nearly always arrive.
        let packets = (bytes / symbol_bytes_max as f64).max(1.0);
        let spread = (packets * budget.loss * (1.0 - budget.loss)).sqrt();
        let bytes = bytes * (1.0 - budget.loss - DEVIATIONS * spread / packets).max(0.1);
        if bytes > 0.0 && budget.probability > PROBABILITY_LEAST {
            shares[count] = (bytes, budget.probability);
            count += 1;
        }
    }
    shares[..count].sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let shares = &shares[..count.min(SUBSET_LINKS)];
    let total: f64 = shares.iter().map(|(bytes, _)| bytes).sum();
    let alive = budgets.iter().filter(|budget| budget.probability > PROBABILITY_LEAST).count();
    let most = match (target.spread && alive > 1, shares.first()) {
        (true, Some((largest, _))) => total - largest,
        (true | false, _) => total,
    };
    let bytes = match shares.len() <= SUBSET_LINKS_USUAL {
        true => best::<{ 1 << SUBSET_LINKS_USUAL }>(shares, total, most, target.price),
        false => best::<{ 1 << SUBSET_LINKS }>(shares, total, most, target.price),
    };
    // Our overhead per datagram, for the number of datagrams that plan() will make.
    let packets = (bytes / (symbol_bytes_max + SYMBOL_AROUND_BYTES) as f64)
        .ceil()
        .max(shares.len() as f64 / 2.0);
    (bytes - packets * SYMBOL_AROUND_BYTES as f64 - Prefix::BYTES as f64).max(0.0)
}

/// Returns the best number of bytes to load on the links, among the sums of all subsets of
/// `shares`, of which there are at most `SUBSETS`.
///
/// A share is the bytes that one link can carry, and its on-time probability. `total` is the sum of
/// those bytes, `most` caps each subset's sum, and `price` is that of a miss.
fn best<const SUBSETS: usize>(shares: &[(f64, f64)], total: f64, most: f64, price: f64) -> f64 {
    let mut subsets = [(0.0, 1.0); SUBSETS];
    for (index, share) in shares.iter().enumerate() {
        add_share(&mut subsets[..2 << index], *share);
    }
    let subsets = &subsets[..1 << shares.len()];
    let (mut sure, mut best, mut best_worth) = (0.0, 0.0, f64::NEG_INFINITY);
    for (sum, p) in subsets.iter().filter(|(sum, _)| *sum > 0.0) {
        // The largest sums come first, and none is worth more than itself.
        if *sum < best_worth * total {
            break;
        }
        sure += p;
        let all = sum.min(most);
        let (load, worth) = worth(all / total, sure, price);
        if worth > best_worth {
            (best, best_worth) = (all * load, worth);
        }
    }
    best
}

/// Returns which part of `share`, a share of the links' total capacity, is best to use if it
/// arrives with probability `sure`, and the value of that minus the price of a miss. The price of a
/// miss is assumed to grow with the square of the load; the price control loop finds the scale.
pub(crate) fn worth(share: f64, sure: f64, price: f64) -> (f64, f64) {
    let dear = price * (1.0 - sure);
    let load = if dear > 0.0 { (share / (2.0 * dear)).min(1.0) } else { 1.0 };
    (load, share * load * sure - dear * load * load)
}

/// Extends the sums of all subsets, each with its probability, by one more share.
///
/// The first half of `subsets` holds the previous sums in descending order; the result is in
/// descending order too. O(n): merges two sorted rows from the end, where there is room.
fn add_share(subsets: &mut [(f64, f64)], (bytes, probability): (f64, f64)) {
    let count = subsets.len() / 2;
    let (mut without, mut with) = (count, count);
    while with > 0 {
        let (sum, p) = subsets[with - 1];
        let carried = sum + bytes;
        let last = with + without - 1;
        // Of equal sums, those without the share come first.
        subsets[last] = match without > 0 && subsets[without - 1].0 < carried {
            true => {
                without -= 1;
                let (sum, p) = subsets[without];
                (sum, p * (1.0 - probability))
            }
            false => {
                with -= 1;
                (carried, p * probability)
            }
        };
    }
    for (_, p) in &mut subsets[..without] {
        *p *= 1.0 - probability;
    }
}

/// Returns `bytes`, a unit's size, reduced in proportion if the packets of its plan, including
/// repair, exceed what the links carry. Returns `bytes` if no plan exists.
pub(crate) fn size_as_planned(
    bytes: f64,
    budgets: &[LinkBudget],
    target: &Target,
    symbol_bytes_max: usize,
) -> f64 {
    let Some(shares) = plan(bytes as usize, symbol_bytes_max, budgets, target) else {
        return bytes;
    };
    let Plan { packet_count, symbol_bytes, .. } = shares.plan;
    let carried: f64 =
        budgets.iter().map(|budget| (budget.pace + budget.credit / CREDIT_UNITS).max(0.0)).sum();
    let taken = (packet_count * (symbol_bytes + SYMBOL_AROUND_BYTES)) as f64;
    bytes * (carried / taken).min(1.0)
}

/// Plans a unit of `unit_bytes`; `None` if it needs more than [`SOURCES_MAX`] source packets, or if
/// the links have no room for it at all.
///
/// Among the possible cuts, it takes the one that meets the target with the fewest bytes. If the
/// shares of one unit interval are insufficient, the links get more, which delays this unit and the
/// next ones. If no cut meets the target, it takes the one with the highest probability, stalled
/// links included.
pub(crate) fn plan(
    unit_bytes: usize,
    symbol_bytes_max: usize,
    budgets: &[LinkBudget],
    target: &Target,
) -> Option<Shares> {
    let content = unit_bytes + Prefix::BYTES;
    let least = content.div_ceil(symbol_bytes_max);
    if least > SOURCES_MAX {
        return None;
    }
    let finest = (content / SYMBOL_BYTES_MIN).clamp(least, (least + CUTS).min(SOURCES_MAX));
    let mut fallback: Option<(f64, Shares)> = None;
    for Attempt { unit_times, likely, reserve } in ATTEMPTS {
        let mut cheapest: Option<(usize, Shares)> = None;
        for source_count in least..=finest {
            let symbol_bytes = content.div_ceil(source_count);
            let datagram = (symbol_bytes + SYMBOL_AROUND_BYTES) as f64;
            let mut block = Block::new(source_count, budgets, |budget| {
                if budget.probability <= likely {
                    return 0;
                }
                let room = budget.room + if reserve { budget.reserve } else { 0.0 };
                let bytes = match budget.in_time {
                    Some(in_time) => (budget.pace * unit_times + budget.credit).min(in_time),
                    None => budget.pace * unit_times.min(WAIT_UNITS) + budget.credit,
                };
                let bytes = bytes.min(room);
                let packets = (bytes / datagram).max(0.0) as usize;
                // A slow idle link may take one packet, however long it needs.
                packets.max(usize::from(budget.idle && room >= datagram))
            });
            let around = symbol_bytes + SYMBOL_AROUND_BYTES + IP_BYTES;
            if cheapest
                .as_ref()
                .is_some_and(|(cost, _)| block.packets_least(target) * around >= *cost)
            {
                continue;
            }
            let shares = |block: &Block| Shares {
                plan: Plan { source_count, packet_count: block.counts.iter().sum(), symbol_bytes },
                counts: block.counts,
            };
            if block.fit(target) {
                let cost = block.counts.iter().sum::<usize>() * around;
                if cheapest.as_ref().is_none_or(|(least, _)| cost < *least) {
                    cheapest = Some((cost, shares(&block)));
                }
            } else {
                let sure = block.probability();
                if sure > 0.0 && fallback.as_ref().is_none_or(|(best, _)| sure > *best + 1e-9) {
                    fallback = Some((sure, shares(&block)));
                }
            }
        }
        if let Some((_, shares)) = cheapest {
            return Some(shares);
        }
    }
    fallback.map(|(_, shares)| shares)
}

/// Limits on what the links carry of a unit. They are tried in order until a cut meets the target.
struct Attempt {
    /// Number of unit intervals that a link's share may take.
    unit_times: f64,
    /// On-time probability up to which a link carries no share.
    likely: f64,
    /// True if links may exceed their room by their reserve.
    reserve: bool,
}

/// One way to cut a unit into source packets, with the number of packets for each link.
struct Block<'a> {
    source_count: usize,
    budgets: &'a [LinkBudget],
    /// Maximum number of packets of each link.
    most: [usize; LinkNumber::COUNT],
    /// Number of packets of each link.
    counts: [usize; LinkNumber::COUNT],
}

impl<'a> Block<'a> {
    fn new(
        source_count: usize,
        budgets: &'a [LinkBudget],
        most_of: impl Fn(&LinkBudget) -> usize,
    ) -> Self {
        let mut most = [0; LinkNumber::COUNT];
        let room = (PACKETS_MAX - source_count) / budgets.len().max(1) + 1;
        for (most, budget) in most.iter_mut().zip(budgets) {
            // Beyond k, only replacements of losses are useful.
            let useful = match budget.loss > LOSS_LEAST {
                true => source_count * 3 + 2,
                false => source_count,
            };
            *most = most_of(budget).min(useful).min(room);
        }
        Self { source_count, budgets, most, counts: most }
    }

    /// Returns the minimum number of packets that can meet the target: k, plus the busiest link's
    /// packets if the unit must survive the loss of any link. That sum is smallest when all links
    /// carry the same number.
    fn packets_least(&self, target: &Target) -> usize {
        let alive = self.most.iter().filter(|most| **most > 0).count();
        match target.spread && alive > 1 {
            true => (self.source_count * alive).div_ceil(alive - 1),
            false => self.source_count,
        }
    }

    /// Finds the smallest equal share that meets the target, or whose risk is within a tenth of the
    /// lowest possible if that is higher. Then removes unneeded packets, those of the least
    /// reliable links first. Returns false, with all that the links can carry, if there are too few
    /// packets for that.
    fn fit(&mut self, target: &Target) -> bool {
        let alive = self.most.iter().filter(|most| **most > 0).count();
        let spread = target.spread && alive > 1;
        let risk = target.risk.max((1.0 - self.probability()) * NEARLY);
        if !self.keeps(risk, spread) {
            return false;
        }
        let (mut low, mut high) = (0, self.most.iter().max().copied().unwrap_or(0));
        while low + 1 < high {
            let level = (low + high) / 2;
            self.level(level);
            if self.keeps(risk, spread) { high = level } else { low = level }
        }
        self.level(high);
        let mut order: [usize; LinkNumber::COUNT] = std::array::from_fn(|at| at);
        let order = &mut order[..self.budgets.len()];
        order.sort_by(|a, b| self.budgets[*a].probability.total_cmp(&self.budgets[*b].probability));
        for at in order {
            while self.counts[*at] > 0 {
                self.counts[*at] -= 1;
                if !self.keeps(risk, spread) {
                    self.counts[*at] += 1;
                    break;
                }
            }
        }
        true
    }

    fn level(&mut self, level: usize) {
        for (count, most) in self.counts.iter_mut().zip(&self.most) {
            *count = level.min(*most);
        }
    }

    fn keeps(&self, risk: f64, spread: bool) -> bool {
        let total: usize = self.counts.iter().sum();
        let busiest = self.counts.iter().max().copied().unwrap_or(0);
        let left = if spread { total - busiest } else { total };
        left >= self.source_count && self.probability() >= 1.0 - risk
    }

    /// Returns the probability that at least k packets arrive in time, if links fail completely and
    /// independently, and packets of the others are lost at random.
    fn probability(&self) -> f64 {
        match self.source_count <= SOURCES_USUAL {
            true => self.probability_of::<{ SOURCES_USUAL + 1 }>(),
            false => self.probability_of::<{ SOURCES_MAX + 1 }>(),
        }
    }

    /// Computes [`Block::probability`] in an array of `SUMS` elements, more than there are source
    /// packets.
    fn probability_of<const SUMS: usize>(&self) -> f64 {
        let most = self.source_count;
        let mut sums = [0.0; SUMS];
        sums[0] = 1.0;
        let links = self.counts.iter().zip(self.budgets).filter(|(count, _)| **count > 0);
        for (count, budget) in links {
            if budget.loss > LOSS_LEAST {
                sums = lossy(&sums, most, *count, budget);
                continue;
            }
            for sum in (0..=most).rev() {
                let p = sums[sum];
                if p > 0.0 {
                    sums[sum] = p * (1.0 - budget.probability);
                    sums[(sum + count).min(most)] += p * budget.probability;
                }
            }
        }
        sums[most]
    }
}

/// Returns the distribution of the number of packets that arrive, `sums`, extended by `count`
/// packets of a link with random losses. Numbers above `most` count as `most`.
fn lossy<const SUMS: usize>(
    sums: &[f64; SUMS],
    most: usize,
    count: usize,
    budget: &LinkBudget,
) -> [f64; SUMS] {
    let mut after = sums.map(|p| p * (1.0 - budget.probability));
    // P(n of `count` packets arrive), then P(n + 1 arrive) from it.
    let (kept, lost) = (1.0 - budget.loss, budget.loss);
    let mut p = budget.probability * lost.powi(count as i32);
    for come in 0..=count {
        for sum in 0..=most {
            after[(sum + come).min(most)] += sums[sum] * p;
        }
        p *= (count - come) as f64 / (come + 1) as f64 * kept / lost;
    }
    after
}

/// On-time probability up to which a link carries no share while others suffice.
const PROBABILITY_LEAST: f64 = 0.3;
/// Random loss probability up to which a plan counts a link as without losses; the misses that they
/// cause raise the price of a miss instead.
const LOSS_LEAST: f64 = 0.002;
/// Number of standard deviations below the mean to which the packets that arrive over a link are
/// estimated.
const DEVIATIONS: f64 = 2.0;
/// Number of units over which a budget spreads a link's credit: the credit divided by it is added
/// to what the link sends per unit.
const CREDIT_UNITS: f64 = 4.0;
/// Maximum number of links whose subsets are enumerated, those with the largest shares; the smaller
/// ones only add a margin.
const SUBSET_LINKS: usize = 8;
/// Usual maximum number of links; their subsets fit a few cache lines.
const SUBSET_LINKS_USUAL: usize = 4;
const ATTEMPTS: [Attempt; 5] = [
    Attempt { unit_times: 1.0, likely: PROBABILITY_LEAST, reserve: false },
    Attempt { unit_times: 2.0, likely: PROBABILITY_LEAST, reserve: false },
    Attempt { unit_times: WAIT_UNITS, likely: PROBABILITY_LEAST, reserve: false },
    Attempt { unit_times: AS_LONG_AS_IN_TIME, likely: PROBABILITY_LEAST, reserve: true },
    Attempt { unit_times: AS_LONG_AS_IN_TIME, likely: 0.0, reserve: true },
];
/// Maximum number of unit intervals that a link's share of a unit may take, unless
/// [`LinkBudget::in_time`] limits it: after longer queueing the next units would be late.
const WAIT_UNITS: f64 = 4.0;
/// Number of unit intervals that does not limit the share of a low-rate link: it may then take any
/// time until the deadline, as a picture's slices may be handed over together.
const AS_LONG_AS_IN_TIME: f64 = 1e9;
const SYMBOL_BYTES_MIN: usize = 64;
/// Maximum number of cuts tried in addition to the coarsest, each with one more source packet.
const CUTS: usize = 6;
const SOURCES_MAX: usize = 128;
/// Usual maximum of source packets; its probabilities fit a few registers.
const SOURCES_USUAL: usize = 15;
const PACKETS_MAX: usize = 256;
/// Overhead of IPv4 and UDP per datagram.
const IP_BYTES: usize = 28;
/// Factor on the smallest possible risk up to which packets are removed: repair that lowers the
/// risk by less than a tenth is omitted.
const NEARLY: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(pace: f64, probability: f64) -> LinkBudget {
        LinkBudget {
            pace,
            credit: 0.0,
            in_time: None,
            room: 1e9,
            reserve: 0.0,
            idle: false,
            probability,
            loss: 0.0,
        }
    }

    const TARGET: Target = Target { price: 20.0, risk: 0.0025, spread: true };

    fn probability(u: &[f64], counts: &[usize], source_count: usize) -> f64 {
        let budgets: Vec<LinkBudget> = u.iter().map(|u| budget(1e9, *u)).collect();
        let mut block = Block::new(source_count, &budgets, |_| source_count);
        block.counts = [0; LinkNumber::COUNT];
        block.counts[..counts.len()].copy_from_slice(counts);
        block.probability()
    }

    #[test]
    fn the_probability_of_a_block_is_that_of_the_sum_of_shares() {
        let u = [0.98, 0.97, 0.98, 0.97];
        let near = |p: f64, truth: f64| assert!((p - truth).abs() < 1e-9, "{p} {truth}");
        near(probability(&u[..2], &[4, 3], 4), 0.98);
        near(probability(&u[..2], &[4, 4], 4), 0.9994);
        near(probability(&u[..3], &[3, 2, 2], 4), 0.998424);
        near(probability(&u, &[2, 2, 2, 2], 4), 0.99994108);
        near(probability(&u, &[3, 3, 3, 3], 9), 0.99641892);
    }

    #[test]
    fn sums_of_subsets_come_in_order_each_with_its_probability() {
        let shares = [(900.0, 0.9), (700.0, 0.8), (700.0, 0.5), (200.0, 0.99), (33.0, 0.7)];
        let mut subsets = [(0.0, 1.0); 1 << 5];
        for (index, share) in shares.iter().enumerate() {
            add_share(&mut subsets[..2 << index], *share);
        }
        let mut expected: Vec<(f64, f64)> = (0..1 << 5)
            .map(|subset: usize| {
                shares.iter().enumerate().fold((0.0, 1.0), |(sum, p), (index, share)| {
                    match subset >> index & 1 {
                        0 => (sum, p * (1.0 - share.1)),
                        _ => (sum + share.0, p * share.1),
                    }
                })
            })
            .collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0));
        assert_eq!(subsets.as_slice(), expected);
    }

    #[test]
    fn no_counts_keep_the_target_with_fewer_packets_than_the_bound() {
        let budgets = [budget(1e9, 1.0); 3];
        for links in 1..=3 {
            for source_count in 1..=5 {
                let block = Block::new(source_count, &budgets[..links], |_| source_count);
                let side = source_count + 1;
                let keeps = |at: usize| {
                    let counts = [at % side, at / side % side, at / side / side];
                    let (total, busiest) = (counts.iter().sum(), counts.iter().max().unwrap());
                    let left: usize = if links > 1 { total - busiest } else { total };
                    (left >= source_count).then_some(total)
                };
                let least = (0..side.pow(links as u32)).filter_map(keeps).min();
                assert_eq!(least, Some(block.packets_least(&TARGET)), "{links} {source_count}");
            }
        }
    }

    #[test]
    fn a_link_that_loses_by_chance_gets_repair_of_its_own() {
        let lossy = [LinkBudget { loss: 0.3, ..budget(9_000.0, 1.0) }];
        let shares = plan(1_500, 1_169, &lossy, &TARGET).unwrap();
        let block =
            Block { counts: shares.counts, ..Block::new(shares.plan.source_count, &lossy, |_| 0) };
        assert!(block.probability() > 0.9975, "{shares:?} {}", block.probability());
        // P(at least 2 of 6) = 1 - .3^6 - 6 .7 .3^5.
        let mut six = Block::new(2, &lossy, |_| 0);
        six.counts[0] = 6;
        assert!((six.probability() - 0.989_065).abs() < 1e-6, "{}", six.probability());
    }

    #[test]
    fn a_unit_over_four_good_links_carries_a_third_of_repair() {
        let budgets = [budget(2_000.0, 0.98); 4];
        let shares = plan(3_400, 1_169, &budgets, &TARGET).unwrap();
        assert_eq!((shares.plan.source_count, shares.plan.packet_count), (3, 4));
        assert_eq!(shares.counts[..4], [1, 1, 1, 1]);
    }

    #[test]
    fn any_link_may_go_and_the_unit_still_comes() {
        for links in 2..=6 {
            let budgets: Vec<LinkBudget> =
                (0..links).map(|i| budget(1_500.0 + 700.0 * i as f64, 0.99)).collect();
            for bytes in [10, 300, 1_200, 2_500] {
                let shares = plan(bytes, 1_169, &budgets, &TARGET).unwrap();
                let total: usize = shares.counts.iter().sum();
                let busiest = *shares.counts.iter().max().unwrap();
                assert!(total - busiest >= shares.plan.source_count, "{links} {bytes} {shares:?}");
                assert_eq!(total, shares.plan.packet_count);
            }
        }
    }

    #[test]
    fn a_doubtful_link_gets_nothing_and_others_carry_more_repair() {
        let sure = budget(4_000.0, 0.99);
        let budgets = [sure, sure, sure, budget(4_000.0, 0.1)];
        let shares = plan(3_000, 1_169, &budgets, &TARGET).unwrap();
        assert_eq!(shares.counts[3], 0);
        assert!(shares.counts[..3].iter().sum::<usize>() > shares.plan.source_count);
    }

    #[test]
    fn a_unit_that_does_not_fit_takes_more_time_or_is_refused() {
        let budgets = [budget(500.0, 0.99), budget(500.0, 0.99)];
        let shares = plan(900, 1_169, &budgets, &TARGET).unwrap();
        assert_eq!(shares.counts[..2], [1, 1]);
        let shares = plan(3_000, 1_169, &budgets, &TARGET).unwrap();
        assert!(shares.plan.packet_count >= shares.plan.source_count);
        let full = [LinkBudget { room: 100.0, ..budgets[0] }; 2];
        assert_eq!(plan(3_000, 1_169, &full, &TARGET), None);
        assert_eq!(plan(1 << 20, 1_169, &budgets, &TARGET), None);
    }

    #[test]
    fn the_size_grows_with_the_links_and_falls_with_the_price() {
        let of = |u: &[f64], price: f64, spread: bool| {
            let budgets: Vec<LinkBudget> = u.iter().map(|u| budget(2_000.0, *u)).collect();
            // Headers and prefix are subtracted: at most an eighth here.
            (size(&budgets, &Target { price, spread, ..TARGET }, 1_169) / 2_000.0 * 1.06).round()
        };
        // P(all four) = .92, P(three) = .9977, P(two) = .99997.
        assert_eq!(of(&[0.98; 4], 20.0, true), 3.0);
        assert_eq!(of(&[0.98; 4], 0.05, false), 4.0);
        assert_eq!(of(&[0.98; 4], 0.05, true), 3.0);
        assert_eq!(of(&[0.98; 4], 1_000.0, true), 2.0);
        assert_eq!(of(&[0.95; 4], 20.0, true), 2.0);
        // No subset is reliable enough: a small size keeps units from delaying each other.
        assert_eq!(of(&[0.5; 4], 0.05, true), 2.0);
        assert_eq!(of(&[0.5; 4], 20.0, true), 0.0);
        assert_eq!(of(&[], 20.0, true), 0.0);
    }

    #[test]
    fn a_unit_on_a_thin_link_is_small_enough_for_its_repair_as_well() {
        for loss in [0.0, 0.01, 0.05] {
            let thin = [LinkBudget { loss, ..budget(800.0, 1.0) }];
            let plain = size(&thin, &TARGET, 1_169);
            let bytes = size_as_planned(plain, &thin, &TARGET, 1_169);
            assert!(bytes <= plain && bytes > 200.0, "{bytes} of {plain}");
            let Plan { packet_count, symbol_bytes, .. } =
                plan(bytes as usize, 1_169, &thin, &TARGET).unwrap().plan;
            let taken = packet_count * (symbol_bytes + SYMBOL_AROUND_BYTES);
            assert!(taken <= 900, "{taken} with {loss} lost");
        }
    }

    #[test]
    fn a_busy_link_accepts_only_units_that_can_be_in_time() {
        let busy = LinkBudget { credit: -3_000.0, in_time: Some(900.0), ..budget(500.0, 0.99) };
        assert!(plan(800, 1_169, &[busy], &TARGET).is_some());
        assert_eq!(plan(1_000, 1_169, &[busy], &TARGET), None);
    }

    #[test]
    fn a_stalled_link_does_not_overload_the_other() {
        let full = LinkBudget { room: -100.0, reserve: 3_000.0, ..budget(2_000.0, 0.98) };
        let budgets = [budget(2_000.0, 0.98), full];
        assert_eq!(size(&budgets, &TARGET, 1_169), 0.0);
        assert!(size(&budgets, &Target { spread: false, ..TARGET }, 1_169) > 500.0);
        assert!(size(&budgets[..1], &TARGET, 1_169) > 500.0);
    }

    #[test]
    fn a_unit_with_no_other_room_uses_the_stalled_links_reserve() {
        let full = LinkBudget { room: -100.0, reserve: 3_000.0, ..budget(2_000.0, 0.1) };
        let shares = plan(100, 1_169, &[full, full], &TARGET).unwrap();
        assert_eq!(shares.counts[..2], [1, 1]);
        assert_eq!(plan(100, 1_169, &[LinkBudget { reserve: 200.0, ..full }], &TARGET), None);
    }
}
