use super::shares::Target;

/// The price of a missed unit, controlled so that actual misses match the target. It is the
/// multiplier of the miss constraint (a shadow price), found by a stochastic subgradient.
///
/// The links' shares predict how reliable a unit is if links fail independently and the future
/// resembles the past. Both assumptions are wrong by a factor that this loop learns. A miss raises
/// the price by a step. A unit in time lowers it by a step smaller by the target miss ratio.
///
/// Misses arrive in bursts, when a link stalls or slows down, and the price hardly influences a
/// burst. So a burst raises it by the effect of [`BURST`] misses and, as it lasts, of [`SUSTAINED`]
/// times the accepted misses. Of the rest, [`OWED_MOST`] keep it from falling until they are paid
/// off; the remainder is ignored. The price has a ceiling. However bad a period was, recovery takes
/// no more units than those in which 220 misses are accepted. All limits count units and were tuned
/// at 360 units a second. With fewer, a stall causes fewer misses, and recovery takes
/// proportionally longer.
///
/// If units are missed because of random loss or reordering, a smaller load does not help. Those
/// misses raise the value of repair and not the cost of load.
#[derive(Debug, Clone)]
pub(crate) struct Price {
    target: f64,
    /// Price driven by misses that a smaller load may avoid.
    load: Led,
    /// Price driven by misses from random loss.
    repair: Led,
    /// Last reported totals of units delivered and lost; `None` before the first report.
    told: Option<(u64, u64)>,
    /// Number of recent packets missed by a failure of their link, exponentially decayed.
    failed: f64,
    /// Number of recent packets that were missed by chance, exponentially decayed.
    by_chance: f64,
}

/// A price driven by misses.
#[derive(Debug, Clone, Copy)]
struct Led {
    /// Natural logarithm of the price.
    log: f64,
    /// Number of misses that may raise the price now.
    allowance: f64,
    /// Number of misses that did not raise the price and keep it from falling until units in time
    /// have paid them off.
    owed: f64,
}

impl Price {
    pub(crate) fn new(target: f64) -> Self {
        let led = Led { log: (PRICE_FIRST / target).ln(), allowance: BURST, owed: 0.0 };
        Self { target, load: led, repair: led, told: None, failed: 0.0, by_chance: 0.0 }
    }

    /// Returns the target for the next unit at the present prices, with [`Target::spread`] as
    /// given.
    pub(crate) fn target(&self, spread: bool) -> Target {
        let repair = self.repair.log.max(self.load.log).exp();
        let risk = (LITTLE / repair).min(self.target / 2.0);
        Target { price: self.load.log.exp(), risk, spread }
    }

    /// Records a packet missed by chance if `by_chance`, otherwise by a failure of its link.
    pub(crate) fn on_missed(&mut self, by_chance: bool) {
        let count = if by_chance { &mut self.by_chance } else { &mut self.failed };
        *count += 1.0;
    }

    /// Adapts both prices to the units delivered and lost since the last totals; older totals are
    /// ignored. Lost units are divided between the prices of load and repair in proportion to the
    /// recent packets missed by a failure of their link and by chance.
    pub(crate) fn on_delivery_report(&mut self, delivered: u64, lost: u64) {
        let (delivered_before, lost_before) = self.told.unwrap_or((0, 0));
        if delivered < delivered_before || lost < lost_before {
            return;
        }
        self.told = Some((delivered, lost));
        let (came, missed) = ((delivered - delivered_before) as f64, (lost - lost_before) as f64);
        let all = self.failed + self.by_chance;
        let with_link = if self.by_chance > CHANCE_LEAST { self.failed / all } else { 1.0 };
        self.load.lead(came, missed * with_link, self.target, PRICE_MOST);
        self.repair.lead(came, missed * (1.0 - with_link), self.target, REPAIR_MOST);
        let fade = (-(came + missed) / MISSES_MEMORY).exp();
        (self.failed, self.by_chance) = (self.failed * fade, self.by_chance * fade);
    }
}

impl Led {
    fn lead(&mut self, came: f64, missed: f64, target: f64, most: f64) {
        let refill = (came + missed) * target * SUSTAINED;
        self.allowance = (self.allowance + refill).min(BURST);
        let raising = missed.min(self.allowance);
        self.allowance -= raising;
        self.owed = (self.owed + missed - raising).min(OWED_MOST);
        let earned = came * target / (1.0 - target);
        let paid = earned.min(self.owed);
        self.owed -= paid;
        let step = raising - (earned - paid);
        self.log = (self.log + STEP * step).clamp(PRICE_LEAST.ln(), (most / target).ln());
    }
}

/// Step of the logarithm of the price for one miss: fifty misses above the accepted number raise
/// the price by a factor of e.
const STEP: f64 = 0.02;
/// Product of the initial price and the target miss ratio.
const PRICE_FIRST: f64 = 0.2;
const PRICE_LEAST: f64 = 0.05;
/// Product of the highest price for load and the target miss ratio. At four times this ceiling,
/// recordings miss as many units, and a link that alternates between fast and slow carries 2.9
/// Mbit/s instead of 4.4.
const PRICE_MOST: f64 = 0.25;
/// Product of the highest price for repair and the target miss ratio.
const REPAIR_MOST: f64 = 8.0;
/// Number of misses in a row that raise the price; of further ones, only [`SUSTAINED`] times the
/// accepted number do. They are those of a 30 ms stall at 360 units a second.
const BURST: f64 = 12.0;
/// Multiple of the accepted miss ratio up to which misses raise the price during a longer burst.
const SUSTAINED: f64 = 8.0;
/// Number of units after which a missed packet's weight is 1/e: a third of a second.
const MISSES_MEMORY: f64 = 120.0;
/// Number of recent packets missed by chance up to which every lost unit counts as caused by a
/// failure of a link, and raises the price of load alone.
const CHANCE_LEAST: f64 = 4.0;
/// Maximum number of misses still to be paid off, beyond which further ones are ignored: those
/// accepted in eleven seconds at a target of 1 % and 360 units a second.
const OWED_MOST: f64 = 40.0;
/// Repair is omitted if it improves a unit's reliability by less than this share of the total
/// value.
const LITTLE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_price_settles_where_misses_equal_the_target() {
        let mut price = Price::new(0.01);
        let (mut delivered, mut lost, mut missed) = (0, 0, 0);
        let mut random = 1_u64;
        for unit in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (random >> 33) as f64 / (1_u64 << 31) as f64;
            // A higher price makes misses rarer.
            if draw < 0.2 / price.target(true).price {
                lost += 1;
                missed += u32::from(unit > 50_000);
            } else {
                delivered += 1;
            }
            price.on_delivery_report(delivered, lost);
        }
        let share = f64::from(missed) / 150_000.0;
        assert!((0.0095..0.0105).contains(&share), "{share}");
        price.on_delivery_report(0, 0);
        assert!((price.target(true).price - 20.0).abs() < 7.0, "{}", price.target(true).price);
    }
    #[test]
    fn a_burst_of_misses_is_made_up_for_within_half_a_minute() {
        let mut price = Price::new(0.005);
        let first = price.target(true).price;
        price.on_delivery_report(0, 0);
        price.on_delivery_report(0, 375);
        let after = price.target(true).price;
        assert!(after < first * 1.7, "{first} {after}");
        // 360 units a second.
        price.on_delivery_report(360 * 30, 375);
        let later = price.target(true).price;
        assert!(later < first, "{first} {later}");
    }

    #[test]
    fn misses_by_chance_raise_repair_and_leave_the_load() {
        let (mut by_chance, mut with_link) = (Price::new(0.01), Price::new(0.01));
        let first = by_chance.target(true);
        for report in 1..200_u64 {
            for _ in 0..3 {
                by_chance.on_missed(true);
                with_link.on_missed(false);
            }
            by_chance.on_delivery_report(report * 18, report * 2);
            with_link.on_delivery_report(report * 18, report * 2);
        }
        let (by_chance, with_link) = (by_chance.target(true), with_link.target(true));
        assert!(by_chance.price < first.price, "{by_chance:?} {first:?}");
        assert!(by_chance.risk < first.risk / 4.0, "{by_chance:?} {first:?}");
        assert!(with_link.price > first.price, "{with_link:?} {first:?}");
    }

    proptest! {
        #[test]
        fn the_price_stays_within_bounds_and_recovers(
            told in vec((0..400_u64, 0..400_u64), 0..200),
            target in 0.002..0.2,
        ) {
            let mut price = Price::new(target);
            let (mut delivered, mut lost) = (0, 0);
            for (came, missed) in told {
                (delivered, lost) = (delivered + came, lost + missed);
                price.on_delivery_report(delivered, lost);
                let found = price.target(true).price;
                let bounds = PRICE_LEAST * 0.999..PRICE_MOST / target * 1.001;
                prop_assert!(bounds.contains(&found), "{}", found);
            }
            // A calm period in which 220 misses would be accepted.
            price.on_delivery_report(delivered + (220.0 / target) as u64, lost);
            prop_assert!(price.target(true).price <= PRICE_FIRST / target);
        }
    }
}
