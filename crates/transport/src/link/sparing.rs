use tautline_units::{Bitrate, Duration, Instant};

use super::queue::Queue;

/// The economy of a link whose way out does not carry all that is no media.
///
/// Of that, nothing waits for a pace; so where it does not fit, it stands in the link's own queue, ever longer.
/// Pings that are ever longer on their way, while no media and no data is sent that could be why, show it. Then
/// commands leave as before, and all else rides with them, or waits until a pause has passed since the last datagram:
/// each saves its own headers. Reports come more seldom, which the peer is told; in further steps pings too.
/// After a while without a queue one step less is tried; if that brings the queue back, the next try comes later.
/// Where media leaves, its rate shows it: a thin link is spared at least one step, or what is no media takes most of it.
#[derive(Debug, Default)]
pub(super) struct Sparing {
    /// In which pings wait.
    queue: Queue,
    step: usize,
    /// Whether media's rate shows a thin link, and since when it shows otherwise.
    is_thin: bool,
    otherwise_since: Option<Instant>,
    /// Since when there has been a queue, and since when there has been none.
    over_since: Option<Instant>,
    calm_since: Option<Instant>,
    /// The queue when the step was last raised, and until when that is not judged.
    raised_at: Duration,
    judged_from: Instant,
    /// When the step was last lowered, and how many times in a row that was too early.
    lowered_at: Option<Instant>,
    failures: u32,
    /// When media or data last left.
    filled_at: Option<Instant>,
    /// Nothing but commands leaves before.
    held_until: Instant,
    /// When the peer was last told, and of which step.
    pub(super) told: Option<(Instant, usize)>,
}

impl Sparing {
    /// Returns how many steps are taken; none on a link that carries everything.
    pub(super) fn step(&self) -> usize {
        self.step.max(usize::from(self.is_thin))
    }

    /// Takes what a link has shown by itself that it carries, before its rate is known.
    pub(super) fn on_shown(&mut self, shown: Bitrate) {
        self.is_thin |= shown < THIN;
    }

    /// Takes the rate at which media leaves, where that is the link's own.
    pub(super) fn on_rate(&mut self, rate: Bitrate, now: Instant) {
        let (most, lasting) =
            if self.is_thin { (THIN_NO_MORE, THICK_AFTER) } else { (THIN, THIN_AFTER) };
        if (rate < most) == self.is_thin {
            self.otherwise_since = None;
            return;
        }
        let since = *self.otherwise_since.get_or_insert(now);
        if now.since(since) >= lasting {
            (self.is_thin, self.otherwise_since) = (!self.is_thin, None);
        }
    }

    /// Returns when anything that is no command may leave.
    pub(super) fn held_until(&self) -> Instant {
        self.held_until
    }

    /// Notes that media or data left, which may fill the link.
    pub(super) fn on_filled(&mut self, now: Instant) {
        self.filled_at = Some(now);
    }

    /// Notes that a datagram left; others wait for `pause`.
    pub(super) fn hold(&mut self, pause: Duration, now: Instant) {
        self.held_until = now + pause;
    }

    /// Takes a ping's arrival less its departure.
    pub(super) fn on_ping_answered(&mut self, transit: i64, now: Instant) {
        self.queue.observe(transit, now);
        self.queue.advance(now);
        let queue = self.queue.standing();
        if self.filled_at.is_some_and(|at| now.since(at) < FILLED) {
            (self.over_since, self.calm_since) = (None, None);
            return;
        }
        let trying = self.lowered_at.is_some_and(|at| now.since(at) < TRIAL);
        let (most, lasting) =
            if trying { (QUEUE_TRIED, Duration::ZERO) } else { (QUEUE_MOST, LASTING) };
        if queue < most {
            self.over_since = None;
        } else {
            let since = *self.over_since.get_or_insert(now);
            if now.since(since) >= lasting && now >= self.judged_from {
                self.raise(queue, trying, now);
            }
        }
        if queue >= QUEUE_NONE {
            self.calm_since = None;
            return;
        }
        let since = *self.calm_since.get_or_insert(now);
        if self.step > 0 && now.since(since) >= CALM_LEAST * 2_u32.pow(self.failures) {
            self.step -= 1;
            (self.lowered_at, self.calm_since) = (Some(now), Some(now));
        }
    }

    /// Takes one step more, unless the queue shrinks under the last one.
    fn raise(&mut self, queue: Duration, trying: bool, now: Instant) {
        if trying {
            self.failures = (self.failures + 1).min(FAILURES_MOST);
            self.lowered_at = None;
        } else if self.step > 0 && queue < self.raised_at {
            self.raised_at = queue;
            self.judged_from = now + JUDGED_AFTER;
            return;
        }
        self.step = (self.step() + 1).min(PAUSES.len() - 1);
        self.raised_at = queue;
        self.judged_from = now + JUDGED_AFTER;
    }
}

/// In halves of a report's interval, by the steps taken: the pause after a datagram. A little more than the
/// time between two commands lets everything ride with these.
pub(super) const PAUSES: [u32; 4] = [0, 5, 10, 20];
/// How many times as far apart pings leave.
pub(super) const PINGS: [u32; 4] = [1, 1, 2, 4];
/// Reports, pings and their answers take 130 kbit/s of a link that is not spared.
const THIN: Bitrate = Bitrate::from_kbps(600);
const THIN_NO_MORE: Bitrate = Bitrate::from_kbps(900);
/// A stall is shorter mostly, and after it news of what comes must not be late.
const THIN_AFTER: Duration = Duration::from_millis(1_500);
const THICK_AFTER: Duration = Duration::from_millis(500);
/// Media and data that left within so long may be what waits.
const FILLED: Duration = Duration::from_secs(1);
/// A queue so long, for so long, is no jitter, and no stall: what a stall held comes all at once.
const QUEUE_MOST: Duration = Duration::from_millis(25);
const LASTING: Duration = Duration::from_millis(100);
/// A shorter one is none.
const QUEUE_NONE: Duration = Duration::from_millis(10);
/// What shows that a try came too early, within this time of it.
const QUEUE_TRIED: Duration = Duration::from_millis(15);
const TRIAL: Duration = Duration::from_secs(2);
/// So long after a step its effect is seen.
const JUDGED_AFTER: Duration = Duration::from_millis(400);
/// Without a queue for so long, or as often twice as long as tries failed, one step less is tried.
const CALM_LEAST: Duration = Duration::from_secs(10);
const FAILURES_MOST: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A way of so many kbit/s, and what waits in it: a link of ours with commands and nothing else.
    struct Way {
        sparing: Sparing,
        queue: f64,
        now: Instant,
    }

    impl Way {
        fn new() -> Self {
            Self { sparing: Sparing::default(), queue: 0.0, now: Instant::from_millis(1_000) }
        }

        /// Lets so many milliseconds pass and returns for how many of them more than 50 ms waited.
        fn pass(&mut self, millis: u64, kbps: f64) -> u64 {
            let mut waited = 0;
            for _ in 0..millis / 20 {
                let load = [190.0, 86.0, 74.0, 68.0][self.sparing.step()];
                self.queue = (self.queue + 20.0 * (load / kbps - 1.0)).max(0.0);
                waited += if self.queue > 50.0 { 20 } else { 0 };
                self.now += Duration::from_millis(20);
                let transit = (15.0 + self.queue) * 1e6;
                self.sparing.on_ping_answered(transit as i64, self.now);
            }
            waited
        }
    }

    #[test]
    fn a_way_that_carries_everything_is_not_spared() {
        let mut way = Way::new();
        assert_eq!(way.pass(60_000, 200.0), 0);
        assert_eq!(way.sparing.step(), 0);
    }

    #[test]
    fn a_thin_way_is_spared_within_a_second_and_tried_seldom() {
        let mut way = Way::new();
        way.pass(1_000, 128.0);
        assert_eq!(way.sparing.step(), 1);
        assert!(way.queue < 25.0, "{}", way.queue);
        let waited = way.pass(120_000, 128.0);
        assert!(waited < 200, "{waited} ms in two minutes");
        // It carries more again.
        way.pass(200_000, 1_000.0);
        assert_eq!(way.sparing.step(), 0);
    }

    #[test]
    fn a_thinner_one_takes_as_many_steps_as_empty_it() {
        for (kbps, step) in [(100.0, 1), (80.0, 2), (71.0, 3), (50.0, 3)] {
            let mut way = Way::new();
            way.pass(5_000, kbps);
            assert_eq!(way.sparing.step(), step, "{kbps} kbit/s");
        }
    }

    #[test]
    fn a_link_on_which_media_finds_a_low_rate_for_long_is_spared_until_it_finds_more() {
        let mut sparing = Sparing::default();
        let mut step = |millis: u64, kbps: u64| {
            sparing.on_rate(Bitrate::from_kbps(kbps), Instant::from_millis(millis));
            sparing.step()
        };
        assert_eq!([step(0, 7_000), step(50, 500), step(1_500, 700), step(1_600, 500)], [0; 4]);
        assert_eq!([step(3_100, 500), step(3_200, 700), step(3_300, 1_000)], [1; 3]);
        assert_eq!([step(3_700, 700), step(3_800, 1_000), step(4_200, 1_000)], [1; 3]);
        assert_eq!(step(4_300, 1_000), 0);
        sparing.on_shown(Bitrate::from_kbps(900));
        assert_eq!(sparing.step(), 0);
        sparing.on_shown(Bitrate::from_kbps(300));
        assert_eq!(sparing.step(), 1);
    }

    #[test]
    fn neither_a_stall_nor_media_of_ours_is_a_thin_way() {
        let mut way = Way::new();
        for round in 0..100 {
            way.pass(500, 1_000.0);
            // All that a stall of 300 ms held comes at once.
            way.now += Duration::from_millis(300);
            for held in (0..15).rev() {
                way.sparing.on_ping_answered((15 + held * 20) * 1_000_000, way.now);
            }
            assert_eq!(way.sparing.step(), 0, "round {round}");
        }
        for _ in 0..100 {
            way.sparing.on_filled(way.now);
            way.pass(200, 100.0);
            assert_eq!(way.sparing.step(), 0);
        }
    }
}
