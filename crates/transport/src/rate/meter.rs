use std::collections::VecDeque;

use tautline_units::{ByteCount, Duration, Instant};

/// A meter of the mean rate over the last `span`, from byte totals at instants.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    span: Duration,
    totals: VecDeque<(Instant, u64)>,
}

impl Meter {
    pub(super) fn new(span: Duration) -> Self {
        Self { span, totals: VecDeque::new() }
    }

    /// Records that `total` bytes had passed at `at`, and returns the rate over the span, bit/s;
    /// `None` before half of it is covered.
    pub(super) fn measure(&mut self, total: ByteCount, at: Instant) -> Option<f64> {
        self.totals.push_back((at, total.get()));
        while self.totals.get(1).is_some_and(|(next, _)| at.since(*next) >= self.span) {
            self.totals.pop_front();
        }
        let (from, bytes) = *self.totals.front()?;
        let span = at.since(from);
        let bits = total.get().saturating_sub(bytes) as f64 * 8.0;
        (span >= self.span / 2).then(|| bits / span.as_secs_f64())
    }

    /// Returns the longest time within the last span between two increases of the total.
    pub(super) fn pause(&self) -> Duration {
        let mut added = self.totals.front().copied();
        let mut longest = Duration::ZERO;
        for (at, total) in &self.totals {
            let Some((since, _)) = added.filter(|(_, before)| before != total) else { continue };
            longest = longest.max(at.since(since));
            added = Some((*at, *total));
        }
        longest
    }

    /// Drops all totals, so that measuring begins anew.
    pub(super) fn clear(&mut self) {
        self.totals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_reported_until_it_is_older_than_the_span() {
        let mut meter = Meter::new(Duration::from_millis(60));
        let mut pause = |millis: u64, total: u64| {
            meter.measure(ByteCount::new(total), Instant::from_millis(millis));
            meter.pause()
        };
        let ms = Duration::from_millis;
        assert_eq!([pause(0, 10), pause(10, 20), pause(20, 30)], [ms(0), ms(10), ms(10)]);
        // A report in between has nothing new.
        assert_eq!([pause(60, 30), pause(80, 40), pause(90, 50)], [ms(10), ms(60), ms(60)]);
        // By then the measurement begins where nothing had arrived for 40 ms.
        assert_eq!([pause(120, 60), pause(145, 70)], [ms(30), ms(30)]);
    }
}
