use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

use super::spread::{Percentiles, Spread};
use crate::clock::ClockEstimate;

/// Round trips and one-way delays of one link.
///
/// Smoothed one-way delays are stored as clock differences and converted by the clock estimate only
/// on reading, so that a better estimate corrects earlier samples. The percentiles are of samples
/// converted by the estimate at the time.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    rtt_smoothed: Option<f64>,
    rtt_latest: Duration,
    rtt_floor: Floor,
    /// Smoothed transit of datagrams to the peer: its clock at arrival minus ours at sending.
    out: Smooth,
    /// Smoothed transit of datagrams from the peer: our clock at arrival minus its clock at
    /// sending.
    back: Smooth,
    out_spread: Spread,
    back_spread: Spread,
}

#[derive(Debug, Clone, Default)]
struct Smooth {
    nanos: Option<f64>,
    last: Option<i64>,
    jitter: f64,
}

/// Minimum RTT of the last ten seconds, kept for each second.
#[derive(Debug, Clone, Default)]
struct Floor {
    slots: VecDeque<(u64, Duration)>,
    /// Minimum of all slots; `None` before the first sample.
    least: Option<Duration>,
}

impl Rtt {
    pub(crate) fn new() -> Self {
        Self {
            rtt_smoothed: None,
            rtt_latest: Duration::ZERO,
            rtt_floor: Floor::default(),
            out: Smooth::default(),
            back: Smooth::default(),
            out_spread: Spread::new(),
            back_spread: Spread::new(),
        }
    }

    /// Records a pong with its four times: ping sent, ping received, pong sent, pong received. The
    /// middle two are the peer's.
    pub(crate) fn on_pong(&mut self, [t0, t1, t2, t3]: [Instant; 4], clock: Option<ClockEstimate>) {
        let held = t2.since(t1);
        let rtt = t3.since(t0).saturating_sub(held);
        let sample = rtt.as_nanos() as f64;
        self.rtt_smoothed = Some(match self.rtt_smoothed {
            Some(smoothed) => smoothed + (sample - smoothed) / RTT_SHARE,
            None => sample,
        });
        self.rtt_latest = rtt;
        self.rtt_floor.observe(rtt, t3);
        self.on_transit(t1.signed_nanos_since(t0), clock, t3);
        self.on_arrival(t2, clock, t3);
    }

    /// Records the transit of a datagram to the peer, in nanoseconds: its clock at arrival minus
    /// ours at sending.
    pub(crate) fn on_transit(&mut self, nanos: i64, clock: Option<ClockEstimate>, now: Instant) {
        self.out.observe(nanos);
        if let Some(clock) = clock {
            self.out_spread.observe(nanos.saturating_sub(clock.offset_nanos()), now);
        }
    }

    /// Records a packet from the peer, received now and sent at `sent_at` on the peer's clock.
    pub(crate) fn on_arrival(
        &mut self,
        sent_at: Instant,
        clock: Option<ClockEstimate>,
        now: Instant,
    ) {
        let nanos = now.signed_nanos_since(sent_at);
        self.back.observe(nanos);
        if let Some(clock) = clock {
            self.back_spread.observe(nanos.saturating_add(clock.offset_nanos()), now);
        }
    }

    pub(crate) fn rtt_smoothed(&self) -> Option<Duration> {
        self.rtt_smoothed.map(nanos)
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt_floor.least
    }

    /// Returns the queueing delay of the latest ping and its pong: their RTT minus the minimum RTT;
    /// `None` before the first pong.
    pub(crate) fn queueing_latest(&self) -> Option<Duration> {
        self.rtt_min().map(|least| self.rtt_latest.saturating_sub(least))
    }

    /// Returns the smoothed one-way delay from us to the peer; `None` before the first sample or
    /// clock estimate.
    pub(crate) fn owd_out(&self, clock: Option<ClockEstimate>) -> Option<Duration> {
        Some(nanos(self.out.nanos? - clock?.offset_nanos() as f64))
    }

    /// Returns the smoothed one-way delay from the peer to us; `None` before the first sample or
    /// clock estimate.
    pub(crate) fn owd_in(&self, clock: Option<ClockEstimate>) -> Option<Duration> {
        Some(nanos(self.back.nanos? + clock?.offset_nanos() as f64))
    }

    /// Returns the percentiles of the one-way delays of the last ten seconds from us to the peer;
    /// `None` without samples.
    pub(crate) fn owd_out_spread(&self, now: Instant) -> Option<Percentiles> {
        self.out_spread.percentiles(now)
    }

    /// Returns the percentiles of the one-way delays of the last ten seconds from the peer to us;
    /// `None` without samples.
    pub(crate) fn owd_in_spread(&self, now: Instant) -> Option<Percentiles> {
        self.back_spread.percentiles(now)
    }

    pub(crate) fn jitter(&self) -> Option<Duration> {
        self.back.nanos.map(|_| nanos(self.back.jitter))
    }
}

impl Smooth {
    fn observe(&mut self, sample: i64) {
        let real = sample as f64;
        self.nanos = Some(match self.nanos {
            // A difference of seconds is a clock step, not a delay.
            Some(old) if (real - old).abs() < STEP_NANOS => old + (real - old) / RTT_SHARE,
            Some(_) | None => real,
        });
        if let Some(last) = self.last {
            let step = (real - last as f64).abs();
            if step < STEP_NANOS {
                self.jitter += (step - self.jitter) / JITTER_SHARE;
            }
        }
        self.last = Some(sample);
    }
}

impl Floor {
    fn observe(&mut self, rtt: Duration, now: Instant) {
        let second = now.as_millis() / 1_000;
        match self.slots.back_mut() {
            Some((at, least)) if *at == second => *least = rtt.min(*least),
            Some(_) | None => self.slots.push_back((second, rtt)),
        }
        while self.slots.front().is_some_and(|(at, _)| at + FLOOR_SECONDS <= second) {
            self.slots.pop_front();
        }
        self.least = self.slots.iter().map(|(_, least)| *least).min();
    }
}

/// Returns a delay of `value` nanoseconds; a negative one, which only an error of the clock
/// estimate produces, becomes zero.
fn nanos(value: f64) -> Duration {
    Duration::from_nanos(value as u64)
}

/// Divisor of a new sample in a smoothed delay ([RFC6298]: alpha = 1/8).
const RTT_SHARE: f64 = 8.0;
/// Divisor of a new difference in the jitter ([RFC3550] 6.4.1).
const JITTER_SHARE: f64 = 16.0;
/// Difference in nanoseconds from which a new sample shows a clock step and not a delay: the
/// smoothed delay restarts from it, and the jitter does not count the difference.
const STEP_NANOS: f64 = 5e9;
const FLOOR_SECONDS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Estimator;

    #[test]
    fn one_way_delays_use_the_clock_estimate() {
        let mut rtt = Rtt::new();
        let mut clock = Estimator::new();
        let peer = |millis: u64| Instant::from_millis(millis + 3_600_000);
        for round in 0..50 {
            let t0 = round * 20;
            // 10 ms out, 1 ms held, 10 ms back.
            let (t1, t2, t3) = (t0 + 10, t0 + 11, t0 + 21);
            let at = Instant::from_millis;
            let estimate = clock.estimate(at(t3));
            rtt.on_pong([at(t0), peer(t1), peer(t2), at(t3)], estimate);
            let lower = peer(t2).signed_nanos_since(at(t3));
            let upper = peer(t1).signed_nanos_since(at(t0));
            clock.observe(lower, upper, at(t3)).unwrap();
        }
        assert_eq!(rtt.rtt_smoothed(), Some(Duration::from_millis(20)));
        assert_eq!(rtt.rtt_min(), Some(Duration::from_millis(20)));
        assert_eq!(rtt.jitter(), Some(Duration::ZERO));
        assert_eq!(rtt.owd_out(None), None);
        for spread in [Rtt::owd_out_spread, Rtt::owd_in_spread] {
            let wrong = spread(&rtt, Instant::from_millis(1_001)).unwrap().p99.as_secs_f64() - 0.01;
            assert!(wrong.abs() < 0.000_4, "{wrong}");
        }
        let clock = clock.estimate(Instant::from_millis(1_001));
        for owd in [rtt.owd_out(clock).unwrap(), rtt.owd_in(clock).unwrap()] {
            let wrong = owd.abs_diff(Duration::from_millis(10));
            assert!(wrong < Duration::from_micros(10), "{owd:?}");
        }
    }

    #[test]
    fn hostile_times_do_not_panic() {
        let mut rtt = Rtt::new();
        let ends = [Instant::ZERO, Instant::from_nanos(u64::MAX), Instant::from_nanos(1 << 63)];
        for t0 in ends {
            for t1 in ends {
                for t2 in ends {
                    rtt.on_pong([t0, t1, t2, t0], None);
                }
            }
        }
        assert!(rtt.rtt_min().is_some());
    }
}
