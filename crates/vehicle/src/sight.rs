//! What the pictures say of the machine's own motion, beside what the machine says of it.
//!
//! The encoder has a vector for each macroblock. A machine that moves along its camera's axis makes the picture expand
//! or contract: its right half moves against its left half. One that turns moves all of it to one side. People and cars
//! that pass, rain, a mast that shakes and light that changes do neither in most strips for a second.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tautline_units::Instant;
use tautline_video::{Flow, Layout};

/// The motion of the pictures compared with the machine's word.
#[derive(Debug)]
pub struct Sight {
    /// Bits of m/s and of radians at the wheels, left positive; not a number: not known.
    speed: AtomicU32,
    steering: AtomicU32,
    seen: Mutex<Estimate>,
    moves: AtomicBool,
    contradicts: AtomicBool,
}

/// What the strips of the last second showed.
#[derive(Debug, Default)]
struct Estimate {
    strips: [VecDeque<(Instant, Flow)>; Layout::STRIP_COUNT],
    /// Since when the machine has said that it stands.
    stands_since: Option<Instant>,
    /// Since when most strips have expanded, or contracted.
    expands_since: Option<Instant>,
    votes: Votes,
}

/// Slices that moved as the steering says, and against it, since the machine last stood.
#[derive(Clone, Copy, Default, Debug)]
struct Votes {
    with: u32,
    against: u32,
}

impl Default for Sight {
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

impl Sight {
    /// Takes what the machine says: its speed (m/s) and the angle of its wheels (rad, left positive); NaN: not known.
    pub fn handle_machine(&self, speed: f32, steering: f32) {
        self.speed.store(speed.to_bits(), Ordering::Relaxed);
        self.steering.store(steering.to_bits(), Ordering::Relaxed);
    }

    /// Takes how strip `strip` of a predicted picture moves, which was captured at `now`.
    pub fn handle_flow(&self, strip: usize, flow: Flow, now: Instant) {
        let [speed, steering] =
            [&self.speed, &self.steering].map(|bits| f32::from_bits(bits.load(Ordering::Relaxed)));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (moves, contradicts) = seen.handle(strip, flow, (speed, steering), now);
        self.moves.store(moves, Ordering::Relaxed);
        // It stays until the machine is driven again as the pictures say.
        self.contradicts.store(contradicts, Ordering::Relaxed);
    }

    /// Returns whether the picture moves as a whole although the machine says that it stands.
    pub fn moves(&self) -> bool {
        self.moves.load(Ordering::Relaxed)
    }

    /// Returns whether the pictures move against the steering: the camera is mirrored, or the steering is.
    pub fn contradicts(&self) -> bool {
        self.contradicts.load(Ordering::Relaxed)
    }
}

impl Estimate {
    /// Returns whether the picture moves although the machine stands, and whether it moves against the steering.
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

    /// Returns whether enough strips expanded, or contracted, in nearly every picture of the last second.
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
            // Another drive, maybe with a camera that was mended.
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
        // A camera that turns to the left sees everything move to the right.
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

/// Time that has to agree with itself.
const SPAN: Duration = Duration::from_secs(1);
/// Slices of a strip that are kept: a second of 60 pictures.
const KEPT_MAX: usize = 64;
/// Pictures in a second below which nothing is said.
const PICTURES_MIN: usize = 6;
/// Percent of a second's pictures in which a strip has to expand.
const SHARE_MIN: usize = 75;
/// Quarters of a sample by which the right half has to move against the left.
const EXPANSION_MIN: i32 = 2;
/// Strips that have to expand: the sky and the bonnet do not.
const STRIPS_MIN: i32 = 3;
/// m/s below which the machine says that it stands.
const STANDING_SPEED: f32 = 0.05;
/// m/s times rad from which a turn is seen: 1 m/s with 6° at the wheels.
const TURN_MIN: f32 = 0.1;
/// Quarters of a sample that a strip has to be shifted.
const SHIFT_MIN: i32 = 2;
/// Slices that decide: a second of 15 pictures.
const VOTES_MIN: u32 = 90;
/// Slices after which the older half counts no more.
const VOTES_MAX: u32 = 900;

#[cfg(test)]
mod tests {
    use tautline_video::Motion;

    use super::*;

    /// Shows 30 pictures/s for `millis`; `flow` says how strip `strip` of picture `picture` moves.
    fn show(
        sight: &Sight,
        now: &mut Instant,
        millis: u64,
        flow: impl Fn(usize, usize) -> (i16, i16),
    ) -> bool {
        let mut moved = false;
        for picture in 0..millis as usize / 33 {
            *now += Duration::from_millis(33);
            for strip in 0..Layout::STRIP_COUNT {
                let (left, right) = flow(picture, strip);
                // A vector says where it was: against the motion.
                let [left, right] = [left, right].map(|x| Motion { x: -x, y: 0 });
                sight.handle_flow(strip, Flow { left, right }, *now);
                moved |= sight.moves();
            }
        }
        moved
    }

    fn start() -> (Sight, Instant) {
        (Sight::default(), Instant::from_millis(5_000))
    }

    #[test]
    fn a_picture_that_expands_while_the_machine_says_that_it_stands_is_told_within_two_seconds() {
        let road = |_, strip: usize| if strip >= 2 { (-4, 5) } else { (0, 0) };
        let back = |_, strip: usize| if strip >= 2 { (4, -5) } else { (0, 0) };
        let (sight, mut now) = start();
        sight.handle_machine(0.0, 0.0);
        assert!(!show(&sight, &mut now, 900, road), "too early");
        assert!(show(&sight, &mut now, 1_300, road));
        show(&sight, &mut now, 1_000, |_, _| (0, 0));
        assert!(!sight.moves(), "it stands");
        assert!(show(&sight, &mut now, 3_000, back), "backwards");
        sight.handle_machine(3.0, 0.0);
        show(&sight, &mut now, 100, road);
        assert!(!sight.moves(), "the machine says so itself");
    }

    #[test]
    fn who_passes_and_what_shakes_or_flickers_is_no_motion_of_the_machine() {
        let (sight, mut now) = start();
        sight.handle_machine(0.0, 0.0);
        let bus = |_, strip: usize| if strip < 5 { (12, 12) } else { (0, 0) };
        assert!(!show(&sight, &mut now, 4_000, bus), "all to one side");
        let mast = |picture: usize, _| if picture % 6 < 3 { (6, 7) } else { (-7, -6) };
        assert!(!show(&sight, &mut now, 4_000, mast), "to and fro");
        let sway = |picture: usize, _| if picture % 8 < 4 { (-5, 5) } else { (5, -5) };
        assert!(!show(&sight, &mut now, 4_000, sway), "to and fro along the axis");
        let walker = |_, strip: usize| if strip == 3 || strip == 4 { (-8, 8) } else { (0, 0) };
        assert!(!show(&sight, &mut now, 4_000, walker), "two strips of six");
        let noise = |picture: usize, strip: usize| {
            let draw = |salt: usize| (((picture * 7 + strip * 5 + salt) * 2_654_435_761) >> 7) % 9;
            (draw(1) as i16 - 4, draw(2) as i16 - 4)
        };
        assert!(!show(&sight, &mut now, 10_000, noise), "rain");
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
            let (sight, mut now) = start();
            sight.handle_machine(speed, steering);
            show(&sight, &mut now, 1_500, |_, _| (shift, shift));
            assert_eq!(sight.contradicts(), against, "{speed} m/s, {steering} rad, {shift}");
        }
    }

    #[test]
    fn what_is_not_known_of_the_machine_is_compared_with_nothing() {
        let (sight, mut now) = start();
        assert!(!show(&sight, &mut now, 4_000, |_, _| (-9, 9)));
        sight.handle_machine(2.0, f32::NAN);
        show(&sight, &mut now, 4_000, |_, _| (-9, -9));
        assert!(!sight.contradicts() && !sight.moves());
    }

    /// Returns for how many of its pictures a clip's motion was told while the machine says that it stands, and how
    /// many there are.
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
        let (sight, mut alarmed) = (Sight::default(), 0);
        sight.handle_machine(0.0, 0.0);
        let pictures = (rate * 12.0) as usize;
        for picture in 0..pictures {
            assert!(sensor.next_picture().unwrap());
            let now = Instant::from_nanos((picture as f64 / rate * 1e9) as u64);
            for (strip, encoder) in encoders.iter_mut().enumerate() {
                let mut picture = Picture::new(layout.width(), rows(strip)).unwrap();
                sensor.read(strip, &mut picture);
                let coded = encoder.encode(&picture, budget, Refresh::No).unwrap();
                encoder.finish_reconstruction();
                sight.handle_flow(strip, coded.flow, now);
            }
            alarmed += usize::from(sight.moves());
        }
        (alarmed, pictures)
    }

    #[test]
    #[ignore = "needs a folder of clips in TAUTLINE_CLIPS; prints figures"]
    fn how_often_clips_are_told_as_moving() {
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
