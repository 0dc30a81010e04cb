//! Ego-motion from the pictures, for comparison with the machine's reported motion.
//!
//! The encoder has a motion vector per macroblock. Motion along the camera's axis makes the picture
//! expand or contract: its right half moves against its left half. A turn moves the complete
//! picture to one side. Passing people and cars, rain, a shaking mast and changing light do neither
//! in most strips for a second.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tautline_units::Instant;
use tautline_video::{Flow, Layout};

/// Comparison of the pictures' motion with the machine's reported motion.
#[derive(Debug)]
pub struct EgoMotion {
    /// Machine's reported speed in m/s, as the bits of an `f32`; `steering` is the wheels' angle in
    /// radians, left positive. NaN if unknown.
    speed: AtomicU32,
    steering: AtomicU32,
    seen: Mutex<Estimate>,
    moves: AtomicBool,
    contradicts: AtomicBool,
}

/// Motion of the strips in the last second.
#[derive(Debug, Default)]
struct Estimate {
    strips: [VecDeque<(Instant, Flow)>; Layout::STRIP_COUNT],
    /// Start of the reported standstill; `None` while the machine moves or its speed is unknown.
    stands_since: Option<Instant>,
    /// Start of the expansion or contraction of most strips; `None` while there is none.
    expands_since: Option<Instant>,
    votes: Votes,
}

/// Counts of slices that moved as the steering predicts, and against it. A standstill resets them,
/// unless they show a contradiction; at 900 in all, both are halved.
#[derive(Clone, Copy, Default, Debug)]
struct Votes {
    with: u32,
    against: u32,
}

impl Default for EgoMotion {
    fn default() -> Self {
        let unknown = || AtomicU32::new(f32::NAN.to_bits());
        Self {
            speed: unknown(),
            steering: unknown(),
            seen: Mutex::default(),
            moves: AtomicBool::new(false),
            contradicts: AtomicBool::new(false),
        }
    }
}

impl EgoMotion {
    /// Records the machine's reported speed (m/s) and wheel angle (rad, left positive); NaN if
    /// unknown.
    pub fn handle_machine(&self, speed: f32, steering: f32) {
        self.speed.store(speed.to_bits(), Ordering::Relaxed);
        self.steering.store(steering.to_bits(), Ordering::Relaxed);
    }

    /// Records the motion of strip `strip` of a predicted picture that was captured at `now`.
    pub fn handle_flow(&self, strip: usize, flow: Flow, now: Instant) {
        let [speed, steering] =
            [&self.speed, &self.steering].map(|bits| f32::from_bits(bits.load(Ordering::Relaxed)));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (moves, contradicts) = seen.handle(strip, flow, (speed, steering), now);
        self.moves.store(moves, Ordering::Relaxed);
        // The flag stays set until the machine is next driven in agreement with the pictures.
        self.contradicts.store(contradicts, Ordering::Relaxed);
    }

    /// Returns whether the picture has expanded or contracted for a second while the machine
    /// reported standstill.
    pub fn moves(&self) -> bool {
        self.moves.load(Ordering::Relaxed)
    }

    /// Returns whether the pictures of the last turns moved against the steering, in at least 90
    /// slices and three times as often as with it: camera or steering is mirrored. Stays true at
    /// standstill, until later turns agree.
    pub fn contradicts(&self) -> bool {
        self.contradicts.load(Ordering::Relaxed)
    }
}

impl Estimate {
    /// Records the motion of a strip. Returns the values of [`EgoMotion::moves`] and
    /// [`EgoMotion::contradicts`].
    fn handle(
        &mut self,
        strip: usize,
        flow: Flow,
        (speed, steering): (f32, f32),
        now: Instant,
    ) -> (bool, bool) {
        let Some(kept) = self.strips.get_mut(strip) else {
            return (false, self.votes.is_against());
        };
        kept.push_back((now, flow));
        while kept.front().is_some_and(|(at, _)| now.since(*at) > SPAN) || kept.len() > KEPT_MAX {
            kept.pop_front();
        }
        let stands = speed.abs() < STANDING_SPEED;
        self.stands_since = stands.then(|| self.stands_since.unwrap_or(now));
        self.expands_since = self.expands().then(|| self.expands_since.unwrap_or(now));
        self.votes.count(flow, speed, steering);
        let lasts = |since: Option<Instant>| since.is_some_and(|since| now.since(since) >= SPAN);
        (lasts(self.stands_since) && lasts(self.expands_since), self.votes.is_against())
    }

    /// Returns whether the strips that expanded in at least 75 % of their pictures of the last
    /// second outnumber those that contracted by three or more, or the reverse.
    fn expands(&self) -> bool {
        let signs = self.strips.iter().map(|kept| {
            let count = |sign: i32| {
                let same = |(_, flow): &&(Instant, Flow)| flow.expansion() * sign >= EXPANSION_MIN;
                kept.iter().filter(same).count() * 100 >= kept.len() * SHARE_MIN
            };
            match kept.len() {
                ..PICTURES_MIN => 0,
                _ if count(1) => 1,
                _ if count(-1) => -1,
                _ => 0,
            }
        });
        let sum: i32 = signs.sum();
        sum.abs() >= STRIPS_MIN
    }
}

impl Votes {
    fn count(&mut self, flow: Flow, speed: f32, steering: f32) {
        if speed.abs() < STANDING_SPEED {
            // Each drive votes anew, possibly with a repaired camera. Only a contradiction is kept.
            if self.with + self.against > 0 && !self.is_against() {
                *self = Self::default();
            }
            return;
        }
        let turn = speed * steering;
        let turns = turn.abs() >= TURN_MIN;
        if !turns || flow.shift().abs() < SHIFT_MIN {
            return;
        }
        // When a camera turns to the left, the picture moves to the right.
        if (flow.shift() > 0) == (turn > 0.0) {
            self.with += 1;
        } else {
            self.against += 1;
        }
        if self.with + self.against >= VOTES_MAX {
            (self.with, self.against) = (self.with / 2, self.against / 2);
        }
    }

    fn is_against(self) -> bool {
        self.against >= VOTES_MIN && self.against >= self.with * 3
    }
}

/// Time for which both picture motion and reported standstill must last before the pictures count
/// as moving, and for which a strip's motions are kept.
const SPAN: Duration = Duration::from_secs(1);
/// Maximum of slices kept per strip: one second of 60 pictures.
const KEPT_MAX: usize = 64;
/// Least number of kept pictures with which a strip can count as expanding or contracting; with
/// fewer it counts as neither.
const PICTURES_MIN: usize = 6;
/// Percentage of a strip's kept pictures that must expand for the strip to count as expanding; the
/// same for contraction.
const SHARE_MIN: usize = 75;
/// Least motion of a strip's right half against its left, in quarters of a sample, with which a
/// picture of it counts as expanding or contracting.
const EXPANSION_MIN: i32 = 2;
/// Excess of expanding over contracting strips, or the reverse, from which the picture as a whole
/// counts as expanding or contracting; the sky and the bonnet do neither.
const STRIPS_MIN: i32 = 3;
/// Speed in m/s below which the machine counts as standing.
const STANDING_SPEED: f32 = 0.05;
/// Product of speed (m/s) and wheel angle (rad) from which a turn is visible: 1 m/s with 6° at the
/// wheels.
const TURN_MIN: f32 = 0.1;
/// Shift of a strip from which it counts for or against the steering, in quarters of a sample.
const SHIFT_MIN: i32 = 2;
/// Least number of slices against the steering for a contradiction: one second of 15 pictures.
const VOTES_MIN: u32 = 90;
/// Number of counted slices at which both counts are halved.
const VOTES_MAX: u32 = 900;

#[cfg(test)]
mod tests {
    use tautline_video::Motion;

    use super::*;

    /// Shows 30 pictures/s for `millis`; `flow` returns the motion of strip `strip` of picture
    /// `picture`.
    fn show(
        motion: &EgoMotion,
        now: &mut Instant,
        millis: u64,
        flow: impl Fn(usize, usize) -> (i16, i16),
    ) -> bool {
        let mut moved = false;
        for picture in 0..millis as usize / 33 {
            *now += Duration::from_millis(33);
            for strip in 0..Layout::STRIP_COUNT {
                let (left, right) = flow(picture, strip);
                // A motion vector points to the earlier position, against the motion.
                let [left, right] = [left, right].map(|x| Motion { x: -x, y: 0 });
                motion.handle_flow(strip, Flow { left, right }, *now);
                moved |= motion.moves();
            }
        }
        moved
    }

    fn start() -> (EgoMotion, Instant) {
        (EgoMotion::default(), Instant::from_millis(5_000))
    }

    #[test]
    fn an_expanding_picture_at_reported_standstill_is_detected() {
        let road = |_, strip: usize| if strip >= 2 { (-4, 5) } else { (0, 0) };
        let back = |_, strip: usize| if strip >= 2 { (4, -5) } else { (0, 0) };
        let (motion, mut now) = start();
        motion.handle_machine(0.0, 0.0);
        assert!(!show(&motion, &mut now, 900, road), "too early");
        assert!(show(&motion, &mut now, 1_300, road));
        show(&motion, &mut now, 1_000, |_, _| (0, 0));
        assert!(!motion.moves(), "it stands");
        assert!(show(&motion, &mut now, 3_000, back), "backwards");
        motion.handle_machine(3.0, 0.0);
        show(&motion, &mut now, 100, road);
        assert!(!motion.moves(), "the machine says so itself");
    }

    #[test]
    fn passing_objects_shaking_and_noise_are_not_ego_motion() {
        let (motion, mut now) = start();
        motion.handle_machine(0.0, 0.0);
        let bus = |_, strip: usize| if strip < 5 { (12, 12) } else { (0, 0) };
        assert!(!show(&motion, &mut now, 4_000, bus), "all to one side");
        let mast = |picture: usize, _| if picture % 6 < 3 { (6, 7) } else { (-7, -6) };
        assert!(!show(&motion, &mut now, 4_000, mast), "to and fro");
        let sway = |picture: usize, _| if picture % 8 < 4 { (-5, 5) } else { (5, -5) };
        assert!(!show(&motion, &mut now, 4_000, sway), "to and fro along the axis");
        let walker = |_, strip: usize| if strip == 3 || strip == 4 { (-8, 8) } else { (0, 0) };
        assert!(!show(&motion, &mut now, 4_000, walker), "two strips of six");
        let noise = |picture: usize, strip: usize| {
            let draw = |salt: usize| (((picture * 7 + strip * 5 + salt) * 2_654_435_761) >> 7) % 9;
            (draw(1) as i16 - 4, draw(2) as i16 - 4)
        };
        assert!(!show(&motion, &mut now, 10_000, noise), "rain");
    }

    #[test]
    fn a_mirrored_camera_contradicts_the_steering_in_the_first_bend() {
        for (speed, steering, shift, against) in [
            (2.0, 0.2, 6, false),
            (2.0, 0.2, -6, true),
            (2.0, -0.2, -6, false),
            (2.0, -0.2, 6, true),
            (-2.0, 0.2, -6, false),
            (-2.0, 0.2, 6, true),
            (2.0, 0.01, -6, false),
            (0.0, 0.2, -6, false),
        ] {
            let (motion, mut now) = start();
            motion.handle_machine(speed, steering);
            show(&motion, &mut now, 1_500, |_, _| (shift, shift));
            assert_eq!(motion.contradicts(), against, "{speed} m/s, {steering} rad, {shift}");
        }
    }

    #[test]
    fn an_unknown_speed_or_steering_is_not_compared() {
        let (motion, mut now) = start();
        assert!(!show(&motion, &mut now, 4_000, |_, _| (-9, 9)));
        motion.handle_machine(2.0, f32::NAN);
        show(&motion, &mut now, 4_000, |_, _| (-9, -9));
        assert!(!motion.contradicts() && !motion.moves());
    }

    /// Returns how many pictures of a clip raise a motion alarm while the machine reports
    /// standstill, and the number of pictures.
    fn alarmed(clip: &std::path::Path) -> (usize, usize) {
        use tautline_video::avc::LossRecovery;
        use tautline_video::{Backend, Picture, Refresh, Sensor};

        let mut sensor = crate::camera::clip::ClipSensor::open(clip).unwrap();
        let (layout, rate) = (sensor.layout(), sensor.pictures_per_second());
        let backend = Backend::Avc(LossRecovery::ReferencesByLoss { references: 16 });
        let rows = |strip: usize| layout.strip_rows(strip).len();
        let mut encoders: Vec<_> = (0..layout.strip_count())
            .map(|strip| backend.open(layout.width(), rows(strip), rate.round() as u32).unwrap())
            .collect();
        // 3 Mbit/s.
        let budget = tautline_units::ByteCount::new((3e6 / 8.0 / rate / 6.0) as u64);
        let (motion, mut alarmed) = (EgoMotion::default(), 0);
        motion.handle_machine(0.0, 0.0);
        let pictures = (rate * 12.0) as usize;
        for picture in 0..pictures {
            assert!(sensor.next_picture().unwrap());
            let now = Instant::from_nanos((picture as f64 / rate * 1e9) as u64);
            for (strip, encoder) in encoders.iter_mut().enumerate() {
                let mut picture = Picture::new(layout.width(), rows(strip)).unwrap();
                sensor.read(strip, &mut picture);
                let coded = encoder.encode(&picture, budget, Refresh::No).unwrap();
                encoder.finish_reconstruction();
                motion.handle_flow(strip, coded.flow, now);
            }
            alarmed += usize::from(motion.moves());
        }
        (alarmed, pictures)
    }

    #[test]
    #[ignore = "needs a folder of clips in TAUTLINE_CLIPS; prints figures"]
    fn false_alarms_of_motion_on_clips_are_counted() {
        let folder = std::env::var("TAUTLINE_CLIPS").expect("a folder of clips");
        let mut clips: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        clips.sort();
        for clip in clips.iter().filter(|clip| clip.extension().is_some_and(|ext| ext == "mp4")) {
            let (alarmed, pictures) = alarmed(clip);
            println!("{alarmed:4} of {pictures} pictures  {}", clip.display());
        }
    }
}
