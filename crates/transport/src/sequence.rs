use tautline_units::Duration;

/// A window of the numbers that have arrived: packets of one link and direction, or units.
///
/// It covers the [`Window::SPAN`] numbers up to the highest. Older ones are refused because they
/// cannot be distinguished from replays. 256 bytes, O(1) except for a jump ahead.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    /// One past the highest number seen; zero before the first.
    next: u64,
    /// Bit `number % SPAN` is set if `number` arrived.
    seen: [u64; WORDS],
}

/// The result of checking whether a number has arrived before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The number has not arrived before.
    New,
    /// The number has arrived before.
    Replayed,
    /// The number is older than the window: whether it has arrived before is unknown.
    Stale,
}

impl Window {
    /// Length of the window in numbers.
    pub(crate) const SPAN: u64 = (WORDS * 64) as u64;

    pub(crate) fn new() -> Self {
        Self { next: 0, seen: [0; WORDS] }
    }

    /// Returns the full number whose low 32 bits are `low`: the one nearest to the next expected.
    pub(crate) fn expand(&self, low: u32) -> u64 {
        expand(self.next, u64::from(low), 32)
    }

    /// Returns the highest number seen; `None` before the first.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }

    /// Checks whether `number` may be accepted, without recording it.
    pub(crate) fn check(&self, number: u64) -> Verdict {
        if number >= self.next {
            return Verdict::New;
        }
        if self.next - number > Self::SPAN {
            return Verdict::Stale;
        }
        let (word, bit) = place(number);
        if self.seen[word] & bit == 0 { Verdict::New } else { Verdict::Replayed }
    }

    /// Returns whether `number` is known to have arrived; false for one too old to be covered.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.check(number) == Verdict::Replayed
    }

    /// Records that `number` arrived; a greater one than all before moves the window. Call it only
    /// after its datagram was authenticated.
    pub(crate) fn note(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= Self::SPAN {
                self.seen = [0; WORDS];
            } else {
                for skipped in self.next..number {
                    let (word, bit) = place(skipped);
                    self.seen[word] &= !bit;
                }
            }
            self.next = number + 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }
}

/// Returns the number nearest to `expected` whose low `bits` bits are `low`.
pub(crate) fn expand(expected: u64, low: u64, bits: u32) -> u64 {
    let span = 1_u64 << bits;
    let candidate = (expected & !(span - 1)) | low;
    if candidate + span / 2 < expected {
        candidate + span
    } else if candidate >= expected.saturating_add(span / 2) && candidate >= span {
        candidate - span
    } else {
        candidate
    }
}

fn place(number: u64) -> (usize, u64) {
    let slot = (number % Window::SPAN) as usize;
    (slot / 64, 1 << (slot % 64))
}

const WORDS: usize = 32;
/// Minimum time by which a datagram may be overtaken before it counts as lost: datagrams closer
/// than this may have been sent together.
pub(crate) const REORDERING_LEAST: Duration = Duration::from_millis(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_accepted_once_in_any_order() {
        let mut window = Window::new();
        for number in [0, 5, 3, 2047, 2048, 4, 10_000, 9_000, 7_953] {
            assert_eq!(window.check(number), Verdict::New, "{number}");
            window.note(number);
            assert_eq!(window.check(number), Verdict::Replayed, "{number}");
        }
        assert_eq!(window.check(7_952), Verdict::Stale);
        assert_eq!(window.highest(), Some(10_000));
    }

    #[test]
    fn a_skipped_number_is_still_new_after_the_ring_came_round() {
        let mut window = Window::new();
        for number in 0..3_000 {
            window.note(number);
        }
        window.note(3_002);
        assert_eq!(window.check(3_001), Verdict::New);
        assert_eq!(window.check(3_000), Verdict::New);
        assert_eq!(window.check(2_999), Verdict::Replayed);
    }

    #[test]
    fn low_bits_expand_to_the_nearest_number() {
        for expected in [0_u64, 1, 255, 256, 1_000, 65_535, 1 << 40] {
            for offset in -100_i64..100 {
                let Some(number) = expected.checked_add_signed(offset) else { continue };
                assert_eq!(expand(expected, number & 0xff, 8), number, "{expected} {offset}");
            }
        }
    }
}
