//! From received slices to slices to show: in order, without gaps.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use tautline_message::{StripReport, VideoFeedback};
use tautline_units::Instant;
use tautline_video::{AccessUnit, Concealer, Layout, Slice, SliceKind};

/// Counts of the received slices by outcome, and of those shown in their place, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Received slices that were shown unchanged.
    pub shown: u64,
    /// Skip slices shown in place of lost ones.
    pub skipped: u64,
    /// Slices that arrived when the same or a newer one of their strip had been shown, and held
    /// ones that an IDR made unneeded.
    pub overtaken: u64,
    /// Slices that arrived before the strip's first IDR, or that cannot be parsed.
    pub unusable: u64,
    /// Units that are not a slice of a strip.
    pub malformed: u64,
}

/// A slice that the console shows next, received or in place of a lost one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shown {
    /// Slice as passed to the decoder.
    pub slice: Slice,
    /// True if the strip matches its encoder after this slice: none of its references was lost.
    pub is_clean: bool,
}

/// Reorder buffer for the slices of each strip, with skip slices in place of lost ones.
///
/// A slice is shown at once if none is missing before it. Otherwise it waits, because a late slice
/// may still arrive over another link. After `reorder_timeout` the loss is
/// [reported](Self::reports) and the encoder recovers. Skip slices replace the missing ones when
/// they are too old to arrive, or when the recovery has arrived. A stream that does not signal how
/// it recovers gets a [request](Self::keyframe_strips) for an IDR. Memory: at most [`HELD_MAX`]
/// slices per strip.
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
    /// Picture number of the newest slice of the strip shown; `None` before the first.
    newest: Option<u32>,
    /// Capture time of the newest slice of the strip shown, by the vehicle's clock; `None` before
    /// the first, or if unknown.
    captured_at: Option<Instant>,
    /// Number of the newest picture after which the strip was clean; `None` before one.
    clean: Option<u32>,
    /// Number of the newest picture of which the slice of the strip was lost; after a lost IDR,
    /// that of the first slice shown instead. `None` before a loss.
    lost: Option<u32>,
    /// Number of received slices shown since the loss in `lost`, or since the first one without a
    /// loss.
    since_lost: u32,
    /// True if the newest slice other than an IDR signals its history: then the encoder recovers
    /// without an IDR.
    recovers: bool,
    /// Number of the newest picture whose slice arrived and could not be shown, as before the first
    /// IDR; `None` before one.
    unusable: Option<u32>,
}

#[derive(Debug)]
struct Held {
    slice: Slice,
    /// Time from which the loss before the slice is reported.
    told_from: Instant,
    /// Time at which to stop waiting for the slices missing before the held one.
    until: Instant,
}

impl Downlink {
    /// Creates a downlink without slices; a missing one is reported as lost after
    /// `reorder_timeout`.
    pub fn new(reorder_timeout: Duration) -> Self {
        let strips = (0..Layout::STRIP_COUNT).map(|_| ReorderBuffer::new()).collect();
        Self { strips, reorder_timeout, counters: Counters::default() }
    }

    /// Parses a received unit in its own buffer; `None`, and counted, if it is no slice.
    pub fn parse(&mut self, unit: Vec<u8>) -> Option<Slice> {
        let slice = Slice::parse(unit).ok();
        self.counters.malformed += u64::from(slice.is_none());
        slice
    }

    /// Handles a received slice, which is too old to be shown from `worthless_at` on. Passes to
    /// `show` all slices that can be shown now, in order. A slice that is not newer than the newest
    /// shown one of its strip is counted and dropped, and so are the held slices before an IDR. If
    /// too many are held, the first is shown without further wait.
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
            // After an IDR, earlier slices are not needed.
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
            // It refers to none of the earlier slices, so they are not waited for any more.
            Some(0) => {
                let before = strip.held.range_mut(..slice.picture);
                before.for_each(|(_, held)| held.until = held.told_from);
                strip.held.first_key_value().map_or(told_from, |(_, first)| first.told_from)
            }
            Some(_) => told_from.max(worthless_at - strip.interval(&slice)),
            // This encoder recovers only by an IDR, which is requested when the wait ends.
            None => told_from,
        };
        strip.held.insert(slice.picture, Held { slice, told_from, until });
        strip.release(now, &mut self.counters, &mut show);
    }

    /// Returns the earliest instant at which the wait of a strip's first held slice ends; `None` if
    /// none is held.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let held = self.strips.iter().filter_map(|strip| strip.held.first_key_value());
        held.map(|(_, held)| held.until).min()
    }

    /// Passes to `show` the held slices whose wait has ended by `now`, and those that follow them
    /// without a gap.
    pub fn handle_timeout(&mut self, now: Instant, mut show: impl FnMut(Shown)) {
        for strip in &mut self.strips {
            strip.release(now, &mut self.counters, &mut show);
        }
    }

    /// Returns the strips that need an IDR, bit n for strip n: corrupt ones whose encoder does not
    /// recover by itself, or has not within 60 shown slices.
    pub fn keyframe_strips(&self) -> u8 {
        let bit = |(index, strip): (usize, &ReorderBuffer)| u8::from(strip.needs_idr()) << index;
        self.strips.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
    }

    /// Returns the report on each strip at `now`, for the vehicle's encoders; `None` for a strip
    /// that has shown nothing, until a slice of it has waited for `reorder_timeout` or was
    /// unusable.
    pub fn reports(&self, now: Instant) -> [Option<StripReport>; VideoFeedback::STRIPS_MAX] {
        let mut reports = [None; VideoFeedback::STRIPS_MAX];
        for (report, strip) in reports.iter_mut().zip(&self.strips) {
            *report = strip.report(now);
        }
        reports
    }

    /// Returns the layout of the pictures; `None` until the size of every strip is known and all
    /// fit together.
    pub fn layout(&self) -> Option<Layout> {
        let (width, _) = self.strips.first()?.concealer.size()?;
        let height = |strip: &ReorderBuffer| strip.concealer.size().map(|(_, height)| height);
        let cropped = self.strips.last()?.concealer.cropped()?;
        let coded = Layout::of(width, self.strips.iter().map(height).sum::<Option<usize>>()?);
        let layout = coded.ok()?.with_cropped(cropped).ok()?;
        (0..self.strips.len()).all(|strip| self.fits(strip, &layout)).then_some(layout)
    }

    /// Returns whether `strip` has the size and cropping that `layout` assigns to it; false before
    /// its size is known.
    pub fn fits(&self, strip: usize, layout: &Layout) -> bool {
        let size = (layout.width(), layout.strip_rows(strip).len());
        self.strips.get(strip).is_some_and(|ReorderBuffer { concealer, .. }| {
            concealer.size() == Some(size) && concealer.cropped() == Some(layout.cropped(strip))
        })
    }

    /// Returns the WebCodecs codec string (RFC 6381) of the most demanding strip, such as
    /// `avc1.42C01F`; `None` before the first IDR.
    pub fn codec(&self) -> Option<String> {
        // The level comes last in the string, and all strips have the same profile.
        self.strips.iter().filter_map(|strip| strip.concealer.codec()).max()
    }

    /// Discards all slices and strip states of an earlier session; the counters stay.
    pub fn reset(&mut self) {
        self.strips = (0..Layout::STRIP_COUNT).map(|_| ReorderBuffer::new()).collect();
    }

    /// Returns the counts of slices since the start, over all sessions.
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
        // A picture further back is not reported.
        let before = |picture: Option<u32>| {
            u8::try_from(newest.wrapping_sub(picture?)).ok().filter(|before| *before < u8::MAX)
        };
        let (clean_before, lost_before) = (before(self.clean), before(lost));
        Some(StripReport { newest, clean_before, lost_before })
    }

    /// Returns the report for a strip that has shown nothing: its IDR counts as lost if a later
    /// slice has waited for the reorder timeout, or could not be shown. `None` otherwise.
    fn report_without_idr(&self, now: Instant) -> Option<StripReport> {
        let mut held = self.held.iter().rev();
        let waited = held.find(|(_, held)| now >= held.told_from).map(|(picture, _)| *picture);
        let newest = waited.or(self.unusable)?;
        Some(StripReport { newest, clean_before: None, lost_before: Some(1) })
    }

    /// Returns the newest missing picture whose wait was long enough to report it, if there is one.
    fn missing(&self, now: Instant) -> Option<u32> {
        let mut before = 0;
        let mut missing = None;
        for (picture, held) in &self.held {
            let Ok(parsed) = self.concealer.parse(&held.slice.bytes) else { continue };
            // Counted from the last slice shown, including held ones.
            let place = self.concealer.missing_before(&parsed) + 1;
            if place > before + 1 && now >= held.told_from {
                missing = Some(picture.wrapping_sub(1));
            }
            before = place;
        }
        missing
    }

    /// Returns the mean interval of pictures between the newest slice shown and `slice`, by their
    /// capture times; zero if none was shown.
    fn interval(&self, slice: &Slice) -> Duration {
        let Some((picture, captured_at)) = self.newest.zip(self.captured_at) else {
            return Duration::ZERO;
        };
        slice.captured_at.since(captured_at) / slice.picture.wrapping_sub(picture).max(1)
    }

    /// Shows held slices from the front: all that follow without a gap, or whose wait has ended.
    fn release(&mut self, now: Instant, counters: &mut Counters, show: &mut impl FnMut(Shown)) {
        while let Some((picture, first)) = self.held.pop_first() {
            if let Some(first) = self.show(first, now, counters, show) {
                self.held.insert(picture, first);
                return;
            }
        }
    }

    /// Shows a slice after skip slices for the missing ones before it; returns it if it has to wait
    /// for them. An unusable slice is counted and dropped.
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
        // After a lost IDR the encoder's count has restarted; the camera's count shows how many
        // slices are missing.
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
            // It refers to none of the received slices: an IDR before it was lost.
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

/// Maximum of waiting slices per strip, more than arrive within any sensible timeout; beyond it the
/// first is shown.
pub const HELD_MAX: usize = 16;
/// Number of slices shown after a loss beyond which a strip that is still corrupt requests an IDR:
/// one second at 60 per second, several times the duration of any recovery.
const RECOVERY_MAX: u32 = 60;

#[cfg(test)]
mod tests;
