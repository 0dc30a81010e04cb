//! The recorder: what was received, as H.264 files that any decoder plays, and as MCAP.

mod film;
mod log;

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use axum::body::Bytes;
use tautline_units::Instant;
use tautline_video::{Layout, SliceKind};

use film::Film;
use log::Log;
pub use log::Unit;

/// A slice as it was shown, for the record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Number of the picture.
    pub picture: u32,
    /// Number of the strip.
    pub strip: u8,
    /// What kind of slice.
    pub kind: SliceKind,
    /// Start of the strip's readout, by the operator's clock.
    pub captured_at: Instant,
    /// When its bytes were complete at the vehicle, by the operator's clock.
    pub encoded_at: Instant,
    /// When it was handed to the console, by the operator's clock.
    pub shown_at: Instant,
    /// Whether the strip then was as its encoder had it.
    pub is_clean: bool,
    /// Annex B bytes, shared with the console's message.
    pub bytes: Bytes,
}

/// A recorder of each strip's stream to `strip-N.h264` and of a line a slice to `slices.csv`; of strips
/// that can be [joined](tautline_video::avc::Joiner), also of whole pictures to `picture.h264`; of every other unit
/// to `channels.mcap`, with what its channel carries.
///
/// Writing happens on a thread of its own; a disk too slow for it loses entries, which are
/// counted, and never holds up the video. Who reads along, or finds what a killed operator has left, lacks about a
/// second.
#[derive(Debug)]
pub struct Recorder {
    entries: Option<SyncSender<Item>>,
    thread: Option<JoinHandle<()>>,
    dropped: u64,
    units_dropped: u64,
}

enum Item {
    Slice(Entry),
    Unit(Unit),
}

impl Recorder {
    /// Makes `folder` if it is missing, and begins new files in it.
    ///
    /// # Errors
    /// When the folder or a file cannot be made.
    pub fn create(folder: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot record into {}", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        let strips = (0..Layout::STRIP_COUNT)
            .map(|strip| File::create(folder.join(format!("strip-{strip}.h264"))))
            .map(|file| file.map(BufWriter::new))
            .collect::<Result<Vec<_>, _>>()
            .with_context(cannot)?;
        let mut index =
            File::create(folder.join(INDEX)).map(BufWriter::new).with_context(cannot)?;
        writeln!(index, "{INDEX_HEAD}").with_context(cannot)?;
        // It is made with its first picture only; an older one would seem to be of these strips.
        match fs::remove_file(folder.join(PICTURES)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(cannot);
            }
            Ok(()) | Err(_) => {}
        }
        let film = Film::new(folder.join(PICTURES));
        let log = File::create(folder.join(CHANNELS)).and_then(Log::begin).with_context(cannot)?;
        let (entries, receiver) = sync_channel(ENTRIES_MAX);
        let thread = std::thread::Builder::new().name("recorder".into()).spawn(move || {
            if let Err(error) = write(&receiver, strips, index, film, log) {
                tracing::error!(%error, "the recording ends here");
            }
        })?;
        Ok(Self { entries: Some(entries), thread: Some(thread), dropped: 0, units_dropped: 0 })
    }

    /// Records a slice, or counts it as dropped when the disk is behind.
    pub fn record(&mut self, entry: Entry) {
        self.dropped += u64::from(!self.takes(Item::Slice(entry)));
    }

    /// Records a unit of another channel, or counts it as dropped when the disk is behind.
    pub fn record_unit(&mut self, unit: Unit) {
        self.units_dropped += u64::from(!self.takes(Item::Unit(unit)));
    }

    /// Returns the slices that the disk was too slow for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the units of other channels that it was too slow for.
    pub fn units_dropped(&self) -> u64 {
        self.units_dropped
    }

    fn takes(&self, item: Item) -> bool {
        self.entries.as_ref().is_some_and(|entries| entries.try_send(item).is_ok())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.entries = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(
    items: &Receiver<Item>,
    mut strips: Vec<BufWriter<File>>,
    mut index: BufWriter<File>,
    mut film: Film,
    mut log: Log,
) -> std::io::Result<()> {
    let mut flushed_at = Instant::ZERO;
    loop {
        let entry = match items.recv_timeout(FLUSHED_AFTER) {
            Ok(Item::Slice(entry)) => entry,
            Ok(Item::Unit(unit)) => {
                log.take(&unit)?;
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {
                flush(&mut strips, &mut index, &mut log)?;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let shown_at = entry.shown_at;
        if let Some(file) = strips.get_mut(usize::from(entry.strip)) {
            file.write_all(&entry.bytes)?;
        }
        let kind = match entry.kind {
            SliceKind::Idr => "idr",
            SliceKind::Predicted => "predicted",
            SliceKind::Skip => "skip",
        };
        writeln!(
            index,
            "{},{},{kind},{},{},{},{},{}",
            entry.picture,
            entry.strip,
            entry.captured_at.as_micros(),
            entry.encoded_at.as_micros(),
            entry.shown_at.as_micros(),
            entry.bytes.len(),
            u8::from(entry.is_clean)
        )?;
        film.take(entry)?;
        if shown_at.since(flushed_at) >= FLUSHED_AFTER {
            flushed_at = shown_at;
            flush(&mut strips, &mut index, &mut log)?;
        }
    }
    flush(&mut strips, &mut index, &mut log)?;
    log.finish()?;
    film.finish()
}

fn flush(
    strips: &mut [BufWriter<File>],
    index: &mut BufWriter<File>,
    log: &mut Log,
) -> std::io::Result<()> {
    strips.iter_mut().try_for_each(Write::flush)?;
    index.flush()?;
    log.flush()
}

/// The file with a line a slice.
pub const INDEX: &str = "slices.csv";
/// Its first line.
pub const INDEX_HEAD: &str = "picture,strip,kind,captured_us,encoded_us,shown_us,bytes,clean";
/// The file with whole pictures.
pub const PICTURES: &str = "picture.h264";
/// The file with the units of all channels but the video's.
pub const CHANNELS: &str = "channels.mcap";
/// A second and a half of slices at 60 pictures a second.
const ENTRIES_MAX: usize = 512;
/// How much of a record is in memory alone.
const FLUSHED_AFTER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
