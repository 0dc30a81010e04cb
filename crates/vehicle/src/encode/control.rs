use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::{StripReport, VideoFeedback};
use tautline_units::{Bitrate, ByteCount, Instant};
use tautline_video::{Layout, Reduction, SliceKind, stamp};

use super::governor::{Governor, Taking};
use super::strip::Request;
use crate::config::AfterPause;

/// Encoder control: requests of the transport and the operator to the camera and the encoders.
#[derive(Debug)]
pub struct EncoderControl {
    budget_bps: AtomicU64,
    /// Strips whose next slice must be an IDR: bit i stands for strip i.
    keyframe_strips: AtomicU64,
    /// Strips for which the receiver repeats its request for an IDR: bit i stands for strip i.
    requested_strips: AtomicU64,
    /// Strips that must recover by their encoder's own method: bit i stands for strip i.
    recovery_strips: AtomicU64,
    strips: Mutex<[Fate; VideoFeedback::STRIPS_MAX]>,
    governor: Mutex<Governor>,
    after_pause: AfterPause,
    paused: AtomicBool,
    /// Picture interval that the operator's screen keeps up with; 1 is every picture.
    picture_interval: AtomicU8,
    /// Start of the present or, while rate is granted, latest pause, in nanoseconds of the
    /// vehicle's clock; 0 for the one before the first budget.
    paused_at: AtomicU64,
    screen: Mutex<Screen>,
}

/// Fit of the source's pictures to the operator's screen.
#[derive(Clone, Copy, Debug)]
struct Screen {
    /// True if pictures are reduced to fit the operator's screen.
    follows: bool,
    /// Most pixels of a picture that the screen shows in time; `None` if it has reported nothing.
    pixels_max: Option<u32>,
    source: Option<Source>,
    /// Factor by which pictures are reduced for the screen, in width and in height; 1 if they are
    /// not.
    reduction: usize,
}

/// Properties of a source of pictures.
#[derive(Clone, Copy, Debug)]
struct Source {
    pictures_per_second: f64,
    gives_rows: bool,
    layout: Layout,
}

/// Fate of a strip's coded slices: the operator's latest report, and the newest that was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Fate {
    /// Latest report of the session's operator on the strip; `None` before the first.
    pub(super) report: Option<StripReport>,
    /// Newest picture of the session whose predicted slice was coded and never sent; `None` if
    /// there is none.
    pub(super) refused: Option<u32>,
}

impl EncoderControl {
    /// Creates a control without a budget yet: encoders wait, and every strip begins with an IDR.
    pub fn new() -> Self {
        Self::with(AfterPause::default())
    }

    /// Creates a control as [`new`](Self::new) does; `after_pause` is the reaction after a long
    /// pause.
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
            screen: Mutex::new(Screen {
                follows: false,
                pixels_max: None,
                source: None,
                reduction: 1,
            }),
        }
    }

    /// Lets the picture rate and size follow the budget, and the size also the screen.
    pub fn governed(self) -> Self {
        self.screen().follows = true;
        Self { governor: Mutex::new(Governor::new(60.0)), ..self }
    }

    /// Sets the properties of the source: pictures per second, whether it delivers row by row, and
    /// its layout. Recomputes by how much pictures are reduced for the screen.
    pub fn set_source(&self, pictures_per_second: f64, gives_rows: bool, layout: &Layout) {
        let source = Source { pictures_per_second, gives_rows, layout: *layout };
        let mut screen = self.screen();
        screen.source = Some(source);
        self.fit(&mut screen);
    }

    /// Sets the most pixels of a picture that the screen shows in time; `None` if it has reported
    /// nothing.
    fn set_pixels_max(&self, pixels_max: Option<u32>) {
        let mut screen = self.screen();
        if screen.pixels_max != pixels_max {
            screen.pixels_max = pixels_max;
            self.fit(&mut screen);
        }
    }

    /// Recomputes the factor by which pictures are reduced for the screen, and tells the governor
    /// their reduced layout; the link budget may reduce them further.
    fn fit(&self, screen: &mut Screen) {
        let Some(Source { pictures_per_second, gives_rows, layout }) = screen.source else {
            return;
        };
        let reduction = if screen.follows { screen.fitting(&layout) } else { None };
        let reduced = reduction.map_or(layout, |reduction| *reduction.layout());
        let factor = reduction.map_or(1, |reduction| reduction.factor());
        if factor != std::mem::replace(&mut screen.reduction, factor)
            && let Some(words) = screen.words()
        {
            tracing::info!("{words}");
        }
        self.governor().set_source(pictures_per_second, gives_rows, &reduced);
    }

    /// Returns how and why pictures are reduced for the operator's screen; `None` if they are not,
    /// even if the link budget reduces them.
    pub fn screen_words(&self) -> Option<String> {
        self.screen().words()
    }

    /// Returns the factor by which pictures are reduced at present, for the screen and for the
    /// links together, in width and in height; 1 is the source's size.
    pub fn reduction(&self) -> usize {
        self.screen().reduction * self.governor().reduction()
    }

    /// Decides whether the source's picture that begins now is coded, by what the operator's screen
    /// and the links keep up with.
    pub fn take(&self, picture: u32, now: Instant) -> Taking {
        let screen = u32::from(self.picture_interval.load(Ordering::Relaxed));
        self.governor().take(picture, screen, now)
    }

    /// Returns the size allowed for the current picture, all strips together; `None` if nothing may
    /// be sent, or if its next strip would not be sent in time.
    pub(super) fn size(&self, now: Instant) -> Option<ByteCount> {
        self.governor().size(now)
    }

    /// Adds a coded slice of `bytes` to the backlog of the links, and records the size its picture
    /// would have at the acceptable quantizer, if known.
    pub(super) fn note_slice(&self, bytes: ByteCount, need: Option<ByteCount>, now: Instant) {
        let mut governor = self.governor();
        governor.note_slice(bytes, now);
        if let Some(need) = need {
            governor.note_need(need);
        }
    }

    /// Returns whether encoders get no work at present: nothing can be sent, or the links are busy.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.is_paused() || self.governor().is_busy(now)
    }

    /// Returns the pictures per second that the links are found to carry: the source's rate, or a
    /// fraction of it.
    pub fn picture_rate(&self) -> f64 {
        self.governor().picture_rate()
    }

    /// Returns the size that a picture would have at the acceptable quantizer; zero before it is
    /// known.
    pub fn need(&self) -> ByteCount {
        self.governor().need()
    }

    /// Records a rate that the links have shown to carry at least.
    pub fn note_shown(&self, shown: Bitrate) {
        self.governor().note_shown(shown);
    }

    /// Sets the total rate of all slices; zero pauses. After a pause of 250 ms or more every strip
    /// recovers, as `after_pause` says: the links were gone, along with the packets on them
    /// ([UGV]). A shorter pause needs no recovery: no slice was encoded meanwhile that the peer
    /// could lack.
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

    /// Returns whether the granted rate is zero, so that nothing may be sent.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Relaxed)
    }

    /// Returns the picture interval that both the operator's screen and the links can sustain:
    /// every n-th picture is coded.
    pub fn picture_interval(&self) -> u32 {
        let screen = u32::from(self.picture_interval.load(Ordering::Relaxed));
        screen.max(self.governor().interval())
    }

    /// Requests an IDR of every strip whose bit is set: bit i, from the least, stands for strip i.
    pub fn request_keyframes(&self, strips: u64) {
        self.keyframe_strips.fetch_or(strips, Ordering::Relaxed);
    }

    /// Forgets the reports and requests of the previous operator, for a new one: every strip begins
    /// with an IDR, and the screen counts as keeping up with every picture.
    pub fn handle_new_session(&self) {
        *self.lock() = Default::default();
        self.picture_interval.store(1, Ordering::Relaxed);
        self.set_pixels_max(None);
        self.governor().handle_new_session();
        self.requested_strips.store(0, Ordering::Relaxed);
        self.request_keyframes(ALL_STRIPS);
    }

    /// Handles a receiver's requests for IDRs, its picture interval, the most pixels that its
    /// screen shows, and its strip reports; a strip without a report keeps its earlier one.
    pub fn handle_feedback(&self, feedback: &VideoFeedback) {
        self.requested_strips.fetch_or(feedback.keyframe_strips.into(), Ordering::Relaxed);
        self.picture_interval.store(feedback.picture_interval.max(1), Ordering::Relaxed);
        self.set_pixels_max(feedback.pixels_max);
        let mut strips = self.lock();
        for (strip, told) in strips.iter_mut().zip(feedback.strips) {
            strip.report = told.or(strip.report);
        }
    }

    /// Records a coded slice that is never sent: its strip recovers with the next picture, before
    /// the operator can miss it.
    pub fn handle_refused(&self, strip: u8, picture: u32, kind: SliceKind) {
        if kind == SliceKind::Idr {
            return self.request_keyframes(1 << strip);
        }
        if let Some(strip) = self.lock().get_mut(usize::from(strip)) {
            strip.refused = Some(picture);
        }
    }

    /// Returns the fate of a strip's coded slices; without report and refused slice for a strip
    /// that does not exist.
    pub(super) fn fate(&self, strip: usize) -> Fate {
        self.lock().get(strip).copied().unwrap_or_default()
    }

    /// Returns the strongest pending request for a strip, and clears all requests for that strip.
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

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Screen {
    /// Returns the smallest reduction that makes pictures of this layout small enough, or the
    /// greatest available; `None` if they already are.
    fn fitting(&self, layout: &Layout) -> Option<Reduction> {
        let most = self.pixels_max.unwrap_or(PIXELS_UNTOLD) as usize;
        let pixels = |layout: &Layout| layout.shown().0 * layout.shown().1;
        if pixels(layout) <= most {
            return None;
        }
        let reduced =
            (2..=SCREEN_REDUCTION_MAX).map_while(|factor| Reduction::new(layout, factor).ok());
        let reduced = reduced.take_while(|it| it.layout().shown().0 >= stamp::WIDTH);
        let mut reduced = reduced.collect::<Vec<_>>();
        let fits = reduced.iter().position(|it| pixels(it.layout()) <= most);
        reduced.truncate(fits.map_or(reduced.len(), |fits| fits + 1));
        reduced.pop()
    }

    fn words(&self) -> Option<String> {
        let (width, height) = self.source.filter(|_| self.reduction > 1)?.layout.shown();
        let (wide, high) = (width / self.reduction, height / self.reduction);
        let why = match self.pixels_max {
            Some(_) => "the operator's screen shows no larger ones in time",
            None => "no operator's screen has reported that it shows larger ones in time",
        };
        Some(format!("pictures of {width}x{height} are sent at {wide}x{high}: {why}"))
    }
}

const ALL_STRIPS: u64 = u64::MAX;
/// Most pixels of a picture until the screen has reported its own limit: those of 1920x1080, which
/// every page that decodes at all is assumed to show.
const PIXELS_UNTOLD: u32 = 1920 * 1080;
/// Greatest factor by which pictures are reduced for the screen; the links' budget may reduce them
/// by up to 3 in addition.
const SCREEN_REDUCTION_MAX: usize = 5;
/// Pause of the budget after which strips recover: the time without an answer after which a link
/// counts as silent.
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

    /// An 8K picture blocked a page for seconds.
    #[test]
    fn pictures_are_reduced_to_the_size_that_the_page_can_show() {
        let reduction = |width, height, pixels_max| {
            let control = EncoderControl::new().governed();
            control.set_source(30.0, false, &Layout::around(width, height).unwrap());
            let feedback = VideoFeedback { pixels_max, ..VideoFeedback::default() };
            control.handle_feedback(&feedback);
            (control.reduction(), control.screen_words())
        };
        let factor = |width, height, pixels_max| reduction(width, height, pixels_max).0;
        assert_eq!([factor(1920, 1080, None), factor(1280, 720, None)], [1, 1]);
        assert_eq!(factor(3840, 2160, Some(3840 * 2160)), 1);
        assert_eq!([factor(7680, 4320, Some(3840 * 2160)), factor(7680, 4320, None)], [2, 4]);
        assert_eq!(factor(1280, 720, Some(640 * 480)), 2);
        // Room for the stamp remains whatever a page reports, and no reduction exceeds what the
        // picture allows.
        assert_eq!([factor(1280, 720, Some(1)), factor(8192, 8192, Some(1))], [3, 5]);
        assert_eq!(factor(640, 480, Some(1)), 1);
        let (_, words) = reduction(2592, 1944, None);
        assert!(
            words.unwrap().starts_with("pictures of 2592x1944 are sent at 1296x972: no operator")
        );
        assert_eq!(reduction(1280, 720, None).1, None);
        // The lab chooses the size of its pictures.
        let control = EncoderControl::new();
        control.set_source(30.0, false, &Layout::around(3840, 2160).unwrap());
        assert_eq!(control.reduction(), 1);
    }

    #[test]
    fn feedback_of_a_session_is_forgotten_with_it() {
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
