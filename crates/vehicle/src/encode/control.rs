use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::{StripReport, VideoFeedback};
use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Layout, SliceKind};

use super::governor::{Governor, Taking};
use super::strip::Request;
use crate::config::AfterPause;

/// Encoder control: what the transport and the operator ask of the camera and the encoders.
#[derive(Debug)]
pub struct EncoderControl {
    budget_bps: AtomicU64,
    /// Strips whose next slice is to be an IDR, as bits.
    keyframe_strips: AtomicU64,
    /// The same as the receiver requests it, again and again.
    requested_strips: AtomicU64,
    /// Strips that are to recover in their encoder's own way, as bits.
    recovery_strips: AtomicU64,
    strips: Mutex<[Fate; VideoFeedback::STRIPS_MAX]>,
    governor: Mutex<Governor>,
    after_pause: AfterPause,
    paused: AtomicBool,
    /// The screen keeps up with one picture of so many.
    picture_interval: AtomicU8,
    /// When the pause began, nanoseconds of the vehicle's clock.
    paused_at: AtomicU64,
}

/// What is known of a strip's slices once they are coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Fate {
    /// What the operator told last.
    pub(super) report: Option<StripReport>,
    /// The picture whose slice was never sent, the newest of them.
    pub(super) refused: Option<u32>,
}

impl EncoderControl {
    /// Makes a control that grants nothing yet: encoders wait.
    pub fn new() -> Self {
        Self::with(AfterPause::default())
    }

    /// Makes a control as [`new`](Self::new) does; `after_pause` says what follows a long pause.
    pub fn with(after_pause: AfterPause) -> Self {
        Self {
            budget_bps: AtomicU64::new(0),
            keyframe_strips: AtomicU64::new(ALL_STRIPS),
            requested_strips: AtomicU64::new(0),
            recovery_strips: AtomicU64::new(0),
            strips: Mutex::default(),
            governor: Mutex::new(Governor::every_picture()),
            after_pause,
            paused: AtomicBool::new(true),
            picture_interval: AtomicU8::new(1),
            paused_at: AtomicU64::new(0),
        }
    }

    /// Makes picture rate and size follow the budget.
    pub fn governed(self) -> Self {
        Self { governor: Mutex::new(Governor::new(60.0)), ..self }
    }

    /// Takes note of a source of so many pictures a second, laid out so, and whether it gives them row by row.
    pub fn set_source(&self, pictures_per_second: f64, gives_rows: bool, layout: &Layout) {
        self.governor().set_source(pictures_per_second, gives_rows, layout);
    }

    /// Returns how many times smaller than the source's the picture begun last is, in width and in height.
    pub fn reduction(&self) -> usize {
        self.governor().reduction()
    }

    /// Returns what becomes of a picture that begins now.
    pub fn take(&self, picture: u32, now: Instant) -> Taking {
        let screen = u32::from(self.picture_interval.load(Ordering::Relaxed));
        self.governor().take(picture, screen, now)
    }

    /// Returns what the picture begun last may take; `None`: its next strip would not be sent in time.
    pub(super) fn size(&self, now: Instant) -> Option<ByteCount> {
        self.governor().size(now)
    }

    /// Takes note of a slice, and of what its picture would have taken at the acceptable quantizer if that is
    /// known.
    pub(super) fn note_slice(&self, bytes: ByteCount, need: Option<ByteCount>, now: Instant) {
        let mut governor = self.governor();
        governor.note_slice(bytes, now);
        if let Some(need) = need {
            governor.note_need(need);
        }
    }

    /// Returns whether encoders get nothing to do at present: nothing can be sent, or the links are busy.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.is_paused() || self.governor().is_busy(now)
    }

    /// Returns what picture rate the links are found to carry, of the source's.
    pub fn picture_rate(&self) -> f64 {
        self.governor().picture_rate()
    }

    /// Returns what a picture takes at the acceptable quantizer.
    pub fn need(&self) -> ByteCount {
        self.governor().need()
    }

    /// Takes note of what the links have shown that they carry at least.
    pub fn note_shown(&self, shown: Bitrate) {
        self.governor().note_shown(shown);
    }

    /// Sets the rate that all slices together may take; zero pauses. After a pause of
    /// [`PAUSE_LONG`] every strip recovers: the links were gone, and what was on them ([UGV]). A
    /// shorter one needs nothing: no slice was encoded meanwhile that the other end could lack.
    pub fn set_budget(&self, budget: Bitrate, now: Instant) {
        self.budget_bps.store(budget.bps(), Ordering::Relaxed);
        self.governor().set_budget(budget, now);
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

    /// Returns the rate granted at present.
    pub fn budget(&self) -> Bitrate {
        Bitrate::from_bps(self.budget_bps.load(Ordering::Relaxed))
    }

    /// Returns whether nothing may be sent.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Returns the picture interval (frame decimation): one picture of so many is coded, as the
    /// operator's screen keeps up with and the links carry.
    pub fn picture_interval(&self) -> u32 {
        let screen = u32::from(self.picture_interval.load(Ordering::Relaxed));
        screen.max(self.governor().interval())
    }

    /// Requests an IDR of every strip whose bit is set.
    pub fn request_keyframes(&self, strips: u64) {
        self.keyframe_strips.fetch_or(strips, Ordering::Relaxed);
    }

    /// Takes note that the operator is another: every strip begins anew, whatever was told before,
    /// and every picture is coded.
    pub fn handle_new_session(&self) {
        *self.lock() = Default::default();
        self.picture_interval.store(1, Ordering::Relaxed);
        self.governor().handle_new_session();
        self.requested_strips.store(0, Ordering::Relaxed);
        self.request_keyframes(ALL_STRIPS);
    }

    /// Takes what a receiver of the video asks for and tells of the strips.
    pub fn handle_feedback(&self, feedback: &VideoFeedback) {
        self.requested_strips.fetch_or(feedback.keyframe_strips.into(), Ordering::Relaxed);
        self.picture_interval.store(feedback.picture_interval.max(1), Ordering::Relaxed);
        let mut strips = self.lock();
        for (strip, told) in strips.iter_mut().zip(feedback.strips) {
            strip.report = told.or(strip.report);
        }
    }

    /// Takes note of a slice that was coded and is never sent: its strip recovers with the next picture, before
    /// the operator can have missed it.
    pub fn handle_refused(&self, strip: u8, picture: u32, kind: SliceKind) {
        if kind == SliceKind::Idr {
            return self.request_keyframes(1 << strip);
        }
        if let Some(strip) = self.lock().get_mut(usize::from(strip)) {
            strip.refused = Some(picture);
        }
    }

    /// Returns what is known of a strip's slices.
    pub(super) fn fate(&self, strip: usize) -> Fate {
        self.lock().get(strip).copied().unwrap_or_default()
    }

    /// Takes what is asked of a strip, the greater request if there are two.
    pub(super) fn take_request(&self, strip: usize) -> Request {
        let bit = 1 << strip;
        let take = |strips: &AtomicU64| strips.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        let is_requested = take(&self.requested_strips);
        match (take(&self.keyframe_strips), take(&self.recovery_strips)) {
            (true, _) => Request::Idr,
            (false, _) if is_requested => Request::IdrByReceiver,
            (false, true) => Request::Recover,
            (false, false) => Request::Nothing,
        }
    }

    fn begin_again(&self) {
        match self.after_pause {
            AfterPause::Idr => self.request_keyframes(ALL_STRIPS),
            AfterPause::Recover => {
                self.recovery_strips.fetch_or(ALL_STRIPS, Ordering::Relaxed);
            }
        }
    }

    fn governor(&self) -> MutexGuard<'_, Governor> {
        self.governor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, [Fate; VideoFeedback::STRIPS_MAX]> {
        self.strips.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for EncoderControl {
    fn default() -> Self {
        Self::new()
    }
}

const ALL_STRIPS: u64 = u64::MAX;
/// As long as a link may be without an answer before it counts as silent.
const PAUSE_LONG: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn after_a_pause(control: &EncoderControl, pause: Duration) -> Request {
        control.set_budget(Bitrate::ZERO, Instant::from_millis(3_000));
        control.set_budget(Bitrate::from_mbps(2), Instant::from_millis(3_000) + pause);
        control.take_request(3)
    }

    #[test]
    fn after_a_long_pause_every_strip_recovers_as_the_settings_say() {
        for (after_pause, refresh) in
            [(AfterPause::Recover, Request::Recover), (AfterPause::Idr, Request::Idr)]
        {
            let control = EncoderControl::with(after_pause);
            for strip in 0..Layout::STRIP_COUNT {
                assert_eq!(control.take_request(strip), Request::Idr);
            }
            control.set_budget(Bitrate::from_mbps(1), Instant::from_millis(1_000));
            assert_eq!(control.take_request(3), refresh);
            control.set_budget(Bitrate::from_mbps(2), Instant::from_millis(2_000));
            assert_eq!(control.take_request(3), Request::Nothing);
            assert_eq!(after_a_pause(&control, Duration::from_millis(249)), Request::Nothing);
            assert_eq!(after_a_pause(&control, Duration::from_millis(250)), refresh);
        }
    }

    #[test]
    fn what_a_session_told_is_forgotten_with_it() {
        let control = EncoderControl::new();
        let report = StripReport { newest: 9, clean_before: Some(0), lost_before: None };
        let mut strips = [None; VideoFeedback::STRIPS_MAX];
        strips[2] = Some(report);
        let requested = VideoFeedback { keyframe_strips: 1, ..VideoFeedback::default() };
        control.handle_feedback(&requested);
        let told = VideoFeedback { strips, picture_interval: 3, ..VideoFeedback::default() };
        control.handle_feedback(&told);
        control.handle_refused(2, 11, SliceKind::Predicted);
        assert_eq!(control.fate(2), Fate { report: Some(report), refused: Some(11) });
        assert_eq!(control.fate(3), Fate::default());
        assert_eq!(control.picture_interval(), 3);
        control.handle_new_session();
        assert_eq!((control.fate(2), control.picture_interval()), (Fate::default(), 1));
    }
}
