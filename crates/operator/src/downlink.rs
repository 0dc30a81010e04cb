//! From received slices to slices to show: in order, without holes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use tautline_message::{StripReport, VideoFeedback};
use tautline_units::Instant;
use tautline_video::{AccessUnit, Concealer, Layout, Slice, SliceKind};

/// What happened to slices, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Shown as they came.
    pub shown: u64,
    /// Skip slices put in the place of lost ones.
    pub skipped: u64,
    /// Came after their place had been given up.
    pub overtaken: u64,
    /// Came before the strip's first IDR, or cannot be parsed.
    pub unusable: u64,
    /// Were no slice at all.
    pub malformed: u64,
}

/// A slice to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// As it goes to the decoder.
    pub slice: Slice,
    /// Whether the strip then is as its encoder has it: nothing it follows from was lost.
    pub is_clean: bool,
}

/// A buffer that puts each strip's slices in order, and skip slices in the place of lost ones.
///
/// A slice is shown at once if none is missing before it. If one is, it waits: what is late still comes,
/// over another link. The encoder is [told](Self::reports) of a loss after `reorder_timeout`, and recovers from
/// it; skip slices stand in for what is missing when it is too old to come, or when what recovers is there.
/// Of a stream that does not say how it recovers, an IDR is [asked for](Self::keyframe_strips).
/// Memory: at most [`HELD_MAX`] slices a strip.
#[derive(Debug)]
pub struct Downlink {
    strips: Vec<ReorderBuffer>,
    reorder_timeout: Duration,
    counters: Counters,
}

#[derive(Debug)]
struct ReorderBuffer {
    concealer: Concealer,
    held: BTreeMap<u32, Held>,
    /// Picture of the newest slice shown.
    newest: Option<u32>,
    /// When it was captured, by the vehicle's clock.
    captured_at: Option<Instant>,
    /// The newest picture that was decoded as its encoder has it.
    clean: Option<u32>,
    /// The newest one that did not come.
    lost: Option<u32>,
    /// Slices shown since then.
    since_lost: u32,
    /// Whether slices tell their history: then their encoder recovers without an IDR.
    recovers: bool,
    /// The newest picture that came before any IDR, and could not be shown.
    unusable: Option<u32>,
}

#[derive(Debug)]
struct Held {
    slice: Slice,
    /// When the encoder is told of what is missing before it.
    told_from: Instant,
    /// When that is no longer waited for.
    until: Instant,
}

impl Downlink {
    /// Makes a downlink that has seen nothing yet.
    pub fn new(reorder_timeout: Duration) -> Self {
        let strips = (0..Layout::STRIP_COUNT).map(|_| ReorderBuffer::new()).collect();
        Self { strips, reorder_timeout, counters: Counters::default() }
    }

    /// Reads a received unit, in the buffer that it came in; `None`, and counted, if it is no slice.
    pub fn parse(&mut self, unit: Vec<u8>) -> Option<Slice> {
        let slice = Slice::parse(unit).ok();
        self.counters.malformed += u64::from(slice.is_none());
        slice
    }

    /// Takes a received slice, which is too old to be shown from `worthless_at` on; gives to `show` what
    /// can be shown now, in order.
    pub fn handle_slice(
        &mut self,
        slice: Slice,
        worthless_at: Instant,
        now: Instant,
        mut show: impl FnMut(Shown),
    ) {
        let Some(strip) = self.strips.get_mut(usize::from(slice.strip)) else {
            self.counters.malformed += 1;
            return;
        };
        if strip.newest.is_some_and(|newest| !is_after(slice.picture, newest)) {
            self.counters.overtaken += 1;
            return;
        }
        if slice.kind == SliceKind::Idr {
            // Nothing before an IDR is needed for anything after it.
            let overtaken = strip.held.keys().filter(|held| !is_after(**held, slice.picture));
            self.counters.overtaken += overtaken.count() as u64;
            strip.held.retain(|held, _| is_after(*held, slice.picture));
        }
        if strip.held.len() == HELD_MAX
            && let Some((_, first)) = strip.held.pop_first()
        {
            let until = first.until;
            strip.show(first, until, &mut self.counters, &mut show);
        }
        let told_from = now + self.reorder_timeout;
        let until = match slice.history {
            // It follows from none before it: what was told of is not waited for any more.
            Some(0) => {
                let before = strip.held.range_mut(..slice.picture);
                before.for_each(|(_, held)| held.until = held.told_from);
                strip.held.first_key_value().map_or(told_from, |(_, first)| first.told_from)
            }
            Some(_) => told_from.max(worthless_at - strip.interval(&slice)),
            // Its encoder recovers by an IDR alone, which is asked for when the wait is over.
            None => told_from,
        };
        strip.held.insert(slice.picture, Held { slice, told_from, until });
        strip.release(now, &mut self.counters, &mut show);
    }

    /// Returns when the next held slice is no longer waited for.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let held = self.strips.iter().filter_map(|strip| strip.held.first_key_value());
        held.map(|(_, held)| held.until).min()
    }

    /// Shows what has waited long enough.
    pub fn handle_timeout(&mut self, now: Instant, mut show: impl FnMut(Shown)) {
        for strip in &mut self.strips {
            strip.release(now, &mut self.counters, &mut show);
        }
    }

    /// Returns the strips that need an IDR, as bits.
    pub fn keyframe_strips(&self) -> u8 {
        let bit = |(index, strip): (usize, &ReorderBuffer)| u8::from(strip.needs_idr()) << index;
        self.strips.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
    }

    /// Returns what has come of each strip by `now`, for the vehicle's encoders.
    pub fn reports(&self, now: Instant) -> [Option<StripReport>; VideoFeedback::STRIPS_MAX] {
        let mut reports = [None; VideoFeedback::STRIPS_MAX];
        for (report, strip) in reports.iter_mut().zip(&self.strips) {
            *report = strip.report(now);
        }
        reports
    }

    /// Returns how the pictures are laid out, once every strip has told its size and all fit together.
    pub fn layout(&self) -> Option<Layout> {
        let (width, _) = self.strips.first()?.concealer.size()?;
        let height = |strip: &ReorderBuffer| strip.concealer.size().map(|(_, height)| height);
        let cropped = self.strips.last()?.concealer.cropped()?;
        let coded = Layout::of(width, self.strips.iter().map(height).sum::<Option<usize>>()?);
        let layout = coded.ok()?.with_cropped(cropped).ok()?;
        (0..self.strips.len()).all(|strip| self.fits(strip, &layout)).then_some(layout)
    }

    /// Returns whether `strip` has the size that `layout` gives it.
    pub fn fits(&self, strip: usize, layout: &Layout) -> bool {
        let size = (layout.width(), layout.strip_rows(strip).len());
        self.strips.get(strip).is_some_and(|ReorderBuffer { concealer, .. }| {
            concealer.size() == Some(size) && concealer.cropped() == Some(layout.cropped(strip))
        })
    }

    /// Returns the codec string of the most demanding strip for WebCodecs (RFC 6381), such as
    /// `avc1.42C01F`; `None` before the first IDR.
    pub fn codec(&self) -> Option<String> {
        // The level stands last, and all strips have the same profile.
        self.strips.iter().filter_map(|strip| strip.concealer.codec()).max()
    }

    /// Forgets what a former session sent.
    pub fn reset(&mut self) {
        self.strips = (0..Layout::STRIP_COUNT).map(|_| ReorderBuffer::new()).collect();
    }

    /// Returns what happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl ReorderBuffer {
    fn new() -> Self {
        Self {
            concealer: Concealer::new(),
            held: BTreeMap::new(),
            newest: None,
            captured_at: None,
            clean: None,
            lost: None,
            since_lost: 0,
            recovers: false,
            unusable: None,
        }
    }

    fn needs_idr(&self) -> bool {
        self.concealer.is_corrupt() && (!self.recovers || self.since_lost > RECOVERY_MAX)
    }

    fn report(&self, now: Instant) -> Option<StripReport> {
        let Some(shown) = self.newest else { return self.report_without_idr(now) };
        let (newest, lost) = match self.missing(now) {
            Some(picture) => (picture.wrapping_add(1), Some(picture)),
            None => (shown, self.lost),
        };
        // A picture further back is not told.
        let before = |picture: Option<u32>| {
            u8::try_from(newest.wrapping_sub(picture?)).ok().filter(|before| *before < u8::MAX)
        };
        let (clean_before, lost_before) = (before(self.clean), before(lost));
        Some(StripReport { newest, clean_before, lost_before })
    }

    /// Returns what is told where pictures come and nothing to show them by has: the IDR before them was lost.
    fn report_without_idr(&self, now: Instant) -> Option<StripReport> {
        let mut held = self.held.iter().rev();
        let waited = held.find(|(_, held)| now >= held.told_from).map(|(picture, _)| *picture);
        let newest = waited.or(self.unusable)?;
        Some(StripReport { newest, clean_before: None, lost_before: Some(1) })
    }

    /// Returns the newest picture that what is held has waited for long enough to be told of.
    fn missing(&self, now: Instant) -> Option<u32> {
        let mut before = 0;
        let mut missing = None;
        for (picture, held) in &self.held {
            let Ok(parsed) = self.concealer.parse(&held.slice.bytes) else { continue };
            // Counted from what is shown, those that are held among them.
            let place = self.concealer.missing_before(&parsed) + 1;
            if place > before + 1 && now >= held.told_from {
                missing = Some(picture.wrapping_sub(1));
            }
            before = place;
        }
        missing
    }

    /// Returns how long before `slice` the picture before it was captured.
    fn interval(&self, slice: &Slice) -> Duration {
        let Some((picture, captured_at)) = self.newest.zip(self.captured_at) else {
            return Duration::ZERO;
        };
        slice.captured_at.since(captured_at) / slice.picture.wrapping_sub(picture).max(1)
    }

    /// Shows from the front of what is held: all that follows without a hole, or waited enough.
    fn release(&mut self, now: Instant, counters: &mut Counters, show: &mut impl FnMut(Shown)) {
        while let Some((picture, first)) = self.held.pop_first() {
            if let Some(first) = self.show(first, now, counters, show) {
                self.held.insert(picture, first);
                return;
            }
        }
    }

    /// Shows a slice behind skip slices for those that are missing before it; gives it back if it
    /// has to wait for them.
    fn show(
        &mut self,
        held: Held,
        now: Instant,
        counters: &mut Counters,
        show: &mut impl FnMut(Shown),
    ) -> Option<Held> {
        let parsed = self.concealer.parse(&held.slice.bytes);
        let complete =
            parsed.as_ref().is_ok_and(|parsed| self.concealer.missing_before(parsed) == 0);
        if !complete && now < held.until {
            drop(parsed);
            return Some(held);
        }
        let Ok(parsed) = parsed else {
            counters.unusable += 1;
            self.unusable = Some(held.slice.picture);
            return None;
        };
        let picture = held.slice.picture;
        let missing = self.concealer.missing_before(&parsed);
        // After a lost IDR the encoder's count has begun anew: the camera's tells how many there were.
        let missing = match self.newest {
            Some(newest) => missing.min(picture.wrapping_sub(newest).saturating_sub(1)),
            None => missing,
        };
        for place in 0..missing {
            let Some(bytes) = self.concealer.skip() else { break };
            counters.skipped += 1;
            let picture = picture.wrapping_sub(missing - place);
            (self.lost, self.since_lost) = (Some(picture), 0);
            let (kind, bytes) = (SliceKind::Skip, AccessUnit::from(bytes.as_slice()));
            show(Shown { slice: Slice { picture, kind, bytes, ..held.slice }, is_clean: false });
        }
        let was_corrupt = self.concealer.is_corrupt();
        let renumbered = match self.concealer.take(parsed) {
            Some(Cow::Borrowed(_)) => None,
            Some(Cow::Owned(bytes)) => Some(AccessUnit::from(bytes.as_slice())),
            None => {
                counters.unusable += 1;
                self.unusable = Some(picture);
                return None;
            }
        };
        let mut slice = held.slice;
        if let Some(bytes) = renumbered {
            slice.bytes = bytes;
        }
        if let Some(history) = slice.history {
            self.concealer.follows_from(history);
        }
        self.concealer.moves_by(slice.motion);
        let is_clean = !self.concealer.is_corrupt();
        (self.newest, self.captured_at) = (Some(picture), Some(slice.captured_at));
        self.since_lost = self.since_lost.saturating_add(1);
        if is_clean {
            self.clean = Some(picture);
        } else if !was_corrupt {
            // It follows from none that came: an IDR before it was lost.
            (self.lost, self.since_lost) = (Some(picture), 0);
        }
        if slice.kind != SliceKind::Idr {
            self.recovers = slice.history.is_some();
        }
        counters.shown += 1;
        show(Shown { slice, is_clean });
        None
    }
}

/// Returns whether picture `a` comes after picture `b`, on a counter that wraps.
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// Slices of one strip that may wait: more than arrive within any sensible timeout.
pub const HELD_MAX: usize = 16;
/// A strip that is still corrupt after so many slices never got what was to end the loss: a second
/// at 60 a second, and several times what any recovery takes.
const RECOVERY_MAX: u32 = 60;

#[cfg(test)]
mod tests;
