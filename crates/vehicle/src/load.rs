//! The encoders' backlog, by which a camera skips pictures that would be late.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Backlog of one encoder in strips, and its time per strip.
#[derive(Debug, Default)]
pub struct Load {
    strips: AtomicU64,
    /// Moving average of the time per strip, in nanoseconds; 0 before the first.
    strip_nanos: AtomicU64,
}

impl Load {
    /// Adds a strip to the backlog.
    pub(crate) fn add(&self) {
        self.strips.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a finished strip, and adds the time it took to the moving mean if the encoder
    /// received it completely.
    pub(crate) fn remove(&self, took: Option<Duration>) {
        if let Some(took) = took {
            let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            let mean = self.strip_nanos.load(Ordering::Relaxed);
            let moved = mean - mean / MEMORY + took / MEMORY;
            self.strip_nanos.store(moved, Ordering::Relaxed);
        }
        self.strips.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether a picture begun now, with `strips` strips for this encoder, would be coded
    /// within 80 ms, and at most one picture waits. An idle encoder accepts any.
    pub fn has_room(&self, strips: u64) -> bool {
        let waiting = self.strips.load(Ordering::Relaxed);
        let strip = Duration::from_nanos(self.strip_nanos.load(Ordering::Relaxed));
        let all = u32::try_from(waiting + strips).unwrap_or(u32::MAX);
        waiting == 0 || (waiting <= strips && strip.saturating_mul(all) <= CODED_WITHIN)
    }
}

/// Divisor of a strip's weight in the average: each counts for an eighth.
const MEMORY: u64 = 8;
/// Time within which a picture must be coded: less than half of the greatest picture age at which
/// driving is allowed, since the links need the rest.
const CODED_WITHIN: Duration = Duration::from_millis(80);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_too_slow_to_code_starts_only_on_an_idle_encoder() {
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
