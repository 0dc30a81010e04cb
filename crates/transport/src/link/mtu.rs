use tautline_units::{Duration, Instant};

/// Maximum datagram size on one link, found by probing ([RFC8899]).
///
/// A probe is a ping padded to the candidate size in a datagram of its own; its pong confirms the
/// size. The search goes up from the base, first to the configured maximum, then by bisection. A
/// size fails when enough consecutive probes stay without a pong to make chance unlikely, given the
/// share of small pings answered. When losses rise, the current size is probed again. If that fails
/// while small pings pass, the path has become a black hole for it, and the search restarts from
/// below. Failed sizes are retried after ten minutes.
///
/// Deviations from [RFC8899]: sizes are those of UDP payloads. The base is assumed from the start,
/// because packets of 1200 bytes pass every path that carries IPv6. Losses trigger the confirmation
/// instead of a timer, because a single loss means nothing on a link that loses a tenth of its
/// packets.
#[derive(Debug, Clone)]
pub(crate) struct Mtu {
    /// Maximum size to use and to probe for, in bytes.
    most: usize,
    /// Size of the largest datagrams sent at present, in bytes.
    size: usize,
    /// Smallest size that failed; `None` if none has since the last restart or retry.
    failed: Option<usize>,
    phase: Phase,
    trial: Option<Trial>,
    /// Consecutive probes of one size without a pong.
    failures: u32,
    confirmed_at: Instant,
}

/// The purpose for which probes of a datagram size are sent at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Confirmation of the current size, which is only assumed.
    Base,
    /// Search for a larger size.
    Search,
    /// No probes: the current size is the largest that passes. At `until`, larger ones are tried
    /// again.
    Complete { until: Instant },
    /// Confirmation that the current size still passes, then [`Phase::Complete`] again.
    Confirm { until: Instant },
}

/// The outstanding probe; never more than one.
#[derive(Debug, Clone, Copy)]
struct Trial {
    id: u32,
    bytes: usize,
    sent_at: Instant,
}

/// Statistics of a link's small pings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pings {
    /// Time without a pong after which a probe counts as lost.
    pub(crate) pong_timeout: Duration,
    /// Share of recent pings that were answered; 0 to 1.
    pub(crate) answered: f64,
}

impl Mtu {
    pub(crate) fn new(most: usize, now: Instant) -> Self {
        Self {
            most,
            size: most.min(BASE_BYTES),
            failed: None,
            phase: Phase::Base,
            trial: None,
            failures: 0,
            confirmed_at: now,
        }
    }

    /// Returns the largest datagram to send, in bytes of UDP payload.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Sets the maximum size to use and to probe for. A smaller maximum limits the current size at
    /// once. A greater one is probed for unless a size has failed, which stays failed.
    pub(crate) fn set_most(&mut self, most: usize, now: Instant) {
        if most == self.most {
            return;
        }
        let size = self.size.min(most);
        if most > self.most && self.failed.is_none() {
            *self = Self { trial: self.trial, ..Self::new(most, now) };
            self.size = self.size.max(size);
            return;
        }
        (self.most, self.size) = (most, size);
        if self.phase != Phase::Base {
            self.search();
        }
    }

    /// Forgets all results because the path has changed.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self::new(self.most, now);
    }

    /// Requests a check that the current size still passes, unless a search is running or the size
    /// was confirmed within [`DOUBT_INTERVAL`].
    pub(crate) fn doubt(&mut self, now: Instant) {
        match self.phase {
            Phase::Complete { until } if now.since(self.confirmed_at) >= DOUBT_INTERVAL => {
                self.phase = Phase::Confirm { until };
                self.failures = 0;
            }
            Phase::Base | Phase::Search | Phase::Complete { .. } | Phase::Confirm { .. } => {}
        }
    }

    /// Returns the size of the probe to send now, or `None` if none is due. Counts the last probe
    /// as failed once its pong is overdue, ends a search without a further size, and begins one
    /// when failed sizes are to be retried. After sending, the caller calls [`Mtu::on_sent`].
    pub(crate) fn due(&mut self, pings: Pings, now: Instant) -> Option<usize> {
        if let Some(trial) = self.trial {
            if now.since(trial.sent_at) < pings.pong_timeout {
                return None;
            }
            self.trial = None;
            self.failures += 1;
            if self.failures >= failures_needed(pings.answered) {
                self.fail(trial.bytes, now);
            }
        }
        match self.phase {
            Phase::Base | Phase::Confirm { .. } => Some(self.size),
            Phase::Search => match self.candidate() {
                Some(bytes) => Some(bytes),
                None => {
                    self.phase = Phase::Complete { until: now + RAISE_AFTER };
                    None
                }
            },
            Phase::Complete { until } => {
                if now >= until && self.size < self.most {
                    self.failed = None;
                    self.search();
                }
                None
            }
        }
    }

    /// Records that the probe of `bytes` bytes was sent as ping `id`.
    pub(crate) fn on_sent(&mut self, id: u32, bytes: usize, now: Instant) {
        self.trial = Some(Trial { id, bytes, sent_at: now });
    }

    /// Handles a pong; returns the size of the probe that it answers, or `None` if it does not
    /// answer the outstanding probe. That size is now confirmed: the current size is no smaller, up
    /// to the maximum, and a check of the current size ends.
    pub(crate) fn on_pong(&mut self, id: u32, now: Instant) -> Option<usize> {
        let trial = self.trial.filter(|trial| trial.id == id)?;
        self.trial = None;
        self.failures = 0;
        self.confirmed_at = now;
        // The maximum may have been lowered since the probe was sent.
        self.size = self.size.max(trial.bytes.min(self.most));
        self.phase = match self.phase {
            Phase::Base | Phase::Search => Phase::Search,
            Phase::Complete { until } | Phase::Confirm { until } => Phase::Complete { until },
        };
        Some(trial.bytes)
    }

    /// Handles the kernel's error that a datagram of `bytes` bytes is too large for the interface:
    /// that size counts as failed, and an outstanding probe of that size or more is dropped.
    /// Ignored up to [`LEAST_BYTES`], which every link carries.
    pub(crate) fn on_refused(&mut self, bytes: usize, now: Instant) {
        if bytes > LEAST_BYTES {
            if self.trial.is_some_and(|trial| trial.bytes >= bytes) {
                self.trial = None;
            }
            self.fail(bytes, now);
        }
    }

    /// Marks the size `bytes` as too large. If the current size is not smaller, falls back to
    /// [`BASE_BYTES`], or to [`LEAST_BYTES`] if the base has failed.
    fn fail(&mut self, bytes: usize, now: Instant) {
        self.failures = 0;
        let failed = self.failed.map_or(bytes, |failed| failed.min(bytes));
        self.failed = Some(failed);
        if failed > self.size {
            return;
        }
        tracing::info!(bytes, "datagrams of this size do not arrive");
        self.confirmed_at = now;
        if failed > BASE_BYTES {
            self.size = BASE_BYTES.min(self.most);
            self.phase = Phase::Base;
        } else {
            self.size = LEAST_BYTES;
            self.phase = Phase::Search;
        }
    }

    fn search(&mut self) {
        self.phase = Phase::Search;
        self.failures = 0;
    }

    /// Returns the next size to probe in the search; `None` if the search is complete.
    fn candidate(&self) -> Option<usize> {
        match self.failed {
            Some(failed) if failed <= self.most => {
                let middle = (self.size + failed) / 2;
                (failed > self.size + GRAIN_BYTES).then_some(middle)
            }
            Some(_) | None => (self.size < self.most).then_some(self.most),
        }
    }
}

/// Returns the number of consecutive unanswered probes after which a size fails, from
/// [`FAILURES_LEAST`] to [`FAILURES_MOST`]: by chance alone, that many occur once in a hundred
/// thousand times if the share `answered` of pings is answered.
fn failures_needed(answered: f64) -> u32 {
    let lost = (1.0 - answered).clamp(0.001, 0.999);
    let needed = (CHANCE.ln() / lost.ln()).ceil() as u32;
    needed.clamp(FAILURES_LEAST, FAILURES_MOST)
}

/// Size from which the search begins, in bytes ([RFC8899] 5.1.2): 1200 bytes pass any path that
/// carries IPv6.
const BASE_BYTES: usize = 1_200;
/// Size in bytes of UDP payload that every link carries: the length of an init.
const LEAST_BYTES: usize = 150;
/// Difference in bytes between the current and the smallest failed size at which the search ends:
/// one percent of a packet.
const GRAIN_BYTES: usize = 12;
/// Minimum number of unanswered probes until a size fails ([RFC8899] 5.1.2, MAX_PROBES).
const FAILURES_LEAST: u32 = 3;
/// Maximum number of unanswered probes until a size fails: a link that needs more loses too many
/// packets for their size to matter.
const FAILURES_MOST: u32 = 24;
const CHANCE: f64 = 1e-5;
/// Time after which failed sizes are tried again ([RFC8899] 5.1.1, PMTU_RAISE_TIMER).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// Minimum time from one confirmation to the next on a link that keeps losing packets; the probes
/// then take 10 kbit/s.
const DOUBT_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    const PINGS: Pings = Pings { pong_timeout: Duration::from_millis(100), answered: 1.0 };

    /// Probes for `millis` from `from` on, on a path that passes datagrams of up to `carries`
    /// bytes, with a ping every 20 ms; returns the number of probes.
    fn probe(mtu: &mut Mtu, carries: usize, from: u64, millis: u64, pings: Pings) -> u32 {
        let mut count = 0;
        for at in (from..from + millis).step_by(20) {
            let now = Instant::from_millis(at);
            if let Some(bytes) = mtu.due(pings, now) {
                count += 1;
                mtu.on_sent(count, bytes, now);
                assert_eq!(mtu.due(pings, now), None, "one probe at a time");
                if bytes <= carries {
                    assert_eq!(mtu.on_pong(count, Instant::from_millis(at + 10)), Some(bytes));
                }
            }
        }
        count
    }

    #[test]
    fn the_search_finds_the_size_to_a_hundredth() {
        for carries in [150, 151, 400, 576, 1_199, 1_200, 1_280, 1_372, 1_452, 1_472, 1_500] {
            let mut mtu = Mtu::new(1_500, Instant::ZERO);
            assert_eq!(mtu.size(), 1_200);
            let probes = probe(&mut mtu, carries, 0, 10_000, PINGS);
            assert!(mtu.size() <= carries && carries - mtu.size() <= 12, "{carries} {mtu:?}");
            assert!(probes < 36, "{carries}: {probes}");
        }
        let mut mtu = Mtu::new(1_200, Instant::ZERO);
        assert_eq!(probe(&mut mtu, 1_500, 0, 5_000, PINGS), 1, "the base is the most");
        assert_eq!(mtu.size(), 1_200);
        let mut mtu = Mtu::new(150, Instant::ZERO);
        probe(&mut mtu, 1_500, 0, 5_000, PINGS);
        assert_eq!(mtu.size(), 150);
    }

    #[test]
    fn an_mtu_black_hole_is_left_on_loss_and_probed_again_later() {
        let mut mtu = Mtu::new(1_500, Instant::ZERO);
        probe(&mut mtu, 1_500, 0, 1_000, PINGS);
        assert_eq!(mtu.size(), 1_500);
        assert_eq!(probe(&mut mtu, 1_300, 1_000, 1_000, PINGS), 0, "nobody doubts");
        mtu.doubt(Instant::from_millis(2_000));
        probe(&mut mtu, 1_300, 2_000, 400, PINGS);
        assert_eq!(mtu.size(), 1_200, "within four timeouts");
        probe(&mut mtu, 1_300, 2_400, 5_000, PINGS);
        assert!((1_288..=1_300).contains(&mtu.size()), "{mtu:?}");
        probe(&mut mtu, 1_500, 604_000, 10_000, PINGS);
        assert_eq!(mtu.size(), 1_500);
    }

    #[test]
    fn chance_losses_take_no_size_away() {
        let mut mtu = Mtu::new(1_200, Instant::ZERO);
        probe(&mut mtu, 1_200, 0, 100, PINGS);
        let half = Pings { answered: 0.5, ..PINGS };
        for round in 1..20 {
            let at = round * 3_000;
            mtu.doubt(Instant::from_millis(at));
            // Sixteen are lost in a row, the next one passes.
            probe(&mut mtu, 0, at, 16 * 100, half);
            probe(&mut mtu, 1_200, at + 1_600, 300, half);
            assert_eq!(mtu.size(), 1_200, "{round}");
        }
    }

    #[test]
    fn the_kernels_word_is_enough_and_a_new_path_forgets_it() {
        let mut mtu = Mtu::new(1_500, Instant::ZERO);
        probe(&mut mtu, 1_500, 0, 1_000, PINGS);
        mtu.on_refused(1_473, Instant::from_millis(1_000));
        assert_eq!(mtu.size(), 1_200);
        probe(&mut mtu, 1_472, 1_000, 8_000, PINGS);
        assert!((1_460..=1_472).contains(&mtu.size()), "{mtu:?}");
        mtu.restart(Instant::from_millis(10_000));
        assert_eq!(mtu.size(), 1_200);
        mtu.on_refused(100, Instant::from_millis(10_000));
        assert_eq!(mtu.size(), 1_200);
    }

    #[test]
    fn the_bound_is_kept_when_it_moves() {
        let mut mtu = Mtu::new(1_500, Instant::ZERO);
        let now = Instant::from_millis(10);
        assert_eq!(mtu.due(PINGS, now), Some(1_200));
        mtu.on_sent(7, 1_200, now);
        mtu.set_most(600, now);
        assert_eq!(mtu.size(), 600);
        assert_eq!(mtu.on_pong(7, now), Some(1_200));
        assert_eq!(mtu.size(), 600);
        mtu.set_most(1_500, now);
        assert_eq!(mtu.size(), 1_200, "the base is believed");
        probe(&mut mtu, 1_500, 1_000, 5_000, PINGS);
        assert_eq!(mtu.size(), 1_500);
        mtu.set_most(1_500, Instant::from_millis(6_000));
        assert_eq!(mtu.due(PINGS, Instant::from_millis(6_000)), None, "nothing new to look for");
    }
}
