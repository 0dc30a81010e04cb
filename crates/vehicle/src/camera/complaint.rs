use std::time::Duration;

/// Recurring fault, logged when it begins.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint {
    words: String,
    seen_at: Option<Duration>,
}

impl Complaint {
    /// Records the fault; returns whether it begins, which is so if it did not occur during the
    /// last 10 s.
    pub(super) fn begin(&mut self, words: &str, now: Duration) -> bool {
        let begins = self.seen_at.is_none_or(|at| now.saturating_sub(at) > OVER_AFTER);
        words.clone_into(&mut self.words);
        self.seen_at = Some(now);
        begins
    }

    /// Returns the description of the fault, until 2 s after its last occurrence; `None` before the
    /// first occurrence and after that time.
    pub(super) fn words(&self, now: Duration) -> Option<&str> {
        let lasts = self.seen_at.is_some_and(|at| now.saturating_sub(at) <= TOLD_FOR);
        lasts.then_some(&*self.words)
    }
}

/// Time without the fault after which it is over; it is logged when it recurs.
const OVER_AFTER: Duration = Duration::from_secs(10);
/// Time for which a person is shown a fault after its last occurrence.
const TOLD_FOR: Duration = Duration::from_secs(2);
