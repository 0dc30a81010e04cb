use tautline_units::{Duration, Instant};

/// How often a link has kept its word: the share of media packets that were acknowledged in time,
/// by what was known of the link when they were given to it.
///
/// Three things are known: for how long the link has told nothing new, how much time there is to
/// spare until the deadline, and how long ago the link last failed. Each combination is a cell that
/// learns by itself, beginning with what its neighbours' order suggests.
#[derive(Debug, Clone)]
pub(crate) struct OnTime {
    cells: [Cell; CELLS],
    failed_at: Option<Instant>,
    /// The share of packets lost by chance, fading.
    loss: f64,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Packets in time, and packets in all, old ones fading.
    kept: f64,
    all: f64,
}

/// What is known of a link when a packet is given to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    /// Since the last news, although there could have been some.
    pub(crate) unheard_for: Duration,
    /// Between the expected arrival and the deadline; zero if it is expected to be late.
    pub(crate) spare: Duration,
}

impl OnTime {
    pub(crate) fn new() -> Self {
        let mut cells = [Cell { kept: 0.0, all: PRIOR }; CELLS];
        for (at, cell) in cells.iter_mut().enumerate() {
            cell.kept = PRIOR * expected(at);
        }
        Self { cells, failed_at: None, loss: 0.0 }
    }

    /// The cell for a packet given to the link now.
    pub(crate) fn standing(&self, outlook: &Outlook, now: Instant) -> u8 {
        let unheard = step(outlook.unheard_for, &UNHEARD);
        let spare = step(outlook.spare, &SPARE);
        let calm = self.failed_at.map_or(CALM.len(), |at| step(now.since(at), &CALM));
        ((unheard * (SPARE.len() + 1) + spare) * (CALM.len() + 1) + calm) as u8
    }

    /// The probability that a packet of this standing is in time.
    pub(crate) fn probability(&self, standing: u8) -> f64 {
        let cell = &self.cells[usize::from(standing) % CELLS];
        cell.kept / cell.all
    }

    /// The probability that a packet is lost by chance, whatever the others do.
    pub(crate) fn loss(&self) -> f64 {
        self.loss
    }

    /// Notes whether a packet was lost by chance: alone or with a few.
    pub(crate) fn observe_loss(&mut self, lost: bool) {
        self.loss += (f64::from(u8::from(lost)) - self.loss) / LOSS_MEMORY;
    }

    /// Notes what became of a packet.
    pub(crate) fn observe(&mut self, standing: u8, in_time: bool, now: Instant) {
        let cell = &mut self.cells[usize::from(standing) % CELLS];
        let fade = 1.0 - 1.0 / MEMORY;
        cell.kept = cell.kept * fade + f64::from(u8::from(in_time));
        cell.all = cell.all * fade + 1.0;
        if !in_time {
            self.failed_at = Some(now);
        }
    }
}

/// How many of the bounds `value` has reached.
fn step(value: Duration, bounds: &[u64]) -> usize {
    let millis = value.as_millis();
    bounds.iter().take_while(|bound| millis >= u128::from(**bound)).count()
}

/// What a cell is taken for before anything is known.
fn expected(at: usize) -> f64 {
    let (rest, calm) = (at / (CALM.len() + 1), at % (CALM.len() + 1));
    let (unheard, spare) = (rest / (SPARE.len() + 1), rest % (SPARE.len() + 1));
    let [unheard, spare] =
        [[0.99, 0.98, 0.9, 0.6, 0.2][unheard], [0.1, 0.8, 0.95, 0.99, 1.0][spare]];
    unheard * spare * [0.95, 0.98, 1.0][calm]
}

/// Milliseconds: reports come every ten.
const UNHEARD: [u64; 4] = [14, 22, 35, 60];
const SPARE: [u64; 4] = [1, 8, 18, 30];
const CALM: [u64; 2] = [100, 600];
const CELLS: usize = (UNHEARD.len() + 1) * (SPARE.len() + 1) * (CALM.len() + 1);
/// Packets that the beginning is worth.
const PRIOR: f64 = 30.0;
/// Packets: a second or so of a link.
const LOSS_MEMORY: f64 = 500.0;
/// Packets of a cell after which an observation counts 1/e: a minute or so of a link's share.
const MEMORY: f64 = 30_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(unheard: u64, spare: u64) -> Outlook {
        let ms = Duration::from_millis;
        Outlook { unheard_for: ms(unheard), spare: ms(spare) }
    }

    #[test]
    fn a_link_is_taken_for_the_worse_the_longer_it_is_silent_and_the_less_time_there_is() {
        let link = OnTime::new();
        let p = |unheard, spare| {
            link.probability(link.standing(&outlook(unheard, spare), Instant::ZERO))
        };
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
        assert!((link.probability(standing[0]) - 0.98).abs() < 0.002);
        assert!((link.probability(standing[1]) - 0.95).abs() < 0.05);
        // It has just failed: another standing than before.
        assert_ne!(link.standing(&calm, now), standing[0]);
        assert_eq!(link.standing(&calm, now + Duration::from_secs(1)), standing[0]);
    }
}
