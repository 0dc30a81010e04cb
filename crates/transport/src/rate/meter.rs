use std::collections::VecDeque;

use tautline_units::{ByteCount, Duration, Instant};

/// A rate by totals of bytes at instants of the last span.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    span: Duration,
    totals: VecDeque<(Instant, u64)>,
}

impl Meter {
    pub(super) fn new(span: Duration) -> Self {
        Self { span, totals: VecDeque::new() }
    }

    /// Takes a total and gives the rate over the span, bit/s; `None` before half of it is known.
    pub(super) fn measure(&mut self, total: ByteCount, at: Instant) -> Option<f64> {
        self.totals.push_back((at, total.get()));
        while self.totals.get(1).is_some_and(|(next, _)| at.since(*next) >= self.span) {
            self.totals.pop_front();
        }
        let (from, bytes) = *self.totals.front()?;
        let span = at.since(from);
        let bits = total.get().saturating_sub(bytes) as f64 * 8.0;
        (span >= self.span / 2).then(|| bits / span.as_secs_f64())
    }

    /// Forgets what it took.
    pub(super) fn clear(&mut self) {
        self.totals.clear();
    }
}
