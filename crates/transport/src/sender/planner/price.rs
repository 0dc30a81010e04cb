use super::shares::Target;

/// The cost of a miss, led so that the misses that happen come to the target: the multiplier of the
/// constraint on misses (a shadow price), found by a stochastic subgradient.
///
/// The links' shares say how sure a unit is if they fail independently and tomorrow is as
/// yesterday; both are wrong by a factor that this loop learns. A miss raises the price by a step, a
/// unit in time lowers it by as much less as misses are to be rarer.
///
/// Misses come in bursts, when a link stalls or becomes slower, and of a burst the price decides little. So a
/// burst raises it by what [`BURST`] misses do and, as it lasts, by what [`SUSTAINED`] times the accepted
/// misses do; of the rest, [`OWED_MOST`] keep it from falling until they are made up for. What is beyond that
/// is forgotten, and the price has a ceiling: however bad a time was, the way back takes no more units than
/// those of which 220 misses are accepted. All are counted in units and were found at 360 a second: with fewer, a stall
/// is fewer misses and the way back as much longer.
///
/// Where units are missed because packets are lost or overtaken by chance, a smaller load makes none of them
/// come: so those misses raise what repair is worth, and not what a load costs.
#[derive(Debug, Clone)]
pub(crate) struct Price {
    target: f64,
    /// By the misses that a smaller load may spare.
    load: Led,
    /// By those of packets missed by chance.
    repair: Led,
    /// Units delivered and lost that were told of.
    told: Option<(u64, u64)>,
    /// Packets of late that failed with their link, and those that were missed by chance, fading.
    failed: f64,
    by_chance: f64,
}

/// A price that misses lead.
#[derive(Debug, Clone, Copy)]
struct Led {
    log: f64,
    /// Misses that may raise the price now.
    allowance: f64,
    /// Misses that did not raise it and are to be made up for.
    owed: f64,
}

impl Price {
    pub(crate) fn new(target: f64) -> Self {
        let led = Led { log: (PRICE_FIRST / target).ln(), allowance: BURST, owed: 0.0 };
        Self { target, load: led, repair: led, told: None, failed: 0.0, by_chance: 0.0 }
    }

    /// Returns what a unit shall keep to.
    pub(crate) fn target(&self, spread: bool) -> Target {
        let repair = self.repair.log.max(self.load.log).exp();
        let risk = (LITTLE / repair).min(self.target / 2.0);
        Target { price: self.load.log.exp(), risk, spread }
    }

    /// Takes note of a packet that was missed, by chance or with its link.
    pub(crate) fn on_missed(&mut self, by_chance: bool) {
        let count = if by_chance { &mut self.by_chance } else { &mut self.failed };
        *count += 1.0;
    }

    /// Takes totals of units delivered and lost; older ones than before say nothing.
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

/// Fifty misses more than accepted raise the price by e.
const STEP: f64 = 0.02;
/// The price at first, times the target.
const PRICE_FIRST: f64 = 0.2;
const PRICE_LEAST: f64 = 0.05;
/// The ceiling, times the target: at four times as much recordings miss as many, and a link that is fast and slow in
/// turns carries 2.9 Mbit/s in place of 4.4.
const PRICE_MOST: f64 = 0.25;
/// That of repair.
const REPAIR_MOST: f64 = 8.0;
/// Of misses on end, so many raise the price at once: at 360 units a second those of a
/// stall of 30 ms.
const BURST: f64 = 12.0;
/// And as it lasts, so many times the share that is accepted.
const SUSTAINED: f64 = 8.0;
/// Units after which the packets that were missed count 1/e: a third of a second.
const MISSES_MEMORY: f64 = 120.0;
/// Fewer packets missed by chance say nothing.
const CHANCE_LEAST: f64 = 4.0;
/// At a target of 1 % and 360 units a second, what eleven seconds may miss.
const OWED_MOST: f64 = 40.0;
/// Repair that makes a unit no surer than by what is worth this share of all is left out.
const LITTLE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_price_settles_where_the_misses_are_as_many_as_their_target() {
        let mut price = Price::new(0.01);
        let (mut delivered, mut lost, mut missed) = (0, 0, 0);
        let mut random = 1_u64;
        for unit in 0..200_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (random >> 33) as f64 / (1_u64 << 31) as f64;
            // The dearer a miss, the rarer.
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
        fn whatever_comes_the_price_keeps_its_bounds_and_comes_back(
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
            // A calm time in which 220 misses would be accepted.
            price.on_delivery_report(delivered + (220.0 / target) as u64, lost);
            prop_assert!(price.target(true).price <= PRICE_FIRST / target);
        }
    }
}
