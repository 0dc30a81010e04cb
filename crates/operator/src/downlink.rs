//! From received slices to slices to show: in order, without holes.

use std::collections::BTreeMap;
use std::time::Duration;

use tautline_units::Instant;
use tautline_video::{Concealer, Layout, Slice, SliceKind};

/// What happened to slices, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Shown as they came.
    pub shown: u64,
    /// Skip slices put in the place of lost ones.
    pub skipped: u64,
    /// Came after their place had been given up.
    pub overtaken: u64,
    /// Came before the strip's first IDR, or after a hole that only an IDR can close.
    pub unusable: u64,
    /// Were no slice at all.
    pub malformed: u64,
}

/// Puts each strip's slices in order, and skip slices in the place of lost ones.
///
/// A slice is shown at once if none is missing before it. If one is, it waits for `patience`, in
/// case the missing one is only late; then as many skip slices as are missing go before it, and
/// an IDR of the strip is asked for. Memory: at most [`HELD_MAX`] slices a strip.
#[derive(Debug)]
pub struct Downlink {
    strips: Vec<Strip>,
    patience: Duration,
    counters: Counters,
}

#[derive(Debug)]
struct Strip {
    concealer: Concealer,
    held: BTreeMap<u32, Held>,
    /// Picture of the newest slice shown.
    newest: Option<u32>,
}

#[derive(Debug)]
struct Held {
    slice: Slice,
    until: Instant,
}

impl Downlink {
    /// A downlink that has seen nothing yet.
    pub fn new(patience: Duration) -> Self {
        let strips = (0..Layout::STRIP_COUNT).map(|_| Strip::new()).collect();
        Self { strips, patience, counters: Counters::default() }
    }

    /// Takes a received unit; gives to `show` what can be shown now, in order.
    pub fn handle_unit(&mut self, unit: &[u8], now: Instant, mut show: impl FnMut(Slice)) {
        let slice = match Slice::parse(unit) {
            Ok(slice) if usize::from(slice.strip) < self.strips.len() => slice,
            Ok(_) | Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        let strip = &mut self.strips[usize::from(slice.strip)];
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
        if strip.held.len() == HELD_MAX {
            strip.release_first(&mut self.counters, &mut show);
        }
        strip.held.insert(slice.picture, Held { slice, until: now + self.patience });
        strip.release(now, &mut self.counters, &mut show);
    }

    /// When the next held slice loses its patience.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let held = self.strips.iter().filter_map(|strip| strip.held.first_key_value());
        held.map(|(_, held)| held.until).min()
    }

    /// Shows what has waited long enough.
    pub fn handle_timeout(&mut self, now: Instant, mut show: impl FnMut(Slice)) {
        for strip in &mut self.strips {
            strip.release(now, &mut self.counters, &mut show);
        }
    }

    /// The strips that need an IDR, as bits.
    pub fn refresh_strips(&self) -> u8 {
        let bit = |(index, strip): (usize, &Strip)| u8::from(strip.concealer.is_damaged()) << index;
        self.strips.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
    }

    /// Forgets what a former session sent.
    pub fn reset(&mut self) {
        self.strips = (0..Layout::STRIP_COUNT).map(|_| Strip::new()).collect();
    }

    /// What happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}

impl Strip {
    fn new() -> Self {
        Self { concealer: Concealer::new(), held: BTreeMap::new(), newest: None }
    }

    /// Shows from the front of what is held: all that follows without a hole, or waited enough.
    fn release(&mut self, now: Instant, counters: &mut Counters, show: &mut impl FnMut(Slice)) {
        while let Some((_, first)) = self.held.first_key_value() {
            let complete = matches!(self.concealer.missing_before(&first.slice.bytes), Ok(0));
            if !complete && now < first.until {
                return;
            }
            self.release_first(counters, show);
        }
    }

    fn release_first(&mut self, counters: &mut Counters, show: &mut impl FnMut(Slice)) {
        let Some((picture, held)) = self.held.pop_first() else { return };
        let slice = held.slice;
        let Ok(missing) = self.concealer.missing_before(&slice.bytes) else {
            counters.unusable += 1;
            return;
        };
        for place in 0..missing {
            let Some(bytes) = self.concealer.skip() else { break };
            counters.skipped += 1;
            let picture = picture.wrapping_sub(missing - place);
            show(Slice { picture, kind: SliceKind::Skip, bytes, ..slice });
        }
        let bytes = match self.concealer.pass(&slice.bytes) {
            Ok(Some(bytes)) => bytes.into_owned(),
            Ok(None) | Err(_) => {
                counters.unusable += 1;
                return;
            }
        };
        self.newest = Some(picture);
        counters.shown += 1;
        show(Slice { bytes, ..slice });
    }
}

/// Whether picture `a` comes after picture `b`, on a counter that wraps.
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// Slices of one strip that may wait: more than arrive within any sensible patience.
pub const HELD_MAX: usize = 16;

#[cfg(test)]
mod tests;
