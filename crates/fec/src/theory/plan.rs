use super::{Error, Stream, delay};

/// Target of a plan: a limit on the in-order delay of source packets, in slots.
///
/// A slot is the time between two packets of the stream: multiply a delay in seconds by the packets
/// sent per second, repair packets included. The link's own delay is additional.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// The exact mean, [`Delay::mean`](super::Delay::mean), is at most `slots`.
    Mean {
        /// Maximum mean delay, in slots.
        slots: f64,
    },
    /// The share `share` of the source packets waits at most `slots`: the exact tail,
    /// [`Delay::tail`](super::Delay::tail), is at most `1 - share`.
    Percentile {
        /// Share of source packets, for instance 0.99.
        share: f64,
        /// Maximum delay of the share `share` of the source packets, in slots.
        slots: u64,
    },
}

/// Returns the stream with the largest interval, and so the smallest overhead, that meets `target`
/// on a link that erases the share `erasure_rate` of all packets independently.
///
/// `interval_max` caps the search: without losses any interval meets the target. Bursty losses need
/// more repair packets than this plan. O(log(interval_max)) evaluations of the mean or of the tail:
/// both increase with the interval.
///
/// # Errors
/// [`Error::Interval`] for an `interval_max` below 2; [`Error::ErasureRate`]; [`Error::Quantity`]
/// for a mean that is negative or NaN; [`Error::Probability`] for a share not in 0 < share <= 1 -
/// 1e-9; [`Error::Unreachable`] if not even an interval of two slots meets the target.
pub fn largest_interval(
    erasure_rate: f64,
    target: Target,
    interval_max: u32,
) -> Result<Stream, Error> {
    target.check()?;
    if interval_max < 2 {
        return Err(Error::Interval { interval: interval_max });
    }
    let mut best = match Stream::new(2, erasure_rate) {
        Ok(stream) if target.is_met(&stream) => stream,
        Ok(stream) => return Err(target.unreachable(erasure_rate, target.measure(&stream))),
        Err(Error::Overload { .. }) => {
            return Err(target.unreachable(erasure_rate, f64::INFINITY));
        }
        Err(error) => return Err(error),
    };
    let mut too_large = interval_max.saturating_add(1);
    while too_large - best.interval() > 1 {
        let middle = best.interval().midpoint(too_large);
        match Stream::new(middle, erasure_rate) {
            Ok(stream) if target.is_met(&stream) => best = stream,
            _ => too_large = middle,
        }
    }
    Ok(best)
}

impl Target {
    fn check(&self) -> Result<(), Error> {
        match *self {
            Target::Mean { slots } if slots >= 0.0 => Ok(()),
            Target::Mean { slots } => Err(Error::Quantity { quantity: slots }),
            Target::Percentile { share, .. } => delay::check_share(share),
        }
    }

    fn is_met(&self, stream: &Stream) -> bool {
        self.measure(stream) <= self.allowed()
    }

    /// Returns the value that `allowed` limits: the mean in slots, or the share of packets that
    /// wait longer.
    fn measure(&self, stream: &Stream) -> f64 {
        match *self {
            Target::Mean { .. } => stream.delay().mean(),
            Target::Percentile { slots, .. } => stream.delay().tail(slots),
        }
    }

    fn allowed(&self) -> f64 {
        match *self {
            Target::Mean { slots } => slots,
            Target::Percentile { share, .. } => 1.0 - share,
        }
    }

    fn unreachable(&self, erasure_rate: f64, at_two_slots: f64) -> Error {
        Error::Unreachable { erasure_rate, at_two_slots, allowed: self.allowed() }
    }
}

#[cfg(test)]
#[cfg(not(miri))]
mod tests {
    use super::*;

    const RATES: [f64; 7] = [1e-4, 0.003, 0.01, 0.05, 0.1, 0.2, 0.45];

    #[test]
    fn the_next_larger_interval_misses_the_target() {
        for erasure_rate in RATES {
            for target in targets() {
                let Ok(planned) = largest_interval(erasure_rate, target, 4_000) else { continue };
                assert!(target.is_met(&planned), "{target:?} at {erasure_rate}: {planned:?}");
                let next = Stream::new(planned.interval() + 1, erasure_rate);
                let missed = next.is_err() || !target.is_met(&next.unwrap());
                assert!(missed || planned.interval() == 4_000, "{target:?} at {erasure_rate}");
            }
        }
    }

    #[test]
    fn mean_and_tail_rise_with_the_interval_and_the_erasure_rate() {
        for erasure_rate in RATES {
            let streams = (2..200).map_while(|interval| Stream::new(interval, erasure_rate).ok());
            let streams: Vec<Stream> = streams.collect();
            for pair in streams.windows(2) {
                assert_rises(&pair[0], &pair[1]);
                let weaker = Stream::new(pair[0].interval(), erasure_rate * 0.97).unwrap();
                assert_rises(&weaker, &pair[0]);
            }
        }
    }

    #[test]
    fn less_loss_or_more_time_never_needs_more_overhead() {
        let interval = |rate: f64, target: Target| {
            largest_interval(rate, target, 4_000).map_or(0, |stream| stream.interval())
        };
        for pair in RATES.windows(2) {
            for target in targets() {
                assert!(interval(pair[0], target) >= interval(pair[1], target), "{target:?}");
            }
            for slots in 0..40 {
                let mean = |slots: u64| Target::Mean { slots: slots as f64 / 4.0 };
                assert!(interval(pair[0], mean(slots)) <= interval(pair[0], mean(slots + 1)));
                let tail = |slots: u64| Target::Percentile { share: 0.99, slots };
                assert!(interval(pair[0], tail(slots)) <= interval(pair[0], tail(slots + 1)));
            }
        }
    }

    #[test]
    fn a_clean_link_gets_the_largest_interval_allowed() {
        let target = Target::Percentile { share: 0.999, slots: 0 };
        assert_eq!(largest_interval(0.0, target, 64).unwrap().interval(), 64);
    }

    #[test]
    fn unreachable_targets_are_refused_with_an_error() {
        let refused = largest_interval(0.3, Target::Mean { slots: 0.1 }, 100);
        assert!(matches!(refused, Err(Error::Unreachable { allowed: 0.1, .. })), "{refused:?}");
        let overloaded = largest_interval(0.5, Target::Mean { slots: 1e9 }, 100);
        assert!(
            matches!(overloaded, Err(Error::Unreachable { at_two_slots: f64::INFINITY, .. })),
            "{overloaded:?}"
        );
        assert!(largest_interval(0.1, Target::Mean { slots: 1.0 }, 1).is_err());
        assert!(largest_interval(0.1, Target::Mean { slots: f64::NAN }, 10).is_err());
        assert!(largest_interval(f64::NAN, Target::Mean { slots: 1.0 }, 10).is_err());
        assert!(largest_interval(0.1, Target::Percentile { share: 1.0, slots: 9 }, 10).is_err());
    }

    fn targets() -> Vec<Target> {
        let means = [0.01, 0.5, 2.0, 30.0].map(|slots| Target::Mean { slots });
        let shares = [(0.5, 0), (0.9, 3), (0.99, 0), (0.99, 20), (0.999_999, 500)];
        let tails = shares.map(|(share, slots)| Target::Percentile { share, slots });
        means.into_iter().chain(tails).collect()
    }

    fn assert_rises(lower: &Stream, upper: &Stream) {
        assert!(lower.delay().mean() <= upper.delay().mean(), "{lower:?} {upper:?}");
        for slots in [0, 1, 2, 3, 5, 8, 13, 40, 100] {
            let (low, high) = (lower.delay().tail(slots), upper.delay().tail(slots));
            assert!(low <= high + 1e-12, "P(D > {slots}): {low} {high}, {lower:?} {upper:?}");
        }
    }
}
