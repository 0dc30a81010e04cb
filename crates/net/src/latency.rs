//! Raw files of latency: a line for each answered probe, with its three timestamps ([UGV],
//! "Measuring Latency").
//!
//! Switchboard and relay write them for their legs to each end, the operator for each link to the
//! vehicle; docs/latency.md specifies the content. A [`Log`] writes them, [`read`] reads them.

use tautline_message::Control;
use tautline_transport::clock::Estimator;
use tautline_units::Instant;

use crate::clock::Clock;

mod leg;
mod line;
mod log;
mod one_way;
mod sample;
mod summary;

pub use leg::Leg;
pub use line::{HEAD, Line, Malformed, read};
pub use log::{FILE_PREFIX, FILE_SUFFIX, Log, files_in};
pub use one_way::OneWay;
pub use sample::Sample;
pub use summary::{BINS, SPIKE, Spikes, Summary};

/// A comparison of a far end's clock with the local one, based on its answers: see [`Estimator`].
#[derive(Clone, Debug, Default)]
pub struct Comparer {
    estimator: Estimator,
}

impl Comparer {
    /// Takes an immediate answer: send time of its probe (local clock), arrival (far end's), and
    /// return (local clock). Returns the one-way delays by all recent answers; `None` before the
    /// first answer whose times do not contradict each other.
    pub fn compare(
        &mut self,
        sent_at: Instant,
        seen_at: Instant,
        back_at: Instant,
    ) -> Option<OneWay> {
        let lower = seen_at.signed_nanos_since(back_at);
        let upper = seen_at.signed_nanos_since(sent_at);
        // After a restart of the far end the comparison restarts.
        let _ = self.estimator.observe(lower, upper, back_at);
        let estimate = self.estimator.estimate(back_at)?;
        Some(OneWay::of([sent_at, seen_at, seen_at, back_at], &estimate))
    }
}

/// Returns the answer to a switchboard's ping received just now; `None` for any other message.
pub fn pong(message: &[u8], clock: Clock) -> Option<Vec<u8>> {
    match Control::decode(message) {
        Ok(Control::Ping { t }) => Some(Control::Pong { t, seen_at: Some(clock.now()) }.encode()),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_units::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_parts_of_a_round_trip_are_known_to_half_of_the_least() {
        let mut comparer = Comparer::default();
        // The far end's clock is an hour ahead. 10 ms out, 30 ms back; then 10 and 10; then 10 and
        // 90.
        let hour = 3_600_000;
        let parts: Vec<OneWay> = [(0, 30), (1_000, 10), (2_000, 90)]
            .into_iter()
            .map(|(sent, back)| {
                comparer.compare(at(sent), at(sent + 10 + hour), at(sent + 10 + back)).unwrap()
            })
            .collect();
        let ms = |nanos: i64| (nanos as f64 / 1e6).round();
        assert_eq!(parts.iter().map(|it| ms(it.out_nanos)).collect::<Vec<_>>(), [20.0, 10.0, 10.0]);
        assert_eq!(parts.iter().map(|it| ms(it.in_nanos)).collect::<Vec<_>>(), [20.0, 10.0, 90.0]);
        for (it, (out, back, error)) in parts.iter().zip([(10, 30, 20), (10, 10, 10), (10, 90, 10)])
        {
            assert_eq!(ms(it.error.as_nanos() as i64), f64::from(error));
            let wrong = (it.out_nanos - i64::from(out) * 1_000_000).unsigned_abs();
            assert!(u128::from(wrong) <= it.error.as_nanos());
            assert_eq!(it.out_nanos + it.in_nanos, i64::from(out + back) * 1_000_000);
        }
    }

    #[test]
    fn a_far_end_that_begins_anew_is_compared_anew() {
        let mut comparer = Comparer::default();
        comparer.compare(at(0), at(500_010), at(20)).unwrap();
        let anew = comparer.compare(at(1_000), at(7), at(1_040)).unwrap();
        assert_eq!((anew.out_nanos, anew.in_nanos), (20_000_000, 20_000_000));
        assert!(anew.error >= Duration::from_millis(20), "{anew:?}");
    }

    #[test]
    fn hostile_times_do_not_panic() {
        let ends = [Instant::ZERO, Instant::from_nanos(u64::MAX), Instant::from_nanos(1 << 63)];
        let mut comparer = Comparer::default();
        for sent in ends {
            for seen in ends {
                for back in ends {
                    let _ = comparer.compare(sent, seen, back);
                }
            }
        }
    }

    #[test]
    fn a_ping_is_answered_with_the_time_and_nothing_else_is() {
        let clock = Clock::start();
        let ping = Control::Ping { t: at(3) }.encode();
        let answer = Control::decode(&pong(&ping, clock).unwrap()).unwrap();
        let Control::Pong { t, seen_at: Some(seen_at) } = answer else { panic!("{answer:?}") };
        assert!(t == at(3) && seen_at > Instant::ZERO && seen_at <= clock.now());
        assert_eq!(pong(&Control::Release.encode(), clock), None);
        assert_eq!(pong(b"no message", clock), None);
    }

    proptest! {
        #[test]
        fn any_message_but_a_ping_has_no_answer(bytes: Vec<u8>, at: u64, flip: u16) {
            prop_assert_eq!(pong(&bytes, Clock::start()), None);
            let mut ping = Control::Ping { t: Instant::from_nanos(at) }.encode();
            prop_assert!(pong(&ping, Clock::start()).is_some());
            let at = usize::from(flip >> 3) % ping.len();
            ping[at] ^= 1 << (flip & 7);
            let answer = pong(&ping, Clock::start());
            prop_assert!(answer.is_none_or(|answer| answer.len() < 200));
        }
    }
}
