//! Ticks carried by pictures, and the rule for which of them a command may cite.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The guard's ticks on their path through pictures: from the guard to the captures, and back as
/// citations.
///
/// A tick may be cited if its picture was read completely, was not a repeated capture, and had a
/// slice sent. No person can have seen another tick on a picture; ticks are also in telemetry.
#[derive(Debug)]
pub struct Ticks {
    /// The guard's newest tick; 0 before the first.
    newest: AtomicU32,
    /// True while the machine is faster than [`REPEATABLE_SPEED`] or its speed is unknown, so that
    /// a repeated capture does not count.
    is_moving: AtomicBool,
    kept: Mutex<[Carried; KEPT]>,
    uncarried: AtomicU64,
    repeated: AtomicU64,
}

/// A tick, and the state of the picture or pictures that carry it.
#[derive(Clone, Copy, Default, Debug)]
struct Carried {
    /// Tick of the guard that a picture carries; 0 for none.
    tick: u32,
    capture: Capture,
    is_sent: bool,
}

/// State of a picture that carries a tick.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Capture {
    /// Picture that is still being read.
    #[default]
    Begun,
    /// Picture that repeats an earlier capture.
    Repeated,
    /// Picture with a new capture.
    New,
}

impl Default for Ticks {
    fn default() -> Self {
        Self {
            newest: AtomicU32::new(0),
            is_moving: AtomicBool::new(false),
            kept: Mutex::new([Carried::default(); KEPT]),
            uncarried: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
        }
    }
}

impl Ticks {
    /// Records the guard's newest tick and the machine's speed (m/s); NaN (unknown) counts as
    /// moving.
    pub fn handle_tick(&self, tick: u32, speed: f32) {
        self.newest.store(tick, Ordering::Relaxed);
        let is_slow = speed.abs() <= REPEATABLE_SPEED;
        self.is_moving.store(!is_slow, Ordering::Relaxed);
    }

    /// Returns the guard's newest tick; 0 before the first.
    pub fn newest(&self) -> u32 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Returns whether the machine is too fast for a repeated capture to count.
    pub fn is_moving(&self) -> bool {
        self.is_moving.load(Ordering::Relaxed)
    }

    /// Records that a picture stamped with `tick` has been read, and whether it counts as a
    /// capture. Tick 0 (none) is ignored; a tick that has counted once keeps counting.
    pub fn note_capture(&self, tick: u32, counts: bool) {
        self.note(tick, |carried| {
            // Two pictures may carry the same tick; the older one determines its age.
            if carried.capture != Capture::New {
                carried.capture = if counts { Capture::New } else { Capture::Repeated };
            }
        });
    }

    /// Records that a slice stamped with `tick` was handed to the links; tick 0 (none) is ignored.
    pub fn note_sent(&self, tick: u32) {
        self.note(tick, |carried| carried.is_sent = true);
    }

    /// Forgets the pictures of the previous session: their ticks may not be cited in the new one.
    pub fn handle_new_session(&self) {
        *self.lock() = [Carried::default(); KEPT];
    }

    /// Returns `cited` if a picture of this session that was a new capture carried it and was sent;
    /// otherwise counts the refusal and returns 0 (none).
    pub fn citable(&self, cited: u32) -> u32 {
        if cited == 0 {
            return 0;
        }
        let carried = self.lock()[place(cited)];
        let refused = match carried {
            Carried { tick, capture: Capture::New, is_sent: true } if tick == cited => {
                return cited;
            }
            Carried { tick, capture: Capture::Repeated, .. } if tick == cited => &self.repeated,
            Carried { .. } => &self.uncarried,
        };
        refused.fetch_add(1, Ordering::Relaxed);
        0
    }

    /// Returns how many citations were refused: because no picture that was sent carried the tick,
    /// and because the picture was a repeated capture.
    pub fn refused(&self) -> [u64; 2] {
        [&self.uncarried, &self.repeated].map(|count| count.load(Ordering::Relaxed))
    }

    fn note(&self, tick: u32, change: impl FnOnce(&mut Carried)) {
        if tick == 0 {
            return;
        }
        let carried = &mut self.lock()[place(tick)];
        if carried.tick != tick {
            *carried = Carried { tick, ..Carried::default() };
        }
        change(carried);
    }

    fn lock(&self) -> MutexGuard<'_, [Carried; KEPT]> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(tick: u32) -> usize {
    tick as usize % KEPT
}

/// Speed in m/s up to which a repeated capture counts as a new one: the machine may stand still
/// between two pictures.
const REPEATABLE_SPEED: f32 = 0.5;
/// Number of ticks kept, 5 s of guard steps; the guard looks no further back.
const KEPT: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tick_that_no_picture_carried_is_cited_by_nobody() {
        let ticks = Ticks::default();
        ticks.handle_tick(70, 0.0);
        assert_eq!(ticks.citable(70), 0, "the guard told it, and telemetry tells it on");
        ticks.note_sent(70);
        assert_eq!(ticks.citable(70), 0, "its picture is still being read");
        ticks.note_capture(70, true);
        assert_eq!(ticks.citable(70), 70);
        ticks.note_capture(71, true);
        assert_eq!(ticks.citable(71), 0, "none of its slices was sent");
        assert_eq!(
            (ticks.citable(0), ticks.refused()),
            (0, [3, 0]),
            "who cites none is not refused"
        );
        ticks.handle_new_session();
        assert_eq!(ticks.citable(70), 0, "another person saw it");
    }

    #[test]
    fn the_tick_of_a_repeated_capture_is_cited_by_nobody() {
        let ticks = Ticks::default();
        for (tick, counts) in [(5, true), (8, false)] {
            ticks.note_sent(tick);
            ticks.note_capture(tick, counts);
        }
        assert_eq!((ticks.citable(5), ticks.citable(8)), (5, 0));
        assert_eq!(ticks.refused(), [0, 1]);
        // The previous capture carries the same tick, and is as old as the tick.
        ticks.note_capture(5, false);
        assert_eq!(ticks.citable(5), 5);
    }

    #[test]
    fn a_speed_that_is_not_known_counts_as_moving() {
        let ticks = Ticks::default();
        for (speed, moves) in [(0.5, false), (-0.5, false), (0.51, true), (-3.0, true)] {
            ticks.handle_tick(1, speed);
            assert_eq!(ticks.is_moving(), moves, "{speed}");
        }
        ticks.handle_tick(1, f32::NAN);
        assert!(ticks.is_moving());
    }

    proptest! {
        #[test]
        fn any_citable_tick_was_captured_and_sent(
            steps in proptest::collection::vec((0_u8..4, 0_u32..2_000, any::<bool>()), 1..300),
        ) {
            let ticks = Ticks::default();
            let (mut captured, mut sent) = (Vec::new(), Vec::new());
            for (step, tick, counts) in steps {
                match step {
                    0 => {
                        ticks.note_capture(tick, counts);
                        captured.extend(counts.then_some(tick));
                    }
                    1 => {
                        ticks.note_sent(tick);
                        sent.push(tick);
                    }
                    _ => {
                        let is_cited = ticks.citable(tick) != 0;
                        prop_assert!(!is_cited || captured.contains(&tick) && sent.contains(&tick));
                    }
                }
            }
        }
    }
}
