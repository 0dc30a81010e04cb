use tautline_units::{Bitrate, Duration, Instant};

use super::queue::Queue;

/// Reduced reporting of a link whose uplink cannot carry all non-media traffic.
///
/// That traffic is unpaced, so if it exceeds the link's rate, it builds up a queue in the link. The
/// sign is rising ping delays while no media or data is sent that could cause them. Commands are
/// then sent as before. Everything else rides with them, or waits until a pause has passed since
/// the last datagram, which saves headers. Reports become less frequent, which is announced to the
/// peer. In further steps pings do too. After a period without a queue, one step less is tried. If
/// the queue returns, the next try is later. While media is sent, its rate indicates a low-rate
/// uplink; such a link reduces by at least one step, because non-media traffic would take most of
/// it.
#[derive(Debug, Default)]
pub(super) struct ReducedReporting {
    /// Queueing delay that the link's pings measure.
    queue: Queue,
    /// Number of steps of reduction because of that queue.
    step: usize,
    /// True if the measured capacity or media's rate indicates a low-rate uplink.
    is_thin: bool,
    /// Time since which media's rate has indicated the opposite of `is_thin`; `None` while it does
    /// not.
    otherwise_since: Option<Instant>,
    /// Time since which pings have met a queue; `None` while they do not, or after media or data.
    over_since: Option<Instant>,
    /// Time since which pings have met no queue; `None` while they do, or after media or data.
    calm_since: Option<Instant>,
    /// Queueing delay when the step was last raised, or found to shrink the queue.
    raised_at: Duration,
    /// Time before which the step is not raised again.
    judged_from: Instant,
    /// Time at which the step was last lowered; `None` before, and once that was found to be too
    /// early.
    lowered_at: Option<Instant>,
    /// Number of times that lowering the step was too early, at most [`FAILURES_MOST`].
    failures: u32,
    /// Time of the last media or data datagram sent; `None` before the first.
    filled_at: Option<Instant>,
    /// Time before which only commands are sent.
    held_until: Instant,
    /// Time of the last announcement of our report interval to the peer, and the step that it was
    /// for; `None` before the first.
    pub(super) told: Option<(Instant, usize)>,
}

impl ReducedReporting {
    /// Returns the number of steps of reduction, 0 to 3; zero on a link that carries everything.
    pub(super) fn step(&self) -> usize {
        self.step.max(usize::from(self.is_thin))
    }

    /// Handles the measured lower bound of the capacity, before the link's rate is known: one below
    /// [`THIN`] marks the uplink as low-rate.
    pub(super) fn on_shown(&mut self, shown: Bitrate) {
        self.is_thin |= shown < THIN;
    }

    /// Handles a granted rate that reflects the link's own capacity: a low-rate uplink is
    /// recognized after the rate has been below [`THIN`] for a while, and no longer after it has
    /// been above [`THIN_NO_MORE`] for a while.
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

    /// Returns the earliest send time of packets other than commands.
    pub(super) fn held_until(&self) -> Instant {
        self.held_until
    }

    /// Records that media or data was sent, which may fill the link.
    pub(super) fn on_filled(&mut self, now: Instant) {
        self.filled_at = Some(now);
    }

    /// Records that a datagram was sent; packets other than commands wait for `pause` from now.
    pub(super) fn hold(&mut self, pause: Duration, now: Instant) {
        self.held_until = now + pause;
    }

    /// Handles the transit of an answered ping, its arrival time minus its send time in
    /// nanoseconds: raises the step if pings meet a queue, and lowers it if they have met none for
    /// long. Within [`FILLED`] after media or data it does neither.
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

    /// Raises the step, unless the queue shrinks under the present one. `trying` is true if the
    /// step was lowered just before, which was then too early.
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

/// Pause after a datagram for each step, in halves of the report interval: slightly more than one,
/// two or four command intervals, so that everything rides with commands.
pub(super) const PAUSES: [u32; 4] = [0, 5, 10, 20];
/// Factor on the ping interval for each step of reduced reporting, 0 to 3.
pub(super) const PINGS: [u32; 4] = [1, 1, 2, 4];
/// Rate below which an uplink becomes low-rate: reports, pings and their answers take 130 kbit/s
/// without reduction.
const THIN: Bitrate = Bitrate::from_kbps(600);
/// Rate from which a low-rate uplink is one no longer.
const THIN_NO_MORE: Bitrate = Bitrate::from_kbps(900);
/// Time for which the rate must be below [`THIN`] before the uplink counts as low-rate. It is
/// longer than most stalls: after a stall, reports of arrivals must not be late.
const THIN_AFTER: Duration = Duration::from_millis(1_500);
/// Time for which the rate must be at least [`THIN_NO_MORE`] before an uplink no longer counts as
/// low-rate.
const THICK_AFTER: Duration = Duration::from_millis(500);
/// Time after media or data for which a queue may consist of those.
const FILLED: Duration = Duration::from_secs(1);
/// Queueing delay from which the step may be raised: more than jitter.
const QUEUE_MOST: Duration = Duration::from_millis(25);
/// Time for which pings must meet a queueing delay of [`QUEUE_MOST`] before the step is raised:
/// longer than a stall, after which everything arrives together.
const LASTING: Duration = Duration::from_millis(100);
/// Queueing delay of pings below which there is no queue.
const QUEUE_NONE: Duration = Duration::from_millis(10);
/// Queueing delay of pings from which, within [`TRIAL`] after the step was lowered, it is raised
/// again at once.
const QUEUE_TRIED: Duration = Duration::from_millis(15);
const TRIAL: Duration = Duration::from_secs(2);
/// Time after the step was raised until its effect is visible.
const JUDGED_AFTER: Duration = Duration::from_millis(400);
/// Time without a queue before a lower step is tried; doubled for each failed try.
const CALM_LEAST: Duration = Duration::from_secs(10);
const FAILURES_MOST: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// An uplink and its queue: a link with commands and nothing else.
    struct Uplink {
        reduced_reporting: ReducedReporting,
        queue: f64,
        now: Instant,
    }

    impl Uplink {
        fn new() -> Self {
            Self {
                reduced_reporting: ReducedReporting::default(),
                queue: 0.0,
                now: Instant::from_millis(1_000),
            }
        }

        /// Advances by `millis` at `kbps`, and returns for how many milliseconds more than 50 ms
        /// were queued.
        fn pass(&mut self, millis: u64, kbps: f64) -> u64 {
            let mut waited = 0;
            for _ in 0..millis / 20 {
                let load = [190.0, 86.0, 74.0, 68.0][self.reduced_reporting.step()];
                self.queue = (self.queue + 20.0 * (load / kbps - 1.0)).max(0.0);
                waited += if self.queue > 50.0 { 20 } else { 0 };
                self.now += Duration::from_millis(20);
                let transit = (15.0 + self.queue) * 1e6;
                self.reduced_reporting.on_ping_answered(transit as i64, self.now);
            }
            waited
        }
    }

    #[test]
    fn a_sufficient_uplink_keeps_full_reporting() {
        let mut uplink = Uplink::new();
        assert_eq!(uplink.pass(60_000, 200.0), 0);
        assert_eq!(uplink.reduced_reporting.step(), 0);
    }

    #[test]
    fn a_low_rate_uplink_reduces_reporting_within_a_second() {
        let mut uplink = Uplink::new();
        uplink.pass(1_000, 128.0);
        assert_eq!(uplink.reduced_reporting.step(), 1);
        assert!(uplink.queue < 25.0, "{}", uplink.queue);
        let waited = uplink.pass(120_000, 128.0);
        assert!(waited < 200, "{waited} ms in two minutes");
        // The uplink carries more again.
        uplink.pass(200_000, 1_000.0);
        assert_eq!(uplink.reduced_reporting.step(), 0);
    }

    #[test]
    fn a_thinner_one_takes_as_many_steps_as_empty_it() {
        for (kbps, step) in [(100.0, 1), (80.0, 2), (71.0, 3), (50.0, 3)] {
            let mut uplink = Uplink::new();
            uplink.pass(5_000, kbps);
            assert_eq!(uplink.reduced_reporting.step(), step, "{kbps} kbit/s");
        }
    }

    #[test]
    fn a_link_at_a_low_media_rate_for_long_reduces_reporting() {
        let mut reduced_reporting = ReducedReporting::default();
        let mut step = |millis: u64, kbps: u64| {
            reduced_reporting.on_rate(Bitrate::from_kbps(kbps), Instant::from_millis(millis));
            reduced_reporting.step()
        };
        assert_eq!([step(0, 7_000), step(50, 500), step(1_500, 700), step(1_600, 500)], [0; 4]);
        assert_eq!([step(3_100, 500), step(3_200, 700), step(3_300, 1_000)], [1; 3]);
        assert_eq!([step(3_700, 700), step(3_800, 1_000), step(4_200, 1_000)], [1; 3]);
        assert_eq!(step(4_300, 1_000), 0);
        reduced_reporting.on_shown(Bitrate::from_kbps(900));
        assert_eq!(reduced_reporting.step(), 0);
        reduced_reporting.on_shown(Bitrate::from_kbps(300));
        assert_eq!(reduced_reporting.step(), 1);
    }

    #[test]
    fn stalls_and_own_media_do_not_reduce_reporting() {
        let mut uplink = Uplink::new();
        for round in 0..100 {
            uplink.pass(500, 1_000.0);
            // Everything that a stall of 300 ms held arrives at once.
            uplink.now += Duration::from_millis(300);
            for held in (0..15).rev() {
                uplink.reduced_reporting.on_ping_answered((15 + held * 20) * 1_000_000, uplink.now);
            }
            assert_eq!(uplink.reduced_reporting.step(), 0, "round {round}");
        }
        for _ in 0..100 {
            uplink.reduced_reporting.on_filled(uplink.now);
            uplink.pass(200, 100.0);
            assert_eq!(uplink.reduced_reporting.step(), 0);
        }
    }
}
