//! What encoders have yet to do, by which a camera leaves out pictures that nobody would get in time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The strips that wait for one encoder, and what it needs for one.
#[derive(Debug, Default)]
pub struct Load {
    strips: AtomicU64,
    /// Nanoseconds for a strip, in the mean of the last few.
    strip_nanos: AtomicU64,
}

impl Load {
    /// Takes note of a strip more.
    pub(crate) fn add(&self) {
        self.strips.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes note that a strip is done; if the encoder had it to the end, of how long it took.
    pub(crate) fn remove(&self, took: Option<Duration>) {
        if let Some(took) = took {
            let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            let mean = self.strip_nanos.load(Ordering::Relaxed);
            let moved = mean - mean / MEMORY + took / MEMORY;
            self.strip_nanos.store(moved, Ordering::Relaxed);
        }
        self.strips.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether a picture begun now, of which this encoder has so many strips to code, would be coded
    /// in time: an encoder with nothing to do takes any.
    pub fn has_room(&self, strips: u64) -> bool {
        let waiting = self.strips.load(Ordering::Relaxed);
        let strip = Duration::from_nanos(self.strip_nanos.load(Ordering::Relaxed));
        let all = u32::try_from(waiting + strips).unwrap_or(u32::MAX);
        waiting == 0 || (waiting <= strips && strip.saturating_mul(all) <= CODED_WITHIN)
    }
}

/// A strip counts as so many parts of one for the mean.
const MEMORY: u64 = 8;
/// Less than half of what a picture may age before nobody may drive by it: the links need the rest.
const CODED_WITHIN: Duration = Duration::from_millis(80);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_cannot_be_coded_in_time_is_not_begun_unless_nothing_waits() {
        let load = Load::default();
        let coded = |millis| {
            for _ in 0..40 {
                load.add();
                load.remove(Some(Duration::from_millis(millis)));
            }
        };
        coded(2);
        load.add();
        assert!(load.has_room(3));
        (0..3).for_each(|_| load.add());
        assert!(!load.has_room(3), "more than a picture waits");
        (0..3).for_each(|_| load.remove(None));
        coded(60);
        assert!(!load.has_room(3));
        load.remove(None);
        assert!(load.has_room(3), "however long it takes");
    }
}
