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
#[derive(Debug, Clone)]
pub(crate) struct Price {
    target: f64,
    log: f64,
    /// Units delivered and lost that were told of.
    told: Option<(u64, u64)>,
    /// Misses that may raise the price now.
    allowance: f64,
    /// Misses that did not raise it and are to be made up for.
    owed: f64,
}

impl Price {
    pub(crate) fn new(target: f64) -> Self {
        let log = (PRICE_FIRST / target).ln();
        Self { target, log, told: None, allowance: BURST, owed: 0.0 }
    }

    /// Returns what a unit shall keep to.
    pub(crate) fn target(&self, spread: bool) -> Target {
        let price = self.log.exp();
        Target { price, risk: (LITTLE / price).min(self.target / 2.0), spread }
    }

    /// Takes totals of units delivered and lost; older ones than before say nothing.
    pub(crate) fn on_delivery_report(&mut self, delivered: u64, lost: u64) {
        let (delivered_before, lost_before) = self.told.unwrap_or((0, 0));
        if delivered < delivered_before || lost < lost_before {
            return;
        }
        self.told = Some((delivered, lost));
        self.lead((delivered - delivered_before) as f64, (lost - lost_before) as f64);
    }

    fn lead(&mut self, came: f64, missed: f64) {
        let refill = (came + missed) * self.target * SUSTAINED;
        self.allowance = (self.allowance + refill).min(BURST);
        let raising = missed.min(self.allowance);
        self.allowance -= raising;
        self.owed = (self.owed + missed - raising).min(OWED_MOST);
        let earned = came * self.target / (1.0 - self.target);
        let paid = earned.min(self.owed);
        self.owed -= paid;
        let step = raising - (earned - paid);
        let most = PRICE_MOST / self.target;
        self.log = (self.log + STEP * step).clamp(PRICE_LEAST.ln(), most.ln());
    }
}

/// Fifty misses more than accepted raise the price by e.
const STEP: f64 = 0.02;
/// The price at first, times the target.
const PRICE_FIRST: f64 = 0.2;
const PRICE_LEAST: f64 = 0.05;
/// The ceiling, times the target: at half as much recordings are carried as at this.
const PRICE_MOST: f64 = 1.0;
/// Of misses on end, so many raise the price at once: at 360 units a second those of a
/// stall of 30 ms.
const BURST: f64 = 12.0;
/// And as it lasts, so many times the share that is accepted.
const SUSTAINED: f64 = 8.0;
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
            if draw < 0.3 / price.target(true).price {
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
        assert!((price.target(true).price - 30.0).abs() < 10.0, "{}", price.target(true).price);
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
