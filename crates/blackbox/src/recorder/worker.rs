//! The recorder's thread: decides when a drive begins and ends, and which records are written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use serde_json::{Value, json};
use tautline_guard::{Mode, Transition};
use tautline_units::Instant;

use super::ring::Ring;
use super::{DISK_ENDED, Item, Shared, Taken};
use crate::body::{self, SOFTWARE};
use crate::film::{Film, Sealed, Sink};
use crate::recording::End;
use crate::topic::Fact;
use crate::{Config, Error, Note, Recording, Signer, Topic, drives, note, utc};

/// Storage of drives: a folder, or its replacement in tests.
pub(super) trait Disk: Send + 'static {
    type File: Sink + Send;

    /// Checks the disk; fails if it is not writable or lacks the room for a drive with one stop.
    fn look(&mut self) -> io::Result<()>;

    /// Begins the next drive, with a number above `after`; returns its number.
    fn begin(&mut self, after: u32) -> io::Result<u32>;

    /// Creates the file of part `part` of the drive begun last.
    fn create(&mut self, part: u32) -> io::Result<Self::File>;

    /// Deletes the file created last, which has no signature.
    fn discard(&mut self, part: u32);

    /// Returns the newest signature of the newest file that an earlier process wrote; `None` if
    /// there is none.
    fn previous(&mut self) -> Option<Previous>;

    /// Returns the note that an earlier process wrote about its newest file; `None` if there is
    /// none with a valid signature.
    fn noted(&mut self) -> Option<Note> {
        None
    }

    /// Writes the note about the newest file.
    fn note(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    /// Returns the number of the oldest existing drive; `None` without drives.
    fn oldest(&mut self) -> Option<u32> {
        None
    }

    /// Returns the number of the oldest drive to keep under the settings, if older ones exist.
    fn kept_from(&mut self, _unix_nanos: u64) -> Option<u32> {
        None
    }

    /// Deletes the drives with numbers below `number`.
    fn delete_below(&mut self, _number: u32) {}
}

/// Newest signature of the newest file that has one.
#[derive(Clone, Debug)]
pub(super) struct Previous {
    drive: u32,
    part: u32,
    sealed: Sealed,
    is_closed: bool,
    /// Public key by which the signature was made, 64 hexadecimal digits.
    key: String,
    /// Number of the oldest drive not deleted by the settings when the file began; `None` if the
    /// file does not contain it.
    kept_from: Option<u32>,
}

/// A folder that contains one folder per drive.
#[derive(Debug)]
pub(super) struct Folder {
    config: Config,
    drive: Option<PathBuf>,
}

/// State of the recorder's thread, which writes drives to `disk`.
pub(super) struct Worker<D: Disk> {
    disk: D,
    config: Config,
    signer: Signer,
    /// Unix time of [`Instant::ZERO`], in nanoseconds.
    unix_nanos: u64,
    shared: Arc<Shared>,
    ring: Ring,
    facts: BTreeMap<Fact, String>,
    previous: Option<Previous>,
    /// Number of the oldest drive not deleted by the settings.
    kept_from: u32,
    /// `true` while the note about the newest file must be written.
    is_note_due: bool,
    /// Size in bytes after which the next part begins.
    pub(super) part_bytes: u64,
    /// Time of the next search for drives that the settings no longer keep.
    prune_at: Instant,
    drive: Option<Drive<D::File>>,
    /// Time of the next check of the disk, while there is no drive.
    look_at: Instant,
    /// `true` if the last check of the disk failed.
    is_unfit: bool,
    /// Time of the last item that the recorder has passed.
    now: Instant,
}

/// A value whose drop reports that the recorder's thread has ended, also by a panic.
struct Ending(Arc<Shared>);

/// A drive being recorded.
struct Drive<F> {
    /// Number of the drive; `None` while the disk refuses to create its folder.
    number: Option<u32>,
    part: u32,
    /// Writer of the drive's current file; `None` while the disk refuses to create one.
    film: Option<Film<F>>,
    /// Time of the next attempt to create a file, while `film` is `None`.
    retry_at: Instant,
    /// Time until which the drive continues at least, as does its full recording after a stop.
    full_until: Instant,
    /// `true` while every step is written, not only samples.
    is_full: bool,
    sampled_at: Instant,
    synced_at: Instant,
    /// Total size in bytes of the files of this drive before the current one.
    bytes: u64,
    begun_at: Instant,
}

impl<D: Disk> Worker<D> {
    pub(super) fn new(
        disk: D,
        config: Config,
        signer: Signer,
        unix_nanos: u64,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            disk,
            config,
            signer,
            unix_nanos,
            shared,
            ring: Ring::default(),
            facts: BTreeMap::new(),
            previous: None,
            kept_from: 1,
            is_note_due: false,
            part_bytes: PART_BYTES,
            prune_at: Instant::ZERO,
            drive: None,
            look_at: Instant::ZERO,
            is_unfit: false,
            now: Instant::ZERO,
        }
    }

    /// Processes items until all senders are gone, and then ends the drive.
    pub(super) fn run(mut self, items: &Receiver<Item>) {
        let _ending = Ending(Arc::clone(&self.shared));
        self.look_back();
        while let Ok(item) = items.recv() {
            match item {
                Item::Step(taken) => self.handle_step(taken),
                Item::Fact(fact, text, now) => self.handle_fact(fact, text, now),
            }
        }
        self.end("the process ended");
    }

    /// Determines the newest signature before this process, and the oldest drive that is kept. The
    /// note overrides the files where it is newer.
    fn look_back(&mut self) {
        let own = self.signer.public();
        let oldest = self.disk.oldest().unwrap_or(1);
        self.previous = self.disk.previous();
        let of_files = self.previous.as_ref().filter(|previous| previous.key == own);
        let told = of_files.and_then(|previous| previous.kept_from);
        let noted = self.disk.noted().filter(|note| note.key == own);
        let noted_from = noted.as_ref().map(|note| note.kept_from);
        self.kept_from = told.max(noted_from).unwrap_or(oldest);
        let Some(note) = noted else { return };
        let place = |previous: &Previous| (previous.drive, previous.part, previous.sealed.records);
        let is_newer = (note.drive, note.part, note.sealed.records);
        if self.previous.as_ref().map(place) < Some(is_newer) {
            let (drive, part) = (note.drive, note.part);
            tracing::error!(
                drive,
                part,
                "the newest file of the black box is missing or was shortened"
            );
            let Note { sealed, is_closed, key, kept_from, .. } = note;
            let kept_from = Some(kept_from);
            self.previous = Some(Previous { drive, part, sealed, is_closed, key, kept_from });
        }
    }

    fn handle_fact(&mut self, fact: Fact, text: String, now: Instant) {
        self.now = now;
        // The machine must not change the configured one.
        let is_configured = fact == Fact::Vehicle && self.config.vin.is_some();
        let is_known = self.facts.contains_key(&fact) && is_configured;
        if is_known || self.facts.get(&fact) == Some(&text) {
            return;
        }
        let body = said(&text);
        self.facts.insert(fact, text);
        self.put(Topic::Fact(fact), &body);
    }

    pub(super) fn handle_step(&mut self, taken: Taken) {
        let step = taken.step;
        self.now = step.at;
        let transition = step.output.transition;
        if self.drive.is_none() && transition.is_some() {
            self.begin();
        }
        let Some(drive) = &mut self.drive else {
            self.ring.push(taken, self.config.before());
            self.look();
            return;
        };
        if transition.as_ref().is_some_and(is_stop) || transition.is_some() && !drive.is_full {
            drive.full_until = drive.full_until.max(step.at + self.config.after());
        }
        let begins = !drive.is_full
            && (self.config.between().is_none() || transition.as_ref().is_some_and(is_stop));
        if begins {
            drive.is_full = true;
            self.put_ring();
        }
        if transition.is_some() {
            self.put(Topic::Transition, &body::step(&step));
        }
        self.put_step(taken);
        self.sync(transition.is_some());
        self.retry();
        let is_over = self.drive.as_ref().is_some_and(|drive| step.at >= drive.full_until);
        if is_over && step.output.status.mode == Mode::Held {
            self.end("the machine was held");
        }
    }

    /// Checks whether the next drive can be recorded, so that a person knows before it begins.
    fn look(&mut self) {
        if self.now < self.look_at {
            return;
        }
        self.look_at = self.now + RETRY_EVERY;
        let seen = self.disk.look();
        match &seen {
            Err(error) if !self.is_unfit => {
                tracing::error!(%error, "the black box cannot record");
            }
            Ok(()) if self.is_unfit => tracing::info!("the black box can record again"),
            Ok(()) | Err(_) => {}
        }
        // A fault found by writing stays until a write succeeds.
        if self.is_unfit || seen.is_err() {
            self.shared.set_disk(seen.as_ref().err());
        }
        self.is_unfit = seen.is_err();
    }

    /// Writes a step in full. Outside full recording, writes a sample if one is due, and keeps
    /// every step for a stop that may follow. At a snapshot, first begins the next part or ends
    /// full recording if that is due.
    fn put_step(&mut self, taken: Taken) {
        if taken.before.is_some() {
            self.turn();
        }
        let Some(drive) = &mut self.drive else { return };
        let step = taken.step;
        let is_past = step.at >= drive.full_until && self.config.between().is_some();
        // Full recording ends at the snapshot where the buffer for the next stop begins.
        if drive.is_full && is_past && taken.before.is_some() {
            drive.is_full = false;
            self.ring.clear();
        }
        if drive.is_full {
            self.put_full(&taken);
            return;
        }
        let between = self.config.between().unwrap_or_default();
        let is_due = step.at.since(drive.sampled_at) >= between;
        if is_due {
            drive.sampled_at = step.at;
        }
        self.ring.push(taken, self.config.before());
        if is_due {
            self.put(Topic::Sample, &body::step(&step));
        }
    }

    fn put_full(&mut self, taken: &Taken) {
        if let Some(guard) = &taken.before {
            self.put_at(Topic::Snapshot, &body::snapshot(guard, &taken.step), taken.step.at);
        }
        self.put_at(Topic::Step, &body::step(&taken.step), taken.step.at);
    }

    /// Writes the buffered steps before a stop.
    fn put_ring(&mut self) {
        let steps: Vec<Taken> = self.ring.drain().collect();
        steps.iter().for_each(|taken| self.put_full(taken));
    }

    /// Ends the part if it has reached `part_bytes`, and begins the next one. Called at a snapshot,
    /// so that each part can be replayed.
    fn turn(&mut self) {
        let film = self.drive.as_ref().and_then(|drive| drive.film.as_ref());
        if film.is_none_or(|film| film.length() < self.part_bytes) {
            return;
        }
        self.put_end("continues in the next part");
        self.seal(true);
        if let Some(drive) = &mut self.drive {
            drive.bytes += drive.film.take().map_or(0, |film| film.length());
            drive.retry_at = self.now;
        }
        self.retry();
    }

    fn begin(&mut self) {
        let now = self.now;
        self.prune();
        self.drive = Some(Drive {
            number: None,
            part: 0,
            film: None,
            retry_at: now,
            full_until: now + self.config.after(),
            is_full: false,
            sampled_at: now,
            synced_at: now,
            bytes: 0,
            begun_at: now,
        });
        self.retry();
    }

    /// Opens the next file of the drive, if it has none and a retry is due; a failure postpones the
    /// next one.
    fn retry(&mut self) {
        let now = self.now;
        let after = self.previous.as_ref().map_or(0, |previous| previous.drive);
        let Some(drive) = &mut self.drive else { return };
        if drive.film.is_some() || now < drive.retry_at {
            return;
        }
        drive.retry_at = now + RETRY_EVERY;
        let opened = match drive.number {
            Some(number) => Ok(number),
            None => self.disk.begin(after),
        };
        let opened = opened.and_then(|number| {
            drive.number = Some(number);
            drive.part += 1;
            self.disk.create(drive.part).map(|file| (number, file))
        });
        match opened {
            Ok((number, file)) => {
                drive.film = Some(Film::begin(file, self.signer.clone()));
                self.shared.drive.store(number, Ordering::Relaxed);
                self.put_begin();
                self.sync(true);
                self.discard_refused();
            }
            Err(error) => self.refused(&error),
        }
    }

    /// Deletes the file just created if the disk refused its first records: otherwise each attempt
    /// would leave a file.
    fn discard_refused(&mut self) {
        let Some(drive) = self.drive.as_mut().filter(|drive| drive.film.is_none()) else { return };
        self.disk.discard(drive.part);
        drive.part -= 1;
    }

    fn put_begin(&mut self) {
        let Some(drive) = &self.drive else { return };
        let preamble = drive.film.as_ref().map(|film| film.preamble().to_string());
        let previous = self.previous.as_ref().map(|previous| {
            json!({
                "drive": previous.drive,
                "part": previous.part,
                "records": previous.sealed.records,
                "head": previous.sealed.head.to_string(),
                "key": previous.key,
            })
        });
        let body = json!({
            "event": "begin",
            "drive": drive.number,
            "part": drive.part,
            "utc": utc(self.unix(self.now)),
            "software": SOFTWARE,
            "key": self.signer.public(),
            "preamble": preamble,
            "kept_from": self.kept_from,
            "dropped": self.shared.dropped.load(Ordering::Relaxed),
            "previous": previous,
        });
        self.put(Topic::Drive, &body);
        let facts: Vec<_> = self.facts.iter().map(|(fact, text)| (*fact, said(text))).collect();
        facts.iter().for_each(|(fact, body)| self.put(Topic::Fact(*fact), body));
    }

    fn end(&mut self, why: &str) {
        self.put_end(why);
        self.seal(true);
        if let Some(drive) = self.drive.take() {
            let bytes = drive.bytes + drive.film.as_ref().map_or(0, Film::length);
            let mib = bytes / (1 << 20);
            let mb_per_hour = rate(bytes, self.now.since(drive.begun_at)) / 1e6;
            tracing::info!(
                drive = drive.number,
                why,
                mib,
                mb_per_hour,
                "the black box has closed a drive"
            );
        }
        self.ring.clear();
        self.shared.drive.store(0, Ordering::Relaxed);
    }

    fn put_end(&mut self, why: &str) {
        let Some(drive) = &self.drive else { return };
        let body = json!({
            "event": "end",
            "drive": drive.number,
            "part": drive.part,
            "utc": utc(self.unix(self.now)),
            "why": why,
            "dropped": self.shared.dropped.load(Ordering::Relaxed),
        });
        self.put(Topic::Drive, &body);
    }

    /// Deletes the drives that the settings no longer keep, at most once a minute. Before, that is
    /// recorded and signed, so that it differs from tampering.
    fn prune(&mut self) {
        if self.now < self.prune_at {
            return;
        }
        self.prune_at = self.now + PRUNE_EVERY;
        let Some(kept_from) = self.disk.kept_from(self.unix(self.now)) else { return };
        self.kept_from = self.kept_from.max(kept_from);
        if self.drive.is_some() {
            let body = json!({
                "event": "deleted",
                "utc": utc(self.unix(self.now)),
                "kept_from": self.kept_from,
            });
            self.put(Topic::Drive, &body);
        }
        self.is_note_due = true;
        self.put_note();
        self.disk.delete_below(kept_from);
    }

    /// Writes the note about the newest file, if it is due; after a failure it is tried again with
    /// the next signature.
    fn put_note(&mut self) {
        let Some(previous) = self.previous.as_ref().filter(|_| self.is_note_due) else { return };
        let Previous { drive, part, sealed, is_closed, .. } = *previous;
        let place = (drive, part, sealed);
        let note = Note::new(place, is_closed, self.kept_from, &self.config, &self.signer);
        match self.disk.note(&note.text(&self.signer)) {
            Ok(()) => self.is_note_due = false,
            Err(error) => {
                tracing::error!(%error, "cannot write the note about the newest file");
                self.shared.set_disk(Some(&error));
            }
        }
    }

    /// Deletes old drives if that is due; then signs the written records and syncs them to the
    /// disk, if it is due or `is_urgent`.
    fn sync(&mut self, is_urgent: bool) {
        let now = self.now;
        self.prune();
        let Some(drive) = &mut self.drive else { return };
        if is_urgent || now.since(drive.synced_at) >= self.config.sync() {
            drive.synced_at = now;
            self.seal(false);
        }
    }

    fn seal(&mut self, is_last: bool) {
        let at = self.unix(self.now);
        let Some(drive) = &mut self.drive else { return };
        let (Some(film), Some(number)) = (&mut drive.film, drive.number) else { return };
        match film.seal(is_last, at) {
            Ok(sealed) => {
                let part = drive.part;
                let known = self.previous.as_ref().map(|previous| (previous.drive, previous.part));
                self.is_note_due |= is_last || known != Some((number, part));
                let (key, kept_from) = (self.signer.public(), Some(self.kept_from));
                let is_closed = is_last;
                let drive = number;
                self.previous = Some(Previous { drive, part, sealed, is_closed, key, kept_from });
                self.shared.set_disk(None);
                self.put_note();
            }
            Err(error) => self.refused(&error),
        }
    }

    fn put(&mut self, topic: Topic, body: &Value) {
        self.put_at(topic, body, self.now);
    }

    fn put_at(&mut self, topic: Topic, body: &Value, at: Instant) {
        let at = self.unix(at);
        let film = self.drive.as_mut().and_then(|drive| drive.film.as_mut());
        if let Some(Err(error)) = film.map(|film| film.put(topic, body, at)) {
            self.refused(&error);
        }
    }

    /// Abandons a file after the disk refused it: written data stays, the buffered steps are
    /// dropped, and the next part is tried later.
    fn refused(&mut self, error: &io::Error) {
        tracing::error!(%error, "cannot write to the black box");
        self.shared.set_disk(Some(error));
        if let Some(drive) = &mut self.drive {
            drive.bytes += drive.film.as_ref().map_or(0, Film::length);
            drive.film = None;
            drive.retry_at = self.now + RETRY_EVERY;
            // The next part must begin with a snapshot.
            drive.is_full = false;
        }
        self.ring.clear();
    }

    fn unix(&self, at: Instant) -> u64 {
        self.unix_nanos.saturating_add(at.as_nanos())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.disk.store(DISK_ENDED, Ordering::Relaxed);
    }
}

impl Folder {
    /// Opens the configured folder, and creates it if it is missing.
    pub(super) fn open(config: &Config) -> Result<Self, Error> {
        drives::make(&config.folder)?;
        Ok(Self { config: config.clone(), drive: None })
    }
}

impl Disk for Folder {
    type File = File;

    fn look(&mut self) -> io::Result<()> {
        use rustix::fs::{Access, access, statvfs};

        access(&self.config.folder, Access::WRITE_OK)?;
        let disk = statvfs(&self.config.folder)?;
        match disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM_LEAST {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn begin(&mut self, after: u32) -> io::Result<u32> {
        let (number, folder) = drives::create(&self.config.folder, after).map_err(source)?;
        self.drive = Some(folder);
        Ok(number)
    }

    fn create(&mut self, part: u32) -> io::Result<File> {
        let folder = self.drive.as_ref().ok_or(io::ErrorKind::NotFound)?;
        drives::create_file(&drives::part(folder, part))
    }

    fn discard(&mut self, part: u32) {
        let file = self.drive.as_ref().map(|folder| drives::part(folder, part));
        if let Some(Err(error)) = file.map(std::fs::remove_file) {
            tracing::warn!(%error, "cannot delete an invalid file of the black box");
        }
    }

    fn previous(&mut self) -> Option<Previous> {
        let drives = drives::list(&self.config.folder).ok()?;
        // A file without a signature is not referenced.
        drives.iter().rev().flat_map(files).find_map(|(drive, part, file)| {
            let recording = Recording::read(file).ok()?;
            let begin = recording.begin().unwrap_or_default();
            Some(Previous {
                drive,
                part,
                sealed: recording.sealed()?,
                is_closed: recording.verdict().end == End::Closed,
                key: recording.verdict().key.clone()?,
                kept_from: begin["kept_from"].as_u64().and_then(|number| number.try_into().ok()),
            })
        })
    }

    fn noted(&mut self) -> Option<Note> {
        Note::read(&self.config.folder).unwrap_or_else(|error| {
            tracing::error!(%error, "{}", note::NAME);
            None
        })
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        note::write(&self.config.folder, text)
    }

    fn oldest(&mut self) -> Option<u32> {
        Some(drives::list(&self.config.folder).ok()?.first()?.number)
    }

    fn kept_from(&mut self, unix_nanos: u64) -> Option<u32> {
        let seconds = i64::try_from(unix_nanos / 1_000_000_000).unwrap_or(i64::MAX);
        drives::kept_from(&self.config, seconds).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot delete old drives");
            None
        })
    }

    fn delete_below(&mut self, number: u32) {
        match drives::delete_below(&self.config.folder, number) {
            Ok(deleted) => tracing::info!(deleted, "deleted old drives of the black box"),
            Err(error) => tracing::warn!(%error, "cannot delete old drives"),
        }
    }
}

/// Returns the files of a drive with their numbers, the newest first.
fn files(drive: &drives::Drive) -> impl Iterator<Item = (u32, u32, &PathBuf)> {
    let numbered = drive.files.iter().rev();
    numbered.filter_map(|file| Some((drive.number, drives::part_of(file)?, file)))
}

/// Returns the mean rate in bytes per hour of `bytes` in `time`, which counts as at least 1 s.
fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / time.as_secs_f64().max(1.0) * 3_600.0
}

/// Returns whether the transition leads to a stop: the steps before and after it are then recorded
/// in full.
fn is_stop(transition: &Transition) -> bool {
    matches!(transition.to, Mode::Manoeuvre | Mode::Held)
}

/// Returns the body of the record of a fact; a `text` that is no JSON object is kept as text.
fn said(text: &str) -> Value {
    let fact = serde_json::from_str(text).ok().filter(Value::is_object);
    json!({ "fact": fact.unwrap_or_else(|| json!({ "text": text })) })
}

fn source(error: Error) -> io::Error {
    match error {
        Error::Disk { source, .. } => source,
        error => io::Error::other(error),
    }
}

/// Free bytes that a check of the disk demands: the size of a drive with one stop.
const ROOM_LEAST: u64 = 16 << 20;
/// Interval between attempts to create a refused file, and between checks of the disk while there
/// is no drive: more frequent ones gain nothing on a full disk.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Size in bytes after which the next part begins: five hours of samples, so that a reader unpacks
/// at most 400 MB.
const PART_BYTES: u64 = 32 << 20;
/// Interval of the search for old drives during a drive: a minute writes a few megabytes at most.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
