use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tautline_net::clock::Clock;
use tautline_units::Instant;
use tautline_video::{Picture, Rows};

/// A strip on its way from the sensor, row by row.
#[derive(Debug)]
pub struct Readout {
    /// Number of the picture, from 0.
    pub picture: u32,
    /// Number of the strip within it, from the top.
    pub strip: usize,
    /// When the first of the rows began to be read, by the sensor's own time: a thread that wakes late
    /// makes the picture older, not younger.
    pub captured_at: Instant,
    bands: Receiver<Band>,
    rows: Picture,
    /// How many rows have come.
    count: usize,
    read_at: Instant,
    begun_at: Option<Instant>,
    is_cut: bool,
    clock: Clock,
}

/// Some rows, and when the last of them had been read.
#[derive(Debug)]
struct Band {
    rows: Picture,
    read_at: Instant,
}

/// The camera's end of a [`Readout`].
#[derive(Debug)]
pub(super) struct Source {
    bands: SyncSender<Band>,
}

impl Readout {
    /// A strip of which nothing has been read; `rows` is a buffer of its size.
    pub(super) fn new(
        (picture, strip): (u32, usize),
        captured_at: Instant,
        rows: Picture,
        clock: Clock,
    ) -> (Self, Source) {
        let (sender, bands) = sync_channel(rows.height() / BAND_ROWS);
        let readout = Self {
            picture,
            strip,
            captured_at,
            bands,
            rows,
            count: 0,
            read_at: captured_at,
            begun_at: None,
            is_cut: false,
            clock,
        };
        (readout, Source { bands: sender })
    }

    /// When the last of the rows that have come had been read.
    pub fn read_at(&self) -> Instant {
        self.read_at
    }

    /// When the encoder had the first rows that it waited for, if it has.
    pub fn begun_at(&self) -> Option<Instant> {
        self.begun_at
    }

    /// Whether the camera ended before the strip did.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The buffer, to be used again.
    pub fn into_rows(self) -> Picture {
        self.rows
    }
}

impl Rows for Readout {
    fn read(&mut self, count: usize) -> &Picture {
        let count = count.min(self.rows.height());
        while self.count < count {
            let Ok(band) = self.bands.recv() else {
                (self.count, self.is_cut) = (self.rows.height(), true);
                break;
            };
            self.rows.place(self.count, &band.rows).expect("bands come in order and fit");
            self.count += band.rows.height();
            self.read_at = band.read_at;
        }
        if count > 0 && self.begun_at.is_none() {
            self.begun_at = Some(self.clock.now());
        }
        &self.rows
    }
}

impl Source {
    /// Hands on some rows of `strip`, a multiple of 16, the last of them read at `read_at`.
    ///
    /// # Panics
    /// If the strip has no such rows.
    pub(super) fn hand_on(&self, strip: &Picture, rows: Range<usize>, read_at: Instant) {
        let rows = strip.rows(rows).expect("rows of the strip");
        // There is room for all; an encoder that ended lacks none.
        let _ = self.bands.try_send(Band { rows, read_at });
    }
}

/// Rows that are handed on together to an encoder that takes rows of macroblocks.
pub(super) const BAND_ROWS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(shade: u8) -> Picture {
        let mut picture = Picture::new(32, 48).unwrap();
        picture.planes_mut().0.fill(shade);
        picture
    }

    #[test]
    fn rows_are_there_as_they_are_read() {
        let clock = Clock::start();
        let (mut readout, source) = Readout::new((7, 2), Instant::from_millis(5), strip(0), clock);
        let fresh = strip(9);
        assert_eq!(readout.read(0).luma()[0], 0);
        assert_eq!(readout.begun_at(), None);
        source.hand_on(&fresh, 0..16, Instant::from_millis(6));
        source.hand_on(&fresh, 16..32, Instant::from_millis(7));
        assert_eq!(readout.read(1).luma()[..32 * 16], fresh.luma()[..32 * 16]);
        assert_eq!((readout.read_at(), readout.is_cut()), (Instant::from_millis(6), false));
        assert!(readout.begun_at().is_some());
        source.hand_on(&fresh, 32..48, Instant::from_millis(8));
        assert_eq!(readout.read(usize::MAX), &fresh);
        assert_eq!((readout.read_at(), readout.is_cut()), (Instant::from_millis(8), false));
    }

    #[test]
    fn a_camera_that_ends_leaves_nobody_waiting() {
        let (mut readout, source) = Readout::new((0, 0), Instant::ZERO, strip(3), Clock::start());
        source.hand_on(&strip(4), 0..16, Instant::ZERO);
        drop(source);
        readout.read(usize::MAX);
        assert!(readout.is_cut());
    }
}
