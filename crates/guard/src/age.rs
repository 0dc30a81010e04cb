//! How old what a person sees is, and how late what arrives.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::identity::Tick;

/// The loop age: from the capture of the newest picture that a person saw to the guard, by the
/// guard's clock alone.
///
/// A tick that a command cites is looked up among those issued; nothing else says how old it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoopAge {
    /// When each of the newest ticks was issued, at the place of its count.
    #[serde(with = "issued")]
    issued: [Instant; TICKS_KEPT],
    /// How many were issued in all.
    issued_count: u64,
    newest: Option<Tick>,
    cited: Option<Cited>,
    /// The age of the picture before the one cited, right before that came.
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

    /// Takes note that `tick`, the one after the last, is issued now.
    pub(crate) fn issue(&mut self, tick: Tick, now: Instant) {
        self.issued[(self.issued_count % TICKS_KEPT as u64) as usize] = now;
        self.issued_count += 1;
        self.newest = Some(tick);
    }

    /// Takes what a command cites; returns whether it was issued and does not go backwards.
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

    /// Forgets what was cited: another person looks.
    pub(crate) fn forget(&mut self) {
        self.cited = None;
    }

    /// Returns how old the newest picture seen is now.
    pub(crate) fn current(&self, now: Instant) -> Option<Duration> {
        self.cited.map(|cited| now.since(cited.issued_at))
    }

    /// Returns the worst age over the last picture interval.
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

/// How late frames come beside the quickest of the same sender: two clocks are not compared, only
/// how they run apart.
///
/// The least difference of the two clocks that was seen is what "quickest" means. One frame alone does not lower it by
/// more than a millisecond: a frame whose times are wrong, such as one that was read by a clock from before it came, would make all that
/// follow late for minutes. Three that agree within two seconds do. Nothing but the clocks' drift raises it: a queue that
/// stands for long is no quick way.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct LateFrames {
    last: Option<Heard>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Heard {
    source: Instant,
    at: Instant,
    /// The least difference of the clocks seen, in nanoseconds, let grow as clocks may drift.
    least: i64,
    early: Option<Early>,
}

/// Frames that came earlier than the quickest, while they are too few to be believed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Early {
    least: i64,
    since: Instant,
    count: u8,
}

impl LateFrames {
    /// Takes when a frame was made, by the sender's clock; returns how long it was under way beyond
    /// the quickest.
    ///
    /// `now` is read after the frame was received: by a clock from before, one that came meanwhile is early.
    pub fn handle(&mut self, source: Instant, now: Instant) -> Duration {
        let difference = now.signed_nanos_since(source);
        let (least, early) = match self.last {
            // A clock that went backwards is another one, and after so long a silence it may be: its sender was
            // started anew, and the former one's tells nothing.
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

/// Returns the least difference after another one has been seen, and what is too early to be believed yet.
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

/// All of a table's instants, one after the other: serde knows arrays of up to 32.
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

/// Five seconds of steps: ten times what a picture may age.
const TICKS_KEPT: usize = 512;
/// Longer than a machine is driven without a frame, and shorter than a process takes to come back.
const ANEW: Duration = Duration::from_secs(1);
/// So many frames that agree make a quicker way, which takes 30 ms.
const EARLY_COUNT: u8 = 3;
/// For so long an early frame waits for others that agree; then it is forgotten.
const EARLY_SPAN: Duration = Duration::from_secs(2);
/// Nanoseconds by which quick frames of one way differ: a thirtieth of what a sender may be silent.
const AGREE: i64 = 1_000_000;
/// Two clocks that run 200 millionths apart: twice what a bad crystal does.
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

    /// Ticks 5 to `last`, one each 10 ms from 50 ms on.
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

    /// Returns how late frames are that come each 10 ms over a way of 1 ms, some by so many ms otherwise than they should.
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
        // A turn that stood for 106 ms between its clock and what it then received.
        for early in 1..=106 {
            let late = lateness(40_000, |turn| if turn == 50 { -early } else { 0 });
            // One millisecond is taken at once: it is what quick frames differ by.
            let most = if early == 1 { ms(1) } else { ms(0) };
            assert!(late.iter().all(|late| *late <= most), "{early} ms early");
        }
        let stalled =
            |turn: u64| if (50..60).contains(&turn) { 10 * (turn as i64 - 60) } else { 0 };
        assert!(lateness(40_000, stalled).iter().all(|late| *late == ms(0)), "all that waited");
    }

    #[test]
    fn a_way_that_becomes_quicker_is_known_after_three_frames_and_what_is_then_late_is_late() {
        // The first of all has waited for 400 ms.
        let late = lateness(100, |turn| if turn == 0 || turn > 50 { 400 } else { 0 });
        assert_eq!(late[3..=50], [ms(0); 48]);
        assert!(late[51..].iter().all(|late| *late > ms(399)), "{:?}", &late[51..]);
    }

    #[test]
    fn a_queue_that_stands_is_not_taken_for_the_quickest_way_however_long() {
        let late = lateness(3_000, |turn| if turn > 50 { 100 } else { 0 });
        // Of half a minute the clocks' drift may be 6 ms.
        assert!(late[51..].iter().all(|late| (ms(93)..=ms(100)).contains(late)));
    }

    proptest! {
        /// Whatever a sender says of its times: nothing overflows, and what comes quickest is not late.
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

        /// Frames that really wait are never less late than they are, by more than quick ones differ by and the drift,
        /// once three of the quickest have come.
        #[test]
        fn what_is_really_late_never_looks_fresh(
            waits in proptest::collection::vec(0..400_u64, 1..300),
        ) {
            let (mut late, mut at_last) = (LateFrames::default(), at(1_000));
            for (turn, wait) in [0, 0, 0].into_iter().chain(waits).enumerate() {
                let source = at(5_000 + 10 * turn as u64);
                // In order: none overtakes another.
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
