//! Transfer of a strip from camera to encoder, row by row.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tautline_net::clock::Clock;
use tautline_units::Instant;
use tautline_video::{Layout, Picture, Rows};

use crate::load::Load;

/// A strip on its way from the sensor, row by row.
#[derive(Debug)]
pub struct Readout {
    /// Number of the picture, from 0.
    pub picture: u32,
    /// Number of the strip within its picture, counted from the top from 0.
    pub strip: usize,
    /// Layout of the picture.
    pub layout: Layout,
    /// Instant at which reading of the strip's first row began, by the sensor's own time: a thread
    /// that wakes late makes the picture older, not younger.
    pub captured_at: Instant,
    /// Newest guard tick when the picture was begun; 0 if none was known.
    pub tick: u32,
    progress: Receiver<Progress>,
    /// Buffer of the strip, once the encoder has received it from the camera; `None` before.
    rows: Option<Picture>,
    /// Number of rows read from the top so far.
    count: usize,
    read_at: Instant,
    begun_at: Option<Instant>,
    is_cut: bool,
    clock: Clock,
    /// Load of the encoder; dropping the readout removes the strip from it.
    load: Arc<Load>,
    /// Instant at which the encoder began the strip; `None` before.
    taken_at: Option<Instant>,
}

/// Message from the camera to the encoder about the reading of one strip.
#[derive(Debug)]
enum Progress {
    /// Buffer of the strip, handed over in full; none of its rows counts as read.
    Buffer(Picture),
    /// Number of rows read from the top, and the time of the last of them.
    Read { count: usize, at: Instant },
}

/// The camera's end of a [`Readout`].
#[derive(Debug)]
pub(crate) struct Source {
    progress: SyncSender<Progress>,
}

impl Readout {
    /// Creates a strip of a picture of `layout`, with no row read.
    ///
    /// # Panics
    /// If the layout has no such strip.
    pub(crate) fn new(
        (picture, strip): (u32, usize),
        (captured_at, tick): (Instant, u32),
        layout: Layout,
        load: Arc<Load>,
        clock: Clock,
    ) -> (Self, Source) {
        load.add();
        let (sender, progress) = sync_channel(1 + layout.strip_rows(strip).len() / BAND_ROWS);
        let readout = Self {
            picture,
            strip,
            layout,
            captured_at,
            tick,
            progress,
            rows: None,
            count: 0,
            read_at: captured_at,
            begun_at: None,
            is_cut: false,
            clock,
            load,
            taken_at: None,
        };
        (readout, Source { progress: sender })
    }

    /// Returns when the last row reported so far had been read; the capture time before the first.
    pub fn read_at(&self) -> Instant {
        self.read_at
    }

    /// Returns when the encoder had the first rows that it asked for; `None` before.
    pub fn begun_at(&self) -> Option<Instant> {
        self.begun_at
    }

    /// Returns whether the camera ended before the end of the strip.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the strip's buffer for reuse; `None` if the encoder asked for no rows.
    pub fn into_rows(mut self) -> Option<Picture> {
        self.rows.take()
    }
}

/// Removes the strip from the encoder's load. The time that it took is counted from the arrival of
/// its last row, or from when the encoder began it if that is later, until this drop.
impl Drop for Readout {
    fn drop(&mut self) {
        let taken_at = self.taken_at.filter(|_| !self.is_cut);
        self.load.remove(taken_at.map(|at| self.clock.now().since(at.max(self.read_at))));
    }
}

impl Rows for Readout {
    fn read(&mut self, count: usize) -> &Picture {
        self.taken_at.get_or_insert_with(|| self.clock.now());
        let height = self.layout.strip_rows(self.strip).len();
        let wanted = count.min(height);
        while self.rows.is_none() || self.count < wanted {
            match self.progress.recv() {
                Ok(Progress::Buffer(rows)) => self.rows = Some(rows),
                Ok(Progress::Read { count, at }) => (self.count, self.read_at) = (count, at),
                Err(_) => {
                    (self.count, self.is_cut) = (height, true);
                    break;
                }
            }
        }
        if count > 0 && self.begun_at.is_none() {
            self.begun_at = Some(self.clock.now());
        }
        self.rows.get_or_insert_with(|| {
            Picture::new(self.layout.width(), height)
                .expect("the layout's strips are valid pictures")
        })
    }
}

impl Source {
    /// Hands over the strip's filled buffer; its rows count as read only once they are
    /// [reported](Self::tell_read).
    pub(crate) fn hand_over(&self, rows: Picture) {
        self.tell(Progress::Buffer(rows));
    }

    /// Reports that the first `count` rows, a multiple of 16, have been read, the last of them at
    /// `at`.
    pub(crate) fn tell_read(&self, count: usize, at: Instant) {
        self.tell(Progress::Read { count, at });
    }

    fn tell(&self, progress: Progress) {
        // The queue has room for all messages of a picture, and an encoder that has ended needs
        // none.
        let _ = self.progress.try_send(progress);
    }
}

/// Number of rows passed on together, for encoders that code rows of macroblocks.
pub(crate) const BAND_ROWS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the layout of pictures whose strips have 32 by 48 pixels.
    fn layout() -> Layout {
        Layout::of(32, 288).unwrap()
    }

    fn strip(shade: u8) -> Picture {
        let mut picture = Picture::new(32, 48).unwrap();
        picture.planes_mut().0.fill(shade);
        picture
    }

    #[test]
    fn rows_are_there_as_they_are_read() {
        let clock = Clock::start();
        let (mut readout, source) =
            Readout::new((7, 2), (Instant::from_millis(5), 9), layout(), Arc::default(), clock);
        let fresh = strip(9);
        let place = fresh.luma().as_ptr();
        source.hand_over(fresh);
        assert_eq!(readout.read(0).width(), 32);
        assert_eq!(readout.begun_at(), None);
        source.tell_read(16, Instant::from_millis(6));
        source.tell_read(32, Instant::from_millis(7));
        assert_eq!(readout.read(1).luma(), strip(9).luma());
        assert_eq!((readout.read_at(), readout.is_cut()), (Instant::from_millis(6), false));
        assert!(readout.begun_at().is_some());
        readout.read(17);
        assert_eq!(readout.read_at(), Instant::from_millis(7));
        source.tell_read(48, Instant::from_millis(8));
        assert_eq!(readout.read(usize::MAX), &strip(9));
        assert_eq!((readout.read_at(), readout.is_cut()), (Instant::from_millis(8), false));
        // The sensor's own buffer, not a copy.
        assert_eq!(readout.into_rows().unwrap().luma().as_ptr(), place);
    }

    #[test]
    fn a_camera_that_ends_leaves_no_reader_waiting() {
        for is_filled in [true, false] {
            let (mut readout, source) =
                Readout::new((0, 0), (Instant::ZERO, 0), layout(), Arc::default(), Clock::start());
            if is_filled {
                source.hand_over(strip(4));
                source.tell_read(16, Instant::ZERO);
            }
            drop(source);
            let rows = readout.read(usize::MAX);
            assert_eq!((rows.width(), rows.height()), (32, 48));
            assert!(readout.is_cut());
        }
    }
}
