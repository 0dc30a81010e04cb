use super::shares::Target;

/// The cost of a miss, led so that the misses that happen come to the target: the multiplier of the
/// constraint on misses (a shadow price), found by a stochastic subgradient.
///
/// The links' shares say how sure a unit is if they fail independently and tomorrow is as
/// yesterday; both are wrong by a factor that this loop learns. A miss raises the price by a step, a
/// unit in time lowers it by as much less as misses are to be rarer.
#[derive(Debug, Clone)]
pub(crate) struct Price {
    target: f64,
    log: f64,
    /// Units delivered and lost that were told of.
    told: Option<(u64, u64)>,
}

impl Price {
    pub(crate) fn new(target: f64) -> Self {
        Self { target, log: (PRICE_FIRST / target).ln(), told: None }
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
        let missed = (lost - lost_before) as f64;
        let came = (delivered - delivered_before) as f64;
        let step = missed - came * self.target / (1.0 - self.target);
        self.log = (self.log + STEP * step).clamp(PRICE_LEAST.ln(), PRICE_MOST.ln());
    }
}

/// Fifty misses more than accepted raise the price by e.
const STEP: f64 = 0.02;
/// The price at first, times the target.
const PRICE_FIRST: f64 = 0.2;
const PRICE_LEAST: f64 = 0.05;
const PRICE_MOST: f64 = 1e5;
/// Repair that makes a unit no surer than by what is worth this share of all is left out.
const LITTLE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_settles_where_the_misses_are_as_many_as_aimed_at() {
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
}
