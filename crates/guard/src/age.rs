//! Age of the picture that a person sees, and lateness of arriving frames.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::identity::Tick;

/// Loop age: time from the capture of the newest picture that a person saw to its citation at the
/// guard, by the guard's clock alone.
///
/// A cited tick is looked up among those issued; no other information determines its age.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoopAge {
    /// Issue times of the newest ticks, a ring indexed by the tick's count.
    #[serde(with = "issued")]
    issued: [Instant; TICKS_KEPT],
    /// Total number of ticks issued.
    issued_count: u64,
    /// Newest tick issued; `None` before the first.
    newest: Option<Tick>,
    cited: Option<Cited>,
    /// Age of the previously cited picture when the newest citation arrived; 0 for the first.
    peak: Duration,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Cited {
    tick: Tick,
    issued_at: Instant,
}

impl LoopAge {
    pub(crate) const fn new() -> Self {
        let issued = [Instant::ZERO; TICKS_KEPT];
        Self { issued, issued_count: 0, newest: None, cited: None, peak: Duration::ZERO }
    }

    /// Records that `tick` is issued now; it must be the one after the last.
    pub(crate) fn issue(&mut self, tick: Tick, now: Instant) {
        self.issued[(self.issued_count % TICKS_KEPT as u64) as usize] = now;
        self.issued_count += 1;
        self.newest = Some(tick);
    }

    /// Records a command's citation, if it is valid, and returns whether it is. A tick that was
    /// never issued, is no longer kept, or is older than the one last cited, changes nothing.
    pub(crate) fn cite(&mut self, tick: Tick, now: Instant) -> bool {
        let Some(issued_at) = self.issued_at(tick) else { return false };
        match self.cited {
            Some(cited) if cited.tick == tick => true,
            Some(cited) if tick.behind(cited.tick).is_some() => false,
            Some(cited) => {
                self.peak = now.since(cited.issued_at);
                self.cited = Some(Cited { tick, issued_at });
                true
            }
            None => {
                self.peak = Duration::ZERO;
                self.cited = Some(Cited { tick, issued_at });
                true
            }
        }
    }

    /// Clears the citation: another person takes over.
    pub(crate) fn forget(&mut self) {
        self.cited = None;
    }

    /// Returns the age of the newest picture cited; `None` if none was since [`forget`].
    ///
    /// [`forget`]: Self::forget
    pub(crate) fn current(&self, now: Instant) -> Option<Duration> {
        self.cited.map(|cited| now.since(cited.issued_at))
    }

    /// Returns the greatest age since just before the newest citation arrived: the current one, or
    /// the former picture's then. `None` if no picture was cited.
    pub(crate) fn worst(&self, now: Instant) -> Option<Duration> {
        self.current(now).map(|current| current.max(self.peak))
    }

    fn issued_at(&self, tick: Tick) -> Option<Instant> {
        let behind = u64::from(tick.behind(self.newest?)?);
        let is_kept = behind < self.issued_count.min(TICKS_KEPT as u64);
        let place = self.issued_count.checked_sub(1 + behind)? % TICKS_KEPT as u64;
        is_kept.then_some(self.issued[place as usize])
    }
}

/// Lateness of frames relative to the quickest from the same sender. Two clocks are never compared
/// directly; only the change of their difference counts.
///
/// The reference is the least clock difference observed. One frame alone lowers it by at most a
/// millisecond: otherwise a frame with wrong times would make all later frames look late for
/// minutes. An example is a frame compared with a clock reading from before its arrival. Three
/// frames that agree within two seconds lower it fully. Only the clocks' drift raises the
/// reference, so a standing queue never becomes the quickest path.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LateFrames {
    last: Option<Heard>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Heard {
    source: Instant,
    at: Instant,
    /// Least clock difference observed, in nanoseconds, raised by the possible drift.
    least: i64,
    early: Option<Early>,
}

/// Frames quicker than the reference, and not yet numerous enough to lower it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Early {
    /// Greatest clock difference of the early frames, which becomes the new reference, ns.
    least: i64,
    /// Arrival time of the first of the early frames.
    since: Instant,
    /// Number of early frames so far that agree.
    count: u8,
}

impl LateFrames {
    /// Takes the send time of a frame by the sender's clock. Returns the frame's lateness: its
    /// transit time beyond the quickest frame's, 0 for the first frame, for a restarted sender, and
    /// after [`ANEW`] without frames.
    ///
    /// The caller reads `now` after receiving the frame: an older reading makes the frame look
    /// early.
    pub fn handle(&mut self, source: Instant, now: Instant) -> Duration {
        let difference = now.signed_nanos_since(source);
        let (least, early) = match self.last {
            // A clock that went backwards belongs to a restarted sender, and after a long silence
            // this is possible too: the former sender's times no longer apply.
            Some(last) if source >= last.source && now.since(last.at) < ANEW => {
                let drift = now.since(last.at).as_nanos() as i64 / DRIFT_DIVISOR;
                let least = last.least.saturating_add(drift);
                let early = last.early.filter(|early| now.since(early.since) < EARLY_SPAN);
                judge(difference, least, early, now)
            }
            Some(_) | None => (difference, None),
        };
        self.last = Some(Heard { source, at: now, least, early });
        Duration::from_nanos(difference.saturating_sub(least).max(0).unsigned_abs())
    }
}

/// Returns the reference after a frame with this clock difference, ns, and the early frames that
/// have not lowered it yet.
fn judge(difference: i64, least: i64, early: Option<Early>, now: Instant) -> (i64, Option<Early>) {
    if difference >= least.saturating_sub(AGREE) {
        return (least.min(difference), early);
    }
    let agrees = |early: &Early| difference.abs_diff(early.least) <= AGREE.unsigned_abs();
    let early = match early.filter(agrees) {
        Some(early) => {
            Early { least: early.least.max(difference), count: early.count + 1, ..early }
        }
        None => Early { least: difference, since: now, count: 1 },
    };
    if early.count < EARLY_COUNT { (least, Some(early)) } else { (early.least, None) }
}

/// Serialization of the instants as one tuple: serde supports arrays of up to 32 elements.
mod issued {
    use core::fmt;

    use serde::de::{Deserializer, Error, SeqAccess, Visitor};
    use serde::ser::{SerializeTuple, Serializer};
    use tautline_units::Instant;

    use super::TICKS_KEPT;

    pub(super) fn serialize<S: Serializer>(
        issued: &[Instant; TICKS_KEPT],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(TICKS_KEPT)?;
        issued.iter().try_for_each(|instant| tuple.serialize_element(&instant.as_nanos()))?;
        tuple.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<[Instant; TICKS_KEPT], D::Error> {
        deserializer.deserialize_tuple(TICKS_KEPT, Table)
    }

    struct Table;

    impl<'de> Visitor<'de> for Table {
        type Value = [Instant; TICKS_KEPT];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{TICKS_KEPT} instants")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut issued = [Instant::ZERO; TICKS_KEPT];
            for (at, place) in issued.iter_mut().enumerate() {
                let nanos =
                    seq.next_element()?.ok_or_else(|| A::Error::invalid_length(at, &self))?;
                *place = Instant::from_nanos(nanos);
            }
            Ok(issued)
        }
    }
}

/// Number of newest ticks that may be cited: five seconds of steps, ten times the maximum picture
/// age.
const TICKS_KEPT: usize = 512;
/// Silence after which the reference begins anew, because the sender may be a new process: longer
/// than a machine is driven without a frame, shorter than a restart of a process takes.
const ANEW: Duration = Duration::from_secs(1);
/// Number of agreeing early frames that establish a quicker path, which takes 30 ms.
const EARLY_COUNT: u8 = 3;
/// Time for which an early frame waits for others that agree; then it is discarded.
const EARLY_SPAN: Duration = Duration::from_secs(2);
/// Difference of quick frames of one path, ns, up to which one frame lowers the reference, and up
/// to which early frames agree: a thirtieth of the sender's timeout.
const AGREE: i64 = 1_000_000;
/// Divisor of the elapsed time that gives the assumed drift of two clocks, 200 millionths: twice
/// that of a bad crystal.
const DRIFT_DIVISOR: i64 = 5_000;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn tick(number: u32) -> Tick {
        Tick::new(number).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Issues ticks 5 to `last`, one every 10 ms from 50 ms on.
    fn issued(last: u32) -> LoopAge {
        let mut age = LoopAge::new();
        (5..=last).for_each(|number| age.issue(tick(number), at(u64::from(number) * 10)));
        age
    }

    #[test]
    fn a_tick_never_issued_or_forgotten_or_backwards_is_refused() {
        let mut age = issued(900);
        assert!(!age.cite(tick(901), at(9_000)));
        assert!(!age.cite(tick(4), at(9_000)));
        assert!(!age.cite(tick(900 - TICKS_KEPT as u32), at(9_000)), "no longer kept");
        assert_eq!(age.current(at(9_000)), None);
        assert!(age.cite(tick(890), at(9_000)));
        assert!(age.cite(tick(890), at(9_010)), "the same picture may be cited again");
        assert!(!age.cite(tick(889), at(9_010)), "backwards");
        assert_eq!(age.current(at(9_010)), Some(ms(110)));
        age.forget();
        assert!(age.cite(tick(889), at(9_010)), "of another person");
    }

    #[test]
    fn the_worst_age_of_the_last_picture_interval_counts() {
        let mut age = issued(40);
        assert!(age.cite(tick(20), at(300)));
        assert_eq!(age.worst(at(340)), Some(ms(140)));
        assert!(age.cite(tick(25), at(345)));
        assert_eq!((age.current(at(345)), age.worst(at(345))), (Some(ms(95)), Some(ms(145))));
        assert_eq!(age.worst(at(445)), Some(ms(195)), "a picture that stands grows old");
    }

    #[test]
    fn a_queue_that_stood_still_makes_frames_late() {
        let mut late = LateFrames::default();
        assert_eq!(late.handle(at(5_000), at(100)), ms(0));
        assert_eq!(late.handle(at(5_010), at(112)), ms(2) - ms(12) / 5_000);
        let stood = late.handle(at(5_020), at(520));
        assert!(stood > ms(399) && stood <= ms(400), "{stood:?}");
        assert_eq!(late.handle(at(7), at(530)), ms(0), "another sender's clock");
        assert!(late.handle(at(8), at(1_529)) > ms(900));
        assert_eq!(late.handle(at(900), at(2_529)), ms(0), "it may be another sender's");
    }

    /// Returns the lateness of frames sent every 10 ms over a path of 1 ms, each shifted by `wrong`
    /// ms.
    fn lateness(turns: u64, wrong: impl Fn(u64) -> i64) -> Vec<Duration> {
        let mut late = LateFrames::default();
        let turn = |turn: u64| {
            let (source, now) = (at(5_000 + 10 * turn), at(1_000 + 10 * turn + 1));
            late.handle(source, now.offset_by_nanos(wrong(turn) * 1_000_000))
        };
        (0..turns).map(turn).collect()
    }

    #[test]
    fn one_frame_that_is_too_early_makes_no_other_late() {
        // A turn that paused for 106 ms between its clock reading and its receive call.
        for early in 1..=106 {
            let late = lateness(40_000, |turn| if turn == 50 { -early } else { 0 });
            // One millisecond is accepted at once: quick frames differ by as much.
            let most = if early == 1 { ms(1) } else { ms(0) };
            assert!(late.iter().all(|late| *late <= most), "{early} ms early");
        }
        let stalled =
            |turn: u64| if (50..60).contains(&turn) { 10 * (turn as i64 - 60) } else { 0 };
        assert!(lateness(40_000, stalled).iter().all(|late| *late == ms(0)), "all that waited");
    }

    #[test]
    fn three_faster_frames_set_a_new_minimum_for_lateness() {
        // The first frame waited for 400 ms.
        let late = lateness(100, |turn| if turn == 0 || turn > 50 { 400 } else { 0 });
        assert_eq!(late[3..=50], [ms(0); 48]);
        assert!(late[51..].iter().all(|late| *late > ms(399)), "{:?}", &late[51..]);
    }

    #[test]
    fn a_standing_queue_never_becomes_the_minimum_delay() {
        let late = lateness(3_000, |turn| if turn > 50 { 100 } else { 0 });
        // In half a minute the clocks may drift by 6 ms.
        assert!(late[51..].iter().all(|late| (ms(93)..=ms(100)).contains(late)));
    }

    proptest! {
        /// Arbitrary send times: nothing overflows.
        #[test]
        fn no_time_of_a_sender_is_too_odd(
            frames in proptest::collection::vec((any::<u64>(), 0..2_000_000_000_u64), 1..50),
        ) {
            let (mut late, mut now) = (LateFrames::default(), at(0));
            for (source, wait) in frames {
                now += Duration::from_nanos(wait);
                late.handle(Instant::from_nanos(source), now);
            }
        }

        /// After three of the quickest frames, the lateness of a delayed one is underestimated by
        /// at most the drift plus the tolerance of quick frames.
        #[test]
        fn a_late_frame_never_counts_as_fresh(
            waits in proptest::collection::vec(0..400_u64, 1..300),
        ) {
            let (mut late, mut at_last) = (LateFrames::default(), at(1_000));
            for (turn, wait) in [0, 0, 0].into_iter().chain(waits).enumerate() {
                let source = at(5_000 + 10 * turn as u64);
                // In order: no frame overtakes another.
                let now = at(1_000 + 10 * turn as u64 + wait).max(at_last);
                at_last = now;
                let really = now.since(at(1_000 + 10 * turn as u64));
                let found = late.handle(source, now);
                let drift = ms(3 + 10 * turn as u64 + 400) / 5_000;
                prop_assert!(found <= really && found + drift + ms(1) >= really, "{found:?}, {really:?}");
            }
        }

        #[test]
        fn no_citation_is_younger_than_its_tick(
            citations in proptest::collection::vec((0u32..60, 0u64..200), 1..50),
        ) {
            let mut age = LoopAge::new();
            let mut now = at(0);
            for (step, (cited, wait)) in citations.into_iter().enumerate() {
                now += ms(wait);
                age.issue(tick(step as u32 + 1), now);
                let before = age.current(now);
                if let Some(cited) = Tick::new(cited) {
                    let is_taken = age.cite(cited, now);
                    prop_assert!(!is_taken || cited.get() <= step as u32 + 1);
                }
                prop_assert!(age.current(now) <= before || before.is_none());
                prop_assert!(age.worst(now) >= age.current(now));
            }
        }
    }
}
