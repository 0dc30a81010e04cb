/// Picture numbers of a driver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    newest: Option<u32>,
    /// True once two numbers differed: some drivers always report the same number.
    counts: bool,
}

impl Numbers {
    /// Records the number of the next picture. `left_out` pictures before it arrived and were not
    /// wanted. Returns how many never arrived; 0 for the first picture and after an implausible
    /// jump.
    pub(super) fn missed_before(&mut self, number: u32, left_out: u32) -> u32 {
        let Some(before) = self.newest.replace(number) else { return 0 };
        let step = number.wrapping_sub(before);
        self.counts |= step != 0;
        // A longer step, or one back, means that the driver restarted its count.
        if step > MISSED_MAX { 0 } else { step.saturating_sub(1).saturating_sub(left_out) }
    }

    /// Returns the driver's number of the newest picture; `None` if the driver does not count.
    pub(super) fn shown(&self) -> Option<u32> {
        self.newest.filter(|_| self.counts)
    }
}

/// Largest step between two numbers that counts as missed pictures; a larger one means that the
/// driver restarted its count.
const MISSED_MAX: u32 = 1_000;
