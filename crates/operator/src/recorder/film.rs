use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use axum::body::Bytes;
use tautline_video::avc::{Joiner, Shape};
use tautline_video::{Layout, SliceKind};

use super::Entry;
use super::output::Output;

/// A writer that joins the strips' slices to standard pictures in one file, if the strips say that
/// they can be.
///
/// A picture is written as soon as every strip has shown its slice of it or a later one. Of what a
/// strip never had, it shows the picture before. Memory: at most [`HELD_MAX`] pictures.
pub(super) struct Film {
    path: PathBuf,
    /// Made with the first picture: without one there is no file.
    file: Option<Output>,
    joiner: Option<Joiner>,
    strips: [Progress; Layout::STRIP_COUNT],
    /// Pictures of which slices may be to come, the oldest first.
    held: VecDeque<Held>,
    /// The newest picture that was written or given up.
    done: Option<u32>,
    told: bool,
    pub(super) counters: Counters,
}

/// What became of pictures and slices.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counters {
    /// Pictures in the file.
    pub(super) pictures: u64,
    /// Strips of them that had no slice and stand still.
    pub(super) still: u64,
    /// Slices that could not be joined.
    pub(super) unjoined: u64,
    /// Slices that came after their picture had been written.
    pub(super) late: u64,
}

#[derive(Clone, Copy, Default)]
struct Progress {
    stream: Stream,
    /// Picture of its newest slice.
    newest: Option<u32>,
}

/// What a strip's parameter sets say.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stream {
    #[default]
    Unknown,
    Ours(Shape),
    Foreign,
}

/// The slices of a picture that have been shown.
struct Held {
    picture: u32,
    slices: [Option<Bytes>; Layout::STRIP_COUNT],
}

impl Film {
    /// Makes a film that will be written to `path`.
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

    /// Takes the next slice shown of any strip.
    ///
    /// # Errors
    /// When the file cannot be written.
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
        // Within a session a strip's pictures follow each other, and are alike.
        let counts_anew = newest.is_some_and(|newest| !is_after(entry.picture, newest));
        if counts_anew || (stream != Stream::Unknown && begins != stream) {
            self.end_session()?;
        }
        self.strips[index] = Progress { stream: begins, newest: Some(entry.picture) };
        self.hold(entry);
        self.write_complete()
    }

    /// Writes what is held.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.end_session()?;
        let Counters { pictures, still, unjoined, late } = self.counters;
        if pictures > 0 && still + unjoined + late > 0 {
            tracing::info!(
                pictures,
                still,
                unjoined,
                late,
                "pictures recorded, not all of them whole"
            );
        }
        self.flush()
    }

    /// Hands what was taken so far to the system.
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
        // Mostly the last one.
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

    /// Returns the joiner, once every strip has told its shape.
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

    /// Tells why there is no film, once.
    fn tell(&mut self, error: &tautline_video::Error) {
        if !self.told {
            self.told = true;
            tracing::info!(%error, "strips are recorded one by one: a vehicle started with --joinable gives whole pictures too");
        }
    }
}

/// Returns whether picture `a` comes after picture `b`, on a counter that wraps.
fn is_after(a: u32, b: u32) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 31
}

/// Pictures that wait for a strip: a second at 60 a second, in which an IDR that was lost at the
/// beginning has long been asked for again.
pub(super) const HELD_MAX: usize = 60;
