use tautline_units::{Duration, Instant, Probability};

use crate::planner::OnTimeCurve;

/// On-time probability of a link: the share of its media packets that arrived in time, by the
/// condition of the link when they were queued.
///
/// The condition has three parts: the time for which a report has been overdue, the headroom before
/// the deadline, and the time since the link last failed. Each combination is a cell with its own
/// statistics. Its initial share is the higher, the shorter the first and the longer the other two.
#[derive(Debug, Clone)]
pub(crate) struct OnTime {
    cells: [Cell; CELLS],
    /// Share of each cell's packets that were in time; cells that differ only in headroom are
    /// adjacent.
    shares: [Probability; CELLS],
    /// Time of the last packet that was missed because the link failed; `None` before the first.
    failed_at: Option<Instant>,
    /// Share of packets lost by chance, exponentially decayed.
    loss: f64,
    /// Share of packets late by chance, because others overtook them, exponentially decayed.
    late: f64,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Number of the cell's packets that were in time, exponentially decayed.
    kept: f64,
    /// Number of all packets of the cell, exponentially decayed.
    all: f64,
}

/// Circumstances in which a packet is queued on a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    /// Time for which the peer's report on media in flight has been overdue; zero if none is.
    pub(crate) unheard_for: Duration,
    /// Time between the expected arrival and the deadline; zero if it is expected to be late.
    pub(crate) headroom: Duration,
}

impl OnTime {
    pub(crate) fn new() -> Self {
        let cells: [Cell; CELLS] =
            std::array::from_fn(|at| Cell { kept: PRIOR * expected(at), all: PRIOR });
        let shares = cells.map(Cell::share);
        Self { cells, shares, failed_at: None, loss: 0.0, late: 0.0 }
    }

    /// Returns the index of the cell for a packet queued now, which [`OnTime::observe`] needs.
    pub(crate) fn standing(&self, outlook: &Outlook, now: Instant) -> u8 {
        let unheard = step(outlook.unheard_for, &UNHEARD);
        self.cell(unheard, OnTimeCurve::step(outlook.headroom), now) as u8
    }

    fn cell(&self, unheard: usize, headroom: usize, now: Instant) -> usize {
        let calm = self.failed_at.map_or(CALM.len(), |at| step(now.since(at), &CALM));
        (unheard * (CALM.len() + 1) + calm) * OnTimeCurve::STEPS + headroom
    }

    /// Returns the on-time probabilities of packets queued now, by headroom, when a report has been
    /// overdue for `unheard_for`.
    pub(crate) fn curve(&self, unheard_for: Duration, now: Instant) -> OnTimeCurve {
        let first = self.cell(step(unheard_for, &UNHEARD), 0, now);
        OnTimeCurve::new(std::array::from_fn(|headroom| self.shares[first + headroom]))
    }

    /// Returns the probability that a packet is lost by chance, independently of other packets.
    pub(crate) fn loss(&self) -> Probability {
        Probability::new(self.loss).unwrap_or(Probability::ZERO)
    }

    /// Returns the probability that a packet is late by chance, because others overtake it.
    pub(crate) fn late(&self) -> Probability {
        Probability::new(self.late).unwrap_or(Probability::ZERO)
    }

    /// Records for one packet whether it was lost by chance, or late by chance; both false if
    /// neither.
    pub(crate) fn observe_chance(&mut self, lost: bool, late: bool) {
        for (share, missed) in [(&mut self.loss, lost), (&mut self.late, late)] {
            *share += (f64::from(u8::from(missed)) - *share) / LOSS_MEMORY;
        }
    }

    /// Records whether a packet, queued in cell `standing`, arrived in time; call it for packets
    /// that were not missed by chance. A packet not in time marks the link as failed now.
    pub(crate) fn observe(&mut self, standing: u8, in_time: bool, now: Instant) {
        let at = usize::from(standing) % CELLS;
        let fade = 1.0 - 1.0 / MEMORY;
        let Cell { kept, all } = self.cells[at];
        let in_time_now = f64::from(u8::from(in_time));
        self.cells[at] = Cell { kept: kept * fade + in_time_now, all: all * fade + 1.0 };
        self.shares[at] = self.cells[at].share();
        if !in_time {
            self.failed_at = Some(now);
        }
    }
}

impl Cell {
    /// Returns the share of the cell's packets that arrived in time.
    fn share(self) -> Probability {
        Probability::new(self.kept / self.all).unwrap_or(Probability::ONE)
    }
}

const fn millis<const N: usize>(millis: [u64; N]) -> [Duration; N] {
    let mut durations = [Duration::ZERO; N];
    let mut at = 0;
    while at < N {
        durations[at] = Duration::from_millis(millis[at]);
        at += 1;
    }
    durations
}

/// Returns the number of bounds that `value` has reached.
fn step(value: Duration, bounds: &[Duration]) -> usize {
    bounds.iter().take_while(|bound| value >= **bound).count()
}

/// Returns the initial share of packets in time of the cell at index `at`.
fn expected(at: usize) -> f64 {
    let (rest, headroom) = (at / OnTimeCurve::STEPS, at % OnTimeCurve::STEPS);
    let (unheard, calm) = (rest / (CALM.len() + 1), rest % (CALM.len() + 1));
    let [unheard, headroom] =
        [[0.99, 0.98, 0.9, 0.6, 0.2][unheard], [0.1, 0.8, 0.95, 0.99, 1.0][headroom]];
    unheard * headroom * [0.95, 0.98, 1.0][calm]
}

/// Bounds between the classes of the time for which a report is overdue; reports arrive every ten
/// milliseconds.
const UNHEARD: [Duration; 4] = millis([14, 22, 35, 60]);
/// Bounds between the classes of time since the link last failed.
const CALM: [Duration; 2] = millis([100, 600]);
const CELLS: usize = (UNHEARD.len() + 1) * OnTimeCurve::STEPS * (CALM.len() + 1);
/// Weight of the initial share, in packets.
const PRIOR: f64 = 30.0;
/// Number of packets after which an observation of chance counts 1/e: about a second of a link.
const LOSS_MEMORY: f64 = 500.0;
/// Packets of a cell after which an observation counts 1/e: about a minute of a link's share.
const MEMORY: f64 = 30_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(unheard: u64, headroom: u64) -> Outlook {
        let ms = Duration::from_millis;
        Outlook { unheard_for: ms(unheard), headroom: ms(headroom) }
    }

    #[test]
    fn on_time_probability_falls_with_silence_and_less_time() {
        let link = OnTime::new();
        let ms = Duration::from_millis;
        let p = |unheard, headroom| link.curve(ms(unheard), Instant::ZERO).at(ms(headroom)).get();
        assert!(p(0, 50) > 0.98 && p(0, 50) > p(30, 50) && p(30, 50) > p(90, 50));
        assert!(p(0, 50) > p(0, 20) && p(0, 20) > p(0, 5) && p(0, 5) > p(0, 0));
    }

    #[test]
    fn each_standing_learns_by_itself() {
        let mut link = OnTime::new();
        let now = Instant::from_millis(1_000);
        let (calm, late) = (outlook(0, 50), outlook(0, 10));
        let standing = [&calm, &late].map(|outlook| link.standing(outlook, now));
        for packet in 0..10_000 {
            link.observe(standing[0], packet % 50 != 0, now);
        }
        let p = |outlook: &Outlook, now| {
            link.curve(outlook.unheard_for, now).at(outlook.headroom).get()
        };
        let later = now + Duration::from_secs(1);
        assert!((p(&calm, later) - 0.98).abs() < 0.002);
        assert!((p(&late, later) - 0.95).abs() < 0.05);
        // It has just failed: another cell than before.
        assert_ne!(link.standing(&calm, now), standing[0]);
        assert_eq!(link.standing(&calm, later), standing[0]);
    }
}
