use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tautline_units::{ByteCount, Instant};

use super::line::{HEAD, Line};
use super::sample::Sample;
use crate::LogLimit;
use crate::clock::Clock;

/// A writer of samples into consecutive files of a folder; the oldest are deleted to limit the
/// total size.
///
/// A separate thread writes. The caller never waits: if the disk is too slow or full, samples are
/// lost. The loss is counted here and in the next line written. Samples reach the kernel within a
/// moment, so that a killed process loses next to nothing.
#[derive(Debug)]
pub struct Log {
    lines: Option<SyncSender<Line>>,
    thread: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
    /// Number of lost samples that no queued line records yet.
    untold: u64,
}

impl Log {
    /// Creates `folder` if it is missing, and begins a new file in it; all files together are
    /// limited to `bytes_max`.
    ///
    /// # Errors
    /// One line: the folder or a file in it cannot be created.
    pub fn open(folder: &Path, bytes_max: ByteCount, clock: Clock) -> anyhow::Result<Self> {
        let mut files = Files::open(folder, bytes_max)
            .with_context(|| format!("cannot write latency files into {}", folder.display()))?;
        let lost: Arc<AtomicU64> = Arc::default();
        let counted = lost.clone();
        let (lines, receiver) = sync_channel(LINES_MAX);
        let write = move || files.write_all(&receiver, &counted, clock);
        let thread = std::thread::Builder::new().name("latency".into()).spawn(write)?;
        Ok(Self { lines: Some(lines), thread: Some(thread), lost, untold: 0 })
    }

    /// Opens the log as [`open`](Self::open) does, after deleting the existing files in `folder`.
    ///
    /// # Errors
    /// Same as [`open`](Self::open), and when an old file cannot be removed.
    pub fn begin_anew(folder: &Path, bytes_max: ByteCount, clock: Clock) -> anyhow::Result<Self> {
        for (_, file) in files_in(folder).unwrap_or_default() {
            fs::remove_file(&file).with_context(|| format!("cannot remove {}", file.display()))?;
        }
        Self::open(folder, bytes_max, clock)
    }

    /// Queues a sample for writing, or counts it as lost if the disk is behind.
    pub fn note(&mut self, sample: Sample) {
        let line = Line { sample, lost: self.untold };
        match self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok()) {
            true => self.untold = 0,
            false => self.lose(1),
        }
    }

    /// Counts samples that were lost before they reached the log.
    pub fn lose(&mut self, samples: u64) {
        self.untold = self.untold.saturating_add(samples);
        self.lost.fetch_add(samples, Ordering::Relaxed);
    }

    /// Returns the number of samples lost since the log was opened.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Files of a folder; the newest is open for writing.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    bytes_max: u64,
    /// Path of the newest file.
    path: PathBuf,
    newest: Option<BufWriter<File>>,
    bytes: u64,
    /// Time of the next attempt after a failed write.
    retry_at: Instant,
    /// Number of lost samples that no written line records yet.
    untold: u64,
    /// Number of lines not yet passed to the kernel, and of the lost samples that those lines
    /// record.
    unsure: (u64, u64),
    text: String,
    limit: LogLimit,
}

impl Files {
    fn open(folder: &Path, bytes_max: ByteCount) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut files = Self {
            folder: folder.to_owned(),
            bytes_max: bytes_max.get(),
            path: PathBuf::new(),
            newest: None,
            bytes: 0,
            retry_at: Instant::ZERO,
            untold: 0,
            unsure: (0, 0),
            text: String::new(),
            limit: LogLimit::default(),
        };
        files.begin()?;
        Ok(files)
    }

    fn write_all(&mut self, lines: &Receiver<Line>, lost: &AtomicU64, clock: Clock) {
        while let Ok(line) = lines.recv() {
            let mut waiting = Some(line);
            while let Some(line) = waiting.take().or_else(|| lines.try_recv().ok()) {
                self.take(line, lost, clock.now());
            }
            if let Err(error) = self.flush() {
                self.give_up(&error, lost, clock.now());
            }
        }
        if self.newest.is_some() && self.bytes == HEAD_BYTES {
            // The file contains no samples, so it is removed.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Writes a line, or counts it as lost.
    fn take(&mut self, mut line: Line, lost: &AtomicU64, now: Instant) {
        let told = line.lost;
        line.lost = told.saturating_add(self.untold);
        match self.write(&line, now) {
            Ok(true) => {
                let (lines, of_them) = self.unsure;
                self.unsure = (lines + 1, of_them.saturating_add(line.lost));
                self.untold = 0;
                return;
            }
            Ok(false) => {}
            Err(error) => self.give_up(&error, lost, now),
        }
        self.untold = self.untold.saturating_add(told).saturating_add(1);
        lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends a line to the buffer of the newest file, or of a new one if there is none or the
    /// line does not fit; returns `false` while writing is suspended. After an error the caller
    /// must suspend it with `give_up`.
    fn write(&mut self, line: &Line, now: Instant) -> io::Result<bool> {
        if self.newest.is_none() && now < self.retry_at {
            return Ok(false);
        }
        self.text.clear();
        line.write(&mut self.text);
        let bytes = self.text.len() as u64;
        if self.newest.is_none() || self.bytes + bytes > self.bytes_max / PARTS {
            self.begin()?;
        }
        if let Some(newest) = &mut self.newest {
            newest.write_all(self.text.as_bytes())?;
            self.bytes += bytes;
        }
        Ok(true)
    }

    /// Passes the buffered lines to the kernel.
    fn flush(&mut self) -> io::Result<()> {
        self.newest.as_mut().map_or(Ok(()), BufWriter::flush)?;
        self.unsure = (0, 0);
        Ok(())
    }

    /// Abandons the newest file after an error; lines not passed to the kernel count as lost.
    fn give_up(&mut self, error: &io::Error, lost: &AtomicU64, now: Instant) {
        if let Some(left_out) = self.limit.take(now) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, left_out, "cannot write latency files for now");
        }
        if let Some(newest) = self.newest.take() {
            // A regular drop would retry the write.
            drop(newest.into_parts());
        }
        let (lines, told) = std::mem::take(&mut self.unsure);
        self.untold = self.untold.saturating_add(lines).saturating_add(told);
        lost.fetch_add(lines, Ordering::Relaxed);
        self.retry_at = now + RETRY_PAUSE;
    }

    /// Begins the next file, and removes the oldest ones beyond the limits.
    fn begin(&mut self) -> io::Result<()> {
        self.flush()?;
        let old = files_in(&self.folder)?;
        let length = |file: &Path| fs::metadata(file).map_or(0, |about| about.len());
        let mut all: u64 = old.iter().map(|(_, file)| length(file)).sum();
        for (at, (_, file)) in old.iter().enumerate() {
            if all + self.bytes_max / PARTS <= self.bytes_max && old.len() - at < FILES_MAX {
                break;
            }
            all -= length(file);
            fs::remove_file(file)?;
        }
        let number = old.last().map_or(0, |(number, _)| *number).saturating_add(1);
        self.path = self.folder.join(format!("{FILE_PREFIX}{number:06}{FILE_SUFFIX}"));
        // Another process that writes here keeps its own file.
        let mut newest = BufWriter::new(File::create_new(&self.path)?);
        if let Err(error) = writeln!(newest, "{HEAD}").and_then(|()| newest.flush()) {
            // Repeated attempts on a full disk must not fill the folder with empty files.
            drop(newest.into_parts());
            let _ = fs::remove_file(&self.path);
            return Err(error);
        }
        (self.newest, self.bytes) = (Some(newest), HEAD_BYTES);
        Ok(())
    }
}

/// Returns the files of latency in `folder` with their numbers, the oldest first.
///
/// # Errors
/// When the folder cannot be read.
pub fn files_in(folder: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            name.strip_prefix(FILE_PREFIX)?.strip_suffix(FILE_SUFFIX)?.parse().ok()
        });
        if let Some(number) = number {
            files.push((number, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Prefix of each file's name; a number of six digits or more follows.
pub const FILE_PREFIX: &str = "latency-";
/// Suffix of each file's name.
pub const FILE_SUFFIX: &str = ".csv";
/// Maximum of queued lines, beyond which samples are lost: more than two seconds of sixteen links
/// at a ping every 20 ms.
const LINES_MAX: usize = 2_048;
/// Minimum number of files that share the total size: each takes at most this fraction of it, so
/// that little is lost with the oldest.
const PARTS: u64 = 8;
/// Maximum number of files, even small ones: repeated restarts must not fill a folder.
const FILES_MAX: usize = 1_000;
const HEAD_BYTES: u64 = HEAD.len() as u64 + 1;
/// Interval of attempts to write after a failure, as on a full disk.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::super::{Leg, read};
    use super::*;

    fn sample(number: u64) -> Sample {
        Sample {
            leg: Leg::SwitchboardVehicle,
            peer: "rover".into(),
            link: "".into(),
            sent_at: Duration::from_millis(number),
            seen_at: None,
            back_at: Duration::from_millis(number + 7),
            held: Duration::ZERO,
            one_way: None,
        }
    }

    /// Returns a file that refuses all writes, as on a full disk.
    fn full() -> File {
        File::options().write(true).open("/dev/full").unwrap()
    }

    /// Returns the times of all samples in the folder, and the number of losses they record.
    fn written(folder: &Path) -> (Vec<u128>, u64) {
        let (mut times, mut lost) = (Vec::new(), 0);
        for (_, file) in files_in(folder).unwrap() {
            read(BufReader::new(File::open(file).unwrap()), |_, line| {
                let line = line.unwrap();
                times.push(line.sample.sent_at.as_millis());
                lost += line.lost;
            })
            .unwrap();
        }
        (times, lost)
    }

    #[test]
    fn noted_samples_are_on_disk_and_each_process_has_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/new/one");
        for round in 0..3 {
            let mut log = Log::open(&place, ByteCount::new(1 << 20), Clock::start()).unwrap();
            for number in 0..5 {
                log.note(sample(round * 100 + number));
            }
            log.lose(2);
            log.note(sample(round * 100 + 5));
            assert_eq!(log.lost(), 2);
        }
        // A log without samples leaves no file, and two at once use separate files.
        let both = [(); 2].map(|()| Log::open(&place, ByteCount::new(1 << 20), Clock::start()));
        assert_eq!(files_in(&place).unwrap().len(), 5);
        drop(both);
        let numbers: Vec<u32> = files_in(&place).unwrap().iter().map(|(at, _)| *at).collect();
        assert_eq!(numbers, [1, 2, 3]);
        let expected: Vec<u128> =
            (0..3).flat_map(|round| (0..6).map(move |at| round * 100 + at)).collect();
        assert_eq!(written(&place), (expected, 6));
        drop(Log::begin_anew(&place, ByteCount::new(1 << 20), Clock::start()).unwrap());
        assert_eq!(written(&place), (Vec::new(), 0));
    }

    #[test]
    fn all_files_stay_within_their_bound_by_deleting_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let most = 16 * 1_024;
        let mut files = Files::open(folder.path(), ByteCount::new(most)).unwrap();
        let lost = AtomicU64::new(0);
        for number in 0..2_000 {
            files.take(Line { sample: sample(number), lost: 0 }, &lost, Instant::ZERO);
            if number % 50 == 0 {
                files.flush().unwrap();
                let of = |(_, file): (u32, PathBuf)| fs::metadata(file).unwrap().len();
                let all: u64 = files_in(folder.path()).unwrap().into_iter().map(of).sum();
                assert!(all <= most, "{all}");
            }
        }
        files.flush().unwrap();
        let (times, told) = written(folder.path());
        assert_eq!((times.last(), told, lost.into_inner()), (Some(&1_999), 0, 0));
        assert!(times.len() > 100 && times.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }

    #[test]
    fn a_slow_disk_never_blocks_and_the_next_line_counts_the_loss() {
        let (lines, slow) = sync_channel(2);
        let mut log = Log { lines: Some(lines), thread: None, lost: Arc::default(), untold: 0 };
        for number in 0..5 {
            log.note(sample(number));
        }
        assert_eq!(log.lost(), 3);
        assert_eq!([slow.recv().unwrap().lost, slow.recv().unwrap().lost], [0, 0]);
        log.note(sample(5));
        let line = slow.recv().unwrap();
        assert_eq!((line.sample, line.lost, log.lost()), (sample(5), 3, 3));
    }

    #[test]
    fn samples_lost_on_a_full_disk_are_counted_in_the_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path(), ByteCount::new(1 << 20)).unwrap();
        files.newest = Some(BufWriter::with_capacity(1, full()));
        let (lost, second) = (AtomicU64::new(0), Duration::from_secs(1));
        for (number, at) in [(1, 1), (2, 2), (3, 11), (4, 11)] {
            let line = Line { sample: sample(number), lost: 0 };
            files.take(line, &lost, Instant::ZERO + second * at);
        }
        files.flush().unwrap();
        assert_eq!(lost.into_inner(), 2);
        assert_eq!(written(folder.path()), (vec![3, 4], 2));
    }

    #[test]
    fn a_disk_full_at_flush_counts_its_lines_as_lost() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Files::open(folder.path(), ByteCount::new(1 << 20)).unwrap();
        files.newest = Some(BufWriter::new(full()));
        let (sender, receiver) = sync_channel(8);
        let lost = AtomicU64::new(0);
        for number in 0..5 {
            sender.send(Line { sample: sample(number), lost: 1 }).unwrap();
        }
        drop(sender);
        files.write_all(&receiver, &lost, Clock::start());
        assert_eq!((lost.into_inner(), files.untold), (5, 10));
    }

    #[test]
    fn an_invalid_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("taken");
        fs::write(&file, "").unwrap();
        let told = Log::open(&file, ByteCount::new(1 << 20), Clock::start()).unwrap_err();
        assert!(format!("{told:#}").starts_with("cannot write latency files into /"), "{told:#}");
    }
}
