//! Comparison of captures with earlier ones: a repeated capture shows nothing new, whatever its
//! stamp.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tautline_units::Instant;
use tautline_video::{Digest, Origin, Picture, Sensor};

use super::counters::Counters;

/// Recent captures of a source, for the detection of repeats.
#[derive(Debug)]
pub(super) struct Captures {
    origin: Origin,
    /// Hashes of the strips of the current picture; `None` for a strip that was not read.
    present: Vec<Option<u64>>,
    /// Hashes of the strips of up to eight earlier captures that were no repeats, the newest last.
    remembered: VecDeque<Vec<Option<u64>>>,
    /// Newest digest of each strip, of this or an earlier picture; `None` before its first reading.
    digests: Vec<Option<Digest>>,
    sequence: Option<u32>,
    /// True once the source's own number has changed: some drivers always report the same one.
    has_counted: bool,
    repeats: Lasting,
    uniform: Lasting,
}

/// State that counts once it has lasted for [`LASTING`].
#[derive(Clone, Copy, Default, Debug)]
struct Lasting {
    since: Option<Instant>,
    is_told: bool,
}

impl Captures {
    pub(super) fn new(sensor: &dyn Sensor) -> Self {
        let strip_count = sensor.layout().strip_count();
        Self {
            origin: sensor.origin(),
            present: vec![None; strip_count],
            remembered: VecDeque::with_capacity(REMEMBERED_MAX),
            digests: vec![None; strip_count],
            sequence: None,
            has_counted: false,
            repeats: Lasting::default(),
            uniform: Lasting::default(),
        }
    }

    /// Reads a strip of the sensor into `rows` and keeps its digest for the comparison.
    pub(super) fn read(&mut self, sensor: &mut dyn Sensor, strip: usize, rows: &mut Picture) {
        sensor.read(strip, rows);
        let digest = Digest::of(rows);
        self.present[strip] = Some(digest.hash);
        self.digests[strip] = Some(digest);
    }

    /// Returns whether any strip of the current picture was read.
    pub(super) fn is_begun(&self) -> bool {
        self.present.iter().any(Option::is_some)
    }

    /// Ends the current picture, whose own number is `sequence`: compares it with earlier captures,
    /// updates the counters, and logs when repeats or uniform brightness begin or end. Returns
    /// whether it counts as a capture; a repeat does not while the machine moves.
    pub(super) fn end_picture(
        &mut self,
        sequence: Option<u32>,
        is_moving: bool,
        counters: &Counters,
        now: Instant,
    ) -> bool {
        let present = std::mem::replace(&mut self.present, vec![None; self.digests.len()]);
        let is_repeated = self.is_numbered_as_before(sequence) || self.is_remembered(&present);
        if !is_repeated {
            if self.remembered.len() == REMEMBERED_MAX {
                self.remembered.pop_front();
            }
            self.remembered.push_back(present);
        }
        // A drawn picture or a clip may repeat while the machine stands.
        let is_suspect = is_repeated && (is_moving || self.origin == Origin::Camera);
        if let Some(begins) = self.repeats.observe(is_suspect, now) {
            say_repeated(begins);
        }
        let digests: Option<Vec<Digest>> = self.digests.iter().copied().collect();
        let is_uniform = digests.is_some_and(|digests| Digest::is_uniform(&digests));
        if let Some(begins) = self.uniform.observe(is_uniform, now) {
            say_uniform(begins);
        }
        counters.repeats_since.store(self.repeats.told_nanos(), Ordering::Relaxed);
        counters.uniform_since.store(self.uniform.told_nanos(), Ordering::Relaxed);
        let counts = !(is_repeated && is_moving);
        counters.pictures_repeated.fetch_add(u64::from(!counts), Ordering::Relaxed);
        counts
    }

    fn is_numbered_as_before(&mut self, sequence: Option<u32>) -> bool {
        let Some(number) = sequence else { return false };
        let before = self.sequence.replace(number);
        self.has_counted |= before.is_some_and(|before| before != number);
        self.has_counted && before == Some(number)
    }

    /// Returns whether every strip of one earlier capture was read again, also if a driver cycles
    /// through several old buffers. Strips missing from either capture are ignored.
    fn is_remembered(&self, present: &[Option<u64>]) -> bool {
        self.remembered.iter().any(|before| {
            let mut both = before.iter().zip(present).filter_map(|(a, b)| (*a).zip(*b)).peekable();
            both.peek().is_some() && both.all(|(a, b)| a == b)
        })
    }
}

impl Lasting {
    /// Records whether the state holds at `now`. Returns true when it begins to count, false when
    /// it no longer counts, and `None` otherwise.
    fn observe(&mut self, holds: bool, now: Instant) -> Option<bool> {
        self.since = holds.then(|| self.since.unwrap_or(now));
        let is_told = self.since.is_some_and(|since| now.since(since) >= LASTING);
        (std::mem::replace(&mut self.is_told, is_told) != is_told).then_some(is_told)
    }

    /// Returns the start of the state if it counts, as nanoseconds plus one; 0 otherwise.
    fn told_nanos(&self) -> u64 {
        let since = self.since.filter(|_| self.is_told);
        since.map_or(0, |since| since.as_nanos().saturating_add(1))
    }
}

fn say_repeated(begins: bool) {
    match begins {
        true => tracing::warn!(
            event = "picture repeats",
            "the source repeats one picture: it does not count while the machine moves"
        ),
        false => {
            tracing::warn!(event = "picture moves again", "the source delivers new pictures again")
        }
    }
}

fn say_uniform(begins: bool) {
    match begins {
        true => tracing::warn!(
            event = "picture uniform",
            "the picture has the same brightness everywhere: is the lens covered, or is it dark?"
        ),
        false => tracing::warn!(event = "picture seen again", "the picture shows something again"),
    }
}

/// Number of remembered captures: as many as a driver has buffers, which it may return in turn.
const REMEMBERED_MAX: usize = 8;
/// Time after which a repeat or uniform brightness is reported: longer than a tunnel's exit blinds
/// a camera, and than a clip of another rate repeats a picture.
const LASTING: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_video::{Error, Layout};

    use super::*;

    /// Source of pictures that differ by one sample.
    struct Shades {
        origin: Origin,
        shade: u8,
    }

    impl Sensor for Shades {
        fn origin(&self) -> Origin {
            self.origin
        }

        fn layout(&self) -> Layout {
            Layout::of(64, 96).unwrap()
        }

        fn pictures_per_second(&self) -> f64 {
            30.0
        }

        fn next_picture(&mut self) -> Result<bool, Error> {
            Ok(true)
        }

        fn read(&mut self, strip: usize, rows: &mut Picture) {
            // Each strip has its own brightness, so that the picture is not uniform.
            let base = 20 + strip as u8 * 30;
            rows.planes_mut().0.fill(base);
            rows.planes_mut().0[0] = self.shade;
        }
    }

    /// Source of pictures 33 ms apart, whose captures are compared.
    struct Run {
        sensor: Shades,
        captures: Captures,
        counters: Counters,
        now: Instant,
    }

    impl Run {
        fn new(origin: Origin) -> Self {
            let sensor = Shades { origin, shade: 0 };
            let captures = Captures::new(&sensor);
            let now = Instant::from_millis(1_000);
            Self { sensor, captures, counters: Counters::default(), now }
        }

        fn picture(
            &mut self,
            shade: u8,
            strips: &[usize],
            moves: bool,
            number: Option<u32>,
        ) -> bool {
            self.sensor.shade = shade;
            self.now += Duration::from_millis(33);
            let mut rows = Picture::new(64, 16).unwrap();
            for strip in strips {
                self.captures.read(&mut self.sensor, *strip, &mut rows);
            }
            self.captures.end_picture(number, moves, &self.counters, self.now)
        }

        fn whole(&mut self, shades: &[u8], moves: bool) -> Vec<bool> {
            let all: Vec<usize> = (0..6).collect();
            shades.iter().map(|shade| self.picture(*shade, &all, moves, None)).collect()
        }

        fn repeats(&self) -> bool {
            self.counters.repeats_since.load(Ordering::Relaxed) != 0
        }
    }

    #[test]
    fn a_repeated_capture_counts_as_none_while_the_machine_moves() {
        let mut run = Run::new(Origin::Camera);
        assert_eq!(run.whole(&[1, 2, 3, 3, 3], true), [true, true, true, false, false]);
        assert_eq!(run.counters.pictures_repeated.load(Ordering::Relaxed), 2);
        assert_eq!(run.whole(&[3, 3], false), [true, true], "it may stand before a still picture");
        assert_eq!(run.whole(&[4], true), [true]);
    }

    #[test]
    fn buffers_that_come_in_turn_are_repeats_too() {
        for count in [2, 5, REMEMBERED_MAX as u8] {
            let mut run = Run::new(Origin::Camera);
            let turns: Vec<u8> = (0..count * 3).map(|turn| turn % count).collect();
            let counted = run.whole(&turns, true);
            let (first, again) = counted.split_at(count.into());
            assert!(first.iter().all(|counts| *counts) && !again.contains(&true), "{counted:?}");
        }
    }

    #[test]
    fn one_repeat_in_six_costs_only_that_picture() {
        let mut run = Run::new(Origin::Recorded);
        let shades: Vec<u8> = (0..61).map(|at| at - at / 6).collect();
        let counted = run.whole(&shades, true);
        assert_eq!(counted.iter().filter(|counts| !**counts).count(), 10);
        assert!(!counted.windows(2).any(|pair| pair == [false, false]), "{counted:?}");
        assert!(!run.repeats());
    }

    #[test]
    fn a_picture_is_compared_by_the_strips_that_were_read() {
        let mut run = Run::new(Origin::Camera);
        let mut picture = |shade, strips: &[usize]| run.picture(shade, strips, true, None);
        assert!(picture(1, &[0, 1, 2, 3, 4, 5]));
        assert!(!picture(1, &[0, 2, 4]), "half of it again");
        assert!(picture(2, &[1, 3]));
        assert!(!picture(2, &[0, 1, 3]), "strip 0 was not read of the one before");
        assert!(picture(7, &[]), "nothing was read, and nothing is stamped");
    }

    #[test]
    fn a_number_that_comes_again_is_a_capture_that_does() {
        let all = [0, 1, 2, 3, 4, 5];
        let mut run = Run::new(Origin::Camera);
        let counted = [(1, 7), (2, 8), (3, 8), (4, 9)]
            .map(|(shade, number)| run.picture(shade, &all, true, Some(number)));
        assert_eq!(counted, [true, true, false, true]);
        let mut run = Run::new(Origin::Camera);
        let uncounted = [1, 2, 3].map(|shade| run.picture(shade, &all, true, Some(0)));
        assert_eq!(uncounted, [true; 3], "a driver that does not count");
    }

    #[test]
    fn a_frozen_camera_is_reported_after_a_second_a_drawing_not() {
        for (origin, moves, is_told) in [
            (Origin::Camera, false, true),
            (Origin::Drawn, false, false),
            (Origin::Recorded, false, false),
            (Origin::Drawn, true, true),
        ] {
            let mut run = Run::new(origin);
            run.whole(&[5; 25], moves);
            assert!(!run.repeats(), "{origin:?}: too early");
            run.whole(&[5; 10], moves);
            assert_eq!(run.repeats(), is_told, "{origin:?}");
            run.whole(&[6], moves);
            assert!(!run.repeats());
        }
    }

    #[test]
    fn a_uniform_picture_is_reported_after_a_second() {
        struct Dark(Shades, bool);
        let mut run = Run::new(Origin::Camera);
        run.whole(&[1, 2, 3], true);
        assert_eq!(run.counters.uniform_since.load(Ordering::Relaxed), 0);
        let mut dark = Dark(Shades { origin: Origin::Camera, shade: 0 }, true);
        impl Sensor for Dark {
            fn layout(&self) -> Layout {
                self.0.layout()
            }
            fn pictures_per_second(&self) -> f64 {
                30.0
            }
            fn next_picture(&mut self) -> Result<bool, Error> {
                Ok(self.1)
            }
            fn read(&mut self, _strip: usize, rows: &mut Picture) {
                rows.planes_mut().0.fill(17);
            }
        }
        let mut rows = Picture::new(64, 16).unwrap();
        for _ in 0..40 {
            run.now += Duration::from_millis(33);
            for strip in 0..6 {
                run.captures.read(&mut dark, strip, &mut rows);
            }
            run.captures.end_picture(None, false, &run.counters, run.now);
        }
        assert_ne!(run.counters.uniform_since.load(Ordering::Relaxed), 0);
        run.whole(&[9], true);
        assert_eq!(run.counters.uniform_since.load(Ordering::Relaxed), 0);
    }
}
