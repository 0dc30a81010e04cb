use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::{StripReport, VideoFeedback};
use tautline_units::{Bitrate, Instant};
use tautline_video::Refresh;

use crate::config::PathBack;

/// What the transport and the operator ask of the camera and the encoders.
#[derive(Debug)]
pub struct Wishes {
    budget_bps: AtomicU64,
    /// Strips whose next slice is to be an IDR, as bits.
    idr_strips: AtomicU64,
    /// Strips that are to heal in their encoder's own way, as bits.
    heal_strips: AtomicU64,
    reports: Mutex<Reports>,
    path_back: PathBack,
    paused: AtomicBool,
    /// One picture of so many is coded.
    picture_interval: AtomicU8,
    /// When the pause began, nanoseconds of the vehicle's clock.
    paused_at: AtomicU64,
}

/// What the operator told last of each strip.
type Reports = [Option<StripReport>; VideoFeedback::STRIPS_MAX];

impl Wishes {
    /// Nothing granted yet: encoders wait.
    pub fn new() -> Self {
        Self::with(PathBack::default())
    }

    /// As [`new`](Self::new); `path_back` says what follows a long pause.
    pub fn with(path_back: PathBack) -> Self {
        Self {
            budget_bps: AtomicU64::new(0),
            idr_strips: AtomicU64::new(ALL_STRIPS),
            heal_strips: AtomicU64::new(0),
            reports: Mutex::default(),
            path_back,
            paused: AtomicBool::new(true),
            picture_interval: AtomicU8::new(1),
            paused_at: AtomicU64::new(0),
        }
    }

    /// Sets the rate that all slices together may take; zero pauses. After a pause of
    /// [`PAUSE_LONG`] every strip heals: the path was gone, and what was on it ([UGV]). A
    /// shorter one needs nothing: no slice was encoded meanwhile that the other end could lack.
    pub fn set_budget(&self, budget: Bitrate, now: Instant) {
        self.budget_bps.store(budget.bps(), Ordering::Relaxed);
        let pause = budget == Bitrate::ZERO;
        match (self.paused.swap(pause, Ordering::Relaxed), pause) {
            (false, true) => self.paused_at.store(now.as_nanos(), Ordering::Relaxed),
            (true, false) => {
                let began = Instant::from_nanos(self.paused_at.load(Ordering::Relaxed));
                if now.since(began) >= PAUSE_LONG {
                    self.begin_again();
                }
            }
            (true, true) | (false, false) => {}
        }
    }

    /// The rate granted at present.
    pub fn budget(&self) -> Bitrate {
        Bitrate::from_bps(self.budget_bps.load(Ordering::Relaxed))
    }

    /// Whether nothing may be sent.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Frame decimation: one picture of so many is coded, as the operator's screen keeps up with.
    pub fn picture_interval(&self) -> u32 {
        u32::from(self.picture_interval.load(Ordering::Relaxed))
    }

    /// Asks for an IDR of every strip whose bit is set.
    pub fn refresh(&self, strips: u64) {
        self.idr_strips.fetch_or(strips, Ordering::Relaxed);
    }

    /// Takes note that the operator is another: every strip begins anew, whatever was told before,
    /// and every picture is coded.
    pub fn handle_new_session(&self) {
        *self.lock() = Reports::default();
        self.picture_interval.store(1, Ordering::Relaxed);
        self.refresh(ALL_STRIPS);
    }

    /// Takes what a receiver of the video asks for and tells of the strips.
    pub fn handle_feedback(&self, feedback: &VideoFeedback) {
        self.refresh(feedback.keyframe_strips.into());
        self.picture_interval.store(feedback.picture_interval.max(1), Ordering::Relaxed);
        let mut reports = self.lock();
        for (kept, told) in reports.iter_mut().zip(feedback.strips) {
            *kept = told.or(*kept);
        }
    }

    /// What the operator told last of a strip.
    pub(super) fn report(&self, strip: usize) -> Option<StripReport> {
        self.lock().get(strip).copied().flatten()
    }

    /// Takes the wish for a strip, the greater one if there are two.
    pub(super) fn take_refresh(&self, strip: usize) -> Refresh {
        let bit = 1 << strip;
        let take = |strips: &AtomicU64| strips.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        match (take(&self.idr_strips), take(&self.heal_strips)) {
            (true, _) => Refresh::Idr,
            (false, true) => Refresh::Recover,
            (false, false) => Refresh::No,
        }
    }

    fn begin_again(&self) {
        match self.path_back {
            PathBack::Idr => self.refresh(ALL_STRIPS),
            PathBack::Heal => {
                self.heal_strips.fetch_or(ALL_STRIPS, Ordering::Relaxed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Wishes {
    fn default() -> Self {
        Self::new()
    }
}

const ALL_STRIPS: u64 = u64::MAX;
/// As long as a link may be without an answer before it counts as silent.
const PAUSE_LONG: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use tautline_video::Layout;

    use super::*;

    fn after_a_pause(wishes: &Wishes, pause: Duration) -> Refresh {
        wishes.set_budget(Bitrate::ZERO, Instant::from_millis(3_000));
        wishes.set_budget(Bitrate::from_mbps(2), Instant::from_millis(3_000) + pause);
        wishes.take_refresh(3)
    }

    #[test]
    fn a_rate_after_a_long_pause_heals_every_strip_as_the_settings_say() {
        for (path_back, refresh) in
            [(PathBack::Heal, Refresh::Recover), (PathBack::Idr, Refresh::Idr)]
        {
            let wishes = Wishes::with(path_back);
            for strip in 0..Layout::STRIP_COUNT {
                assert_eq!(wishes.take_refresh(strip), Refresh::Idr);
            }
            wishes.set_budget(Bitrate::from_mbps(1), Instant::from_millis(1_000));
            assert_eq!(wishes.take_refresh(3), refresh);
            wishes.set_budget(Bitrate::from_mbps(2), Instant::from_millis(2_000));
            assert_eq!(wishes.take_refresh(3), Refresh::No);
            assert_eq!(after_a_pause(&wishes, Duration::from_millis(249)), Refresh::No);
            assert_eq!(after_a_pause(&wishes, Duration::from_millis(250)), refresh);
        }
    }

    #[test]
    fn what_a_session_told_is_forgotten_with_it() {
        let wishes = Wishes::new();
        let report = StripReport { newest: 9, whole_before: Some(0), lost_before: None };
        let mut strips = [None; VideoFeedback::STRIPS_MAX];
        strips[2] = Some(report);
        wishes.handle_feedback(&VideoFeedback { keyframe_strips: 1, ..VideoFeedback::default() });
        wishes.handle_feedback(&VideoFeedback {
            strips,
            picture_interval: 3,
            ..VideoFeedback::default()
        });
        assert_eq!((wishes.report(2), wishes.report(3)), (Some(report), None));
        assert_eq!(wishes.picture_interval(), 3);
        wishes.handle_new_session();
        assert_eq!((wishes.report(2), wishes.picture_interval()), (None, 1));
    }
}
