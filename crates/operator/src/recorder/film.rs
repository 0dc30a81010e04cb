use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use axum::body::Bytes;
use tautline_video::avc::{Joiner, Shape};
use tautline_video::{Layout, SliceKind};

use super::entry::Entry;
use super::output::Output;

/// Writer that joins the strips' slices to standard pictures in one file, if the strips allow it.
///
/// A picture is written as soon as every strip has shown its slice of this or a later picture. A
/// strip without a slice repeats its previous picture. Pictures due before every strip's shape is
/// known are left out. Memory: at most [`HELD_MAX`] pictures, beyond which the oldest is written.
pub(super) struct Film {
    path: PathBuf,
    /// Output file, created with the first picture, so without pictures there is none.
    file: Option<Output>,
    joiner: Option<Joiner>,
    strips: [Progress; Layout::STRIP_COUNT],
    /// Pictures with slices possibly still to come, the oldest first.
    held: VecDeque<Held>,
    /// Number of the newest picture that was written or given up; `None` before the first.
    done: Option<u32>,
    told: bool,
    pub(super) counters: Counters,
}

/// Counts of recorded pictures and of slices missing in them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counters {
    /// Pictures written to the file, with or without strips that stand still.
    pub(super) pictures: u64,
    /// Strips without a slice in the recorded pictures, which repeat the previous picture.
    pub(super) still: u64,
    /// Slices that could not be joined into a picture.
    pub(super) unjoined: u64,
    /// Slices that arrived after their picture was written or given up.
    pub(super) late: u64,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    stream: Stream,
    /// Number of the picture of the strip's newest slice; `None` before the first.
    newest: Option<u32>,
}

/// Kind of a strip's stream, by the parameter sets of its newest IDR: unknown before one, joinable,
/// or not.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Unknown,
    Ours(Shape),
    Foreign,
}

/// Slices of a picture that have been shown.
struct Held {
    picture: u32,
    slices: [Option<Bytes>; Layout::STRIP_COUNT],
}

impl Film {
    /// Creates a writer to `path`; the file is created with the first picture.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            joiner: None,
            strips: Default::default(),
            held: VecDeque::new(),
            done: None,
            told: false,
            counters: Counters::default(),
        }
    }

    /// Takes the next shown slice of any strip, and writes the pictures that it completes. A strip
    /// whose numbers go back or whose shape changes ends the session: held pictures are written
    /// first.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn take(&mut self, entry: Entry) -> io::Result<()> {
        let index = usize::from(entry.strip);
        let Some(&Progress { stream, newest }) = self.strips.get(index) else { return Ok(()) };
        let begins = match entry.kind {
            SliceKind::Idr => match Shape::read(&entry.bytes) {
                Ok(shape) => Stream::Ours(shape),
                Err(error) => {
                    self.tell(&error);
                    Stream::Foreign
                }
            },
            SliceKind::Predicted | SliceKind::Skip => stream,
        };
        // Within a session a strip's pictures are in order and of the same shape.
        let counts_anew = newest.is_some_and(|newest| !is_after(entry.picture, newest));
        if counts_anew || (stream != Stream::Unknown && begins != stream) {
            self.end_session()?;
        }
        self.strips[index] = Progress { stream: begins, newest: Some(entry.picture) };
        self.hold(entry);
        self.write_complete()
    }

    /// Writes the held pictures and the buffered data. Logs the counts if recorded pictures are
    /// incomplete.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.end_session()?;
        let Counters { pictures, still, unjoined, late } = self.counters;
        if pictures > 0 && still + unjoined + late > 0 {
            tracing::info!(
                pictures,
                still,
                unjoined,
                late,
                "recorded pictures; some are incomplete"
            );
        }
        self.flush()
    }

    /// Writes the buffered data to the system.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Output::flush)
    }

    fn end_session(&mut self) -> io::Result<()> {
        while !self.held.is_empty() {
            self.write_first()?;
        }
        (self.strips, self.joiner, self.done) = (Default::default(), None, None);
        Ok(())
    }

    fn hold(&mut self, entry: Entry) {
        if self.done.is_some_and(|done| !is_after(entry.picture, done)) {
            self.counters.late += 1;
            return;
        }
        // Searched from the end: the picture usually is the last one, or comes after it.
        let before =
            |held: &Held| held.picture == entry.picture || is_after(entry.picture, held.picture);
        let place = self.held.iter().rposition(before).map_or(0, |place| place + 1);
        let place = match place.checked_sub(1) {
            Some(last) if self.held[last].picture == entry.picture => last,
            _ => {
                let held = Held { picture: entry.picture, slices: Default::default() };
                self.held.insert(place, held);
                place
            }
        };
        self.held[place].slices[usize::from(entry.strip)] = Some(entry.bytes);
    }

    fn write_complete(&mut self) -> io::Result<()> {
        while let Some(first) = self.held.front() {
            let is_past = |strip: &Progress| {
                strip.newest.is_some_and(|newest| !is_after(first.picture, newest))
            };
            if !self.strips.iter().all(is_past) && self.held.len() <= HELD_MAX {
                break;
            }
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(Held { picture, slices }) = self.held.pop_front() else { return Ok(()) };
        self.done = Some(picture);
        let units = slices.each_ref().map(Option::as_deref);
        let given = units.iter().flatten().count() as u64;
        let joined = self.joiner().and_then(|joiner| joiner.join(&units).ok());
        let Some(joined) = joined else {
            self.counters.unjoined += given;
            return Ok(());
        };
        self.counters.pictures += 1;
        self.counters.still += units.len() as u64 - given;
        self.counters.unjoined += joined.refused as u64;
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Output::new(File::create(&self.path)?)),
        };
        file.append(&joined.bytes)
    }

    /// Returns the joiner; `None` until the shape of every strip is known, or if the strips cannot
    /// be joined.
    fn joiner(&mut self) -> Option<&mut Joiner> {
        if self.joiner.is_none() {
            let shapes = self.strips.iter().map(|strip| match strip.stream {
                Stream::Ours(shape) => Some(shape),
                Stream::Unknown | Stream::Foreign => None,
            });
            match Joiner::new(&shapes.collect::<Option<Vec<_>>>()?) {
                Ok(joiner) => self.joiner = Some(joiner),
                Err(error) => self.tell(&error),
            }
        }
        self.joiner.as_mut()
    }

    /// Logs once why there is no file with complete pictures.
    fn tell(&mut self, error: &tautline_video::Error) {
        if !self.told {
            self.told = true;
            tracing::info!(%error, "strips are recorded separately: start the vehicle with \
                                    --joinable to get complete pictures too");
        }
    }
}

/// Returns whether picture `a` comes after picture `b`, on a counter that wraps.
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// Maximum number of pictures that wait for a strip, beyond which the oldest is written as it is:
/// one second at 60 per second. By then a lost first IDR has been requested again.
pub(super) const HELD_MAX: usize = 60;
