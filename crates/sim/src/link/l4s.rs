use super::config::L4s;

/// Marking of an L4S queue: a linear ramp over the queue delay, and all packets beyond it
/// ([RFC9332], appendix A).
///
/// Marks are spread evenly, without randomness. There is a single queue, in order of arrival. The
/// classic queue and the coupling between the two are left out.
#[derive(Debug)]
pub(super) struct Ramp {
    /// Queue delay in nanoseconds up to which nothing is marked.
    from: u64,
    range: u64,
    /// Sum of all marking probabilities minus the packets marked.
    owed: f64,
}

impl Ramp {
    pub(super) fn new(config: &L4s) -> Self {
        let nanos = |millis: f64| (millis * 1e6) as u64;
        Self { from: nanos(config.threshold_ms), range: nanos(config.range_ms), owed: 0.0 }
    }

    /// Returns whether to mark a packet that waits for `sojourn` nanoseconds behind `ahead` bytes.
    pub(super) fn marks(&mut self, sojourn: u64, ahead: u64) -> bool {
        if sojourn <= self.from || ahead <= AHEAD_BYTES {
            return false;
        }
        let over = sojourn - self.from;
        self.owed += if over >= self.range { 1.0 } else { over as f64 / self.range as f64 };
        let marks = self.owed >= 1.0;
        if marks {
            self.owed -= 1.0;
        }
        marks
    }
}

/// Queue of one full packet, up to which nothing is marked on however slow a link ([RFC9332],
/// `Th_len`).
const AHEAD_BYTES: u64 = 1_500;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tautline_units::{Bitrate, ByteCount, Ecn, Instant};

    use super::*;
    use crate::link::{Config, Drop, Link};

    const BYTES: ByteCount = ByteCount::new(1_222);

    /// Returns a link of 10 Mbit/s, on which one packet of `BYTES` takes 1 ms with its headers.
    fn link(config: L4s) -> Link<Ecn> {
        let config = Config { l4s: Some(config), ..Config::of_rate(Bitrate::from_mbps(10)) };
        Link::new(&config, 1).expect("a sound link")
    }

    #[test]
    fn only_waiting_ect1_packets_are_marked() {
        let mut link = link(L4s::default());
        let mut came = Vec::new();
        for (number, ecn) in
            [Ecn::Ect1, Ecn::Ect1, Ecn::Ect1, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ect1]
                .into_iter()
                .enumerate()
        {
            let marked = link.mark(Instant::ZERO, ecn);
            assert_eq!(link.push(Instant::ZERO, BYTES, marked), Ok(()), "{number}");
        }
        while let Some((_, ecn)) = link.pop(Instant::from_millis(100)) {
            came.push(ecn);
        }
        // The second waits 1 ms behind a single packet, the third 2 ms.
        let wanted = [Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ce];
        assert_eq!(came, wanted);
        assert_eq!(link.counters().marked, 2);
    }

    #[test]
    fn on_the_ramp_the_share_marked_is_how_far_up_it_is_waited() {
        let mut ramp = Ramp::new(&L4s { threshold_ms: 1.0, range_ms: 2.0 });
        let mut share = |micros: u64| {
            let marks = (0..1_000).filter(|_| ramp.marks(micros * 1_000, 3_000)).count();
            marks as f64 / 1_000.0
        };
        let shares = [900, 1_000, 1_500, 2_000, 2_999, 3_000, 90_000].map(&mut share);
        for (share, wanted) in shares.iter().zip([0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 1.0]) {
            assert!((share - wanted).abs() < 0.002, "{shares:?}");
        }
    }

    #[test]
    fn marks_are_fields_with_bounds() {
        let text = "rate_mbps = 10.0\nl4s = {}";
        let config: Config = toml::from_str(text).expect("toml");
        assert_eq!(config.l4s, Some(L4s { threshold_ms: 0.8, range_ms: 0.4 }));
        let wrong = Config { l4s: Some(L4s { threshold_ms: -1.0, range_ms: 0.4 }), ..config };
        let error = wrong.validate().expect_err("below zero").to_string();
        assert_eq!(error, "l4s.threshold_ms = -1: must be 0 to 1000 ms");
    }

    proptest! {
        /// Marking changes neither fates nor times.
        #[test]
        fn a_link_that_marks_is_otherwise_the_same(
            calls in prop::collection::vec((0_u64..3_000, 1_u64..1_500, 0_u8..4), 1..200),
            seed in any::<u64>(),
        ) {
            let plain = Config {
                loss: 0.1,
                queue_bytes: 6_000,
                ..Config::of_rate(Bitrate::from_mbps(4))
            };
            let marking = Config { l4s: Some(L4s::default()), ..plain.clone() };
            let run = |config: &Config| {
                let mut link = Link::new(config, seed).expect("a sound link");
                let (mut now, mut seen) = (Instant::ZERO, Vec::new());
                for (micros, bytes, bits) in &calls {
                    now += Duration::from_micros(*micros);
                    let ecn = Ecn::of_bits(*bits);
                    let left = link.mark(now, ecn);
                    assert!(left == ecn || (ecn, left) == (Ecn::Ect1, Ecn::Ce));
                    let fate: Result<(), Drop> = link.push(now, ByteCount::new(*bytes), left);
                    let came = std::iter::from_fn(|| link.pop(now)).map(|(at, _)| at);
                    seen.push((fate, came.collect::<Vec<_>>()));
                }
                seen
            };
            prop_assert_eq!(run(&plain), run(&marking));
        }
    }
}
