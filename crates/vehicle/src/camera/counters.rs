use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

#[cfg(doc)]
use tautline_video::Origin;
use tautline_video::{Losses, Sensor};

/// Counters and state of the camera, written by its thread; a restart of the source keeps them.
#[derive(Debug, Default)]
pub struct Counters {
    /// Pictures that the source began, coded or not.
    pub pictures: AtomicU64,
    /// Pictures without a strip read, because the previous picture was still being read.
    pub pictures_skipped: AtomicU64,
    /// Pictures without a strip read, because the encoders had too much work to code them in time.
    pub pictures_unencoded: AtomicU64,
    /// Pictures without a strip read, by frame decimation: the operator's screen cannot keep up
    /// with the picture rate.
    pub pictures_decimated: AtomicU64,
    /// Late pictures that were taken nevertheless, with their arrival as capture time: the source
    /// is slower than its nominal rate, or no picture was taken for 100 ms.
    pub pictures_delayed: AtomicU64,
    /// Pictures without a strip read, by frame decimation: the links carry fewer pictures at a
    /// better quality.
    pub pictures_thinned: AtomicU64,
    /// Pictures without a strip read, because earlier ones still kept the links busy, or because
    /// the links of a new session had not yet shown a rate.
    pub pictures_held: AtomicU64,
    /// Pictures that repeat an earlier capture while the machine moves; they do not count as
    /// captures.
    pub pictures_repeated: AtomicU64,
    /// Origin of the source's pictures, as the number of its [`Origin`].
    pub origin: AtomicU8,
    /// Start of the current series of repeated captures: nanoseconds of the vehicle's clock plus
    /// one; 0 without such a series, and during its first second.
    pub repeats_since: AtomicU64,
    /// Start of the current series of pictures of uniform brightness: nanoseconds of the vehicle's
    /// clock plus one; 0 without such a series, and during its first second.
    pub uniform_since: AtomicU64,
    /// Strips dropped because the queue of their encoder was full.
    pub strips_dropped: AtomicU64,
    /// Pictures not encoded because the transport granted no rate.
    pub pictures_paused: AtomicU64,
    /// Pictures that arrived truncated, that their decoder rejected, or in whose place the device
    /// reported an input/output error.
    pub pictures_damaged: AtomicU64,
    /// Pictures missing from the source's own numbering.
    pub pictures_missed: AtomicU64,
    /// Pictures left out because the source already had a newer one when it was asked.
    pub pictures_superseded: AtomicU64,
    /// Pictures whose capture time was implausible: refused, or dated by their arrival.
    pub pictures_misdated: AtomicU64,
    /// Time between two pictures at the source's nominal rate, in nanoseconds; 0 before a source
    /// runs.
    pub period_nanos: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Counters {
    /// Returns a description of the current fault of the source's pictures; `None` if there is
    /// none.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds to the counters what the source's losses have grown by since `before`, updates
    /// `before`, and takes over the source's description of its fault.
    pub(super) fn note_losses(&self, sensor: &dyn Sensor, before: &mut Losses) {
        let now = sensor.losses();
        let each = [
            (&self.pictures_damaged, now.damaged, before.damaged),
            (&self.pictures_missed, now.missed, before.missed),
            (&self.pictures_superseded, now.superseded, before.superseded),
            (&self.pictures_misdated, now.misdated, before.misdated),
        ];
        for (counter, now, before) in each {
            counter.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        }
        *before = now;
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_deref() != sensor.trouble() {
            *trouble = sensor.trouble().map(str::to_owned);
        }
    }
}
