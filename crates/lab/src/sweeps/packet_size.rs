//! Which packet size suits a link: delay bins, and the size that they recommend ([UGV]).
//!
//! Whoever measures, on models or on a live session, fills one [`Trial`] for each [`Size`] and asks
//! [`Recommendation::of`]. A trial is made of rounds, so that its shares have an error: round `i` of
//! every trial should meet the same conditions (the same seed, or the same minute).

mod recommendation;
pub mod sweep;

use std::fmt;

use tautline_units::{ByteCount, Duration};

pub use recommendation::Recommendation;

use crate::experiment::Table;
use crate::plot::{Axis, Plot, Series};

/// Counts of messages by their delay, against the paper's limits.
///
/// A message may be within several limits, and one that never came is within none: the shares are
/// those of all messages sent. (The paper's are shares of the messages received.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bins {
    within: [u64; LIMITS.len()],
    arrived: u64,
    lost: u64,
}

/// The delays below which messages are counted; their effect on control, as [UGV] tells it, is in
/// [`EFFECTS`].
pub const LIMITS: [Duration; 4] = [
    Duration::from_millis(125),
    Duration::from_millis(250),
    Duration::from_millis(375),
    Duration::from_millis(500),
];

/// What a delay below each limit, and above the one before it, does to the operator's control.
pub const EFFECTS: [&str; LIMITS.len()] =
    ["not noticed", "noticed, no effect on control", "control is challenging", "control is hard"];

/// The place in [`LIMITS`] of the delay that a size is chosen by: 250 ms, the longest without
/// effect on control.
pub const CHOSEN_BY: usize = 1;

impl Bins {
    /// Counts a message that came after `delay`.
    pub fn arrive(&mut self, delay: Duration) {
        self.arrived += 1;
        for (within, limit) in self.within.iter_mut().zip(LIMITS) {
            *within += u64::from(delay < limit);
        }
    }

    /// Counts messages that never came, or too late to be of use.
    pub fn lose(&mut self, count: u64) {
        self.lost += count;
    }

    /// Adds another's counts.
    pub fn append(&mut self, other: &Bins) {
        for (within, others) in self.within.iter_mut().zip(other.within) {
            *within += others;
        }
        self.arrived += other.arrived;
        self.lost += other.lost;
    }

    /// Returns the number of messages sent.
    pub fn sent(&self) -> u64 {
        self.arrived + self.lost
    }

    /// Returns the share of the messages that never came; `None` without messages.
    pub fn lost_share(&self) -> Option<f64> {
        (self.sent() > 0).then(|| self.lost as f64 / self.sent() as f64)
    }

    /// Returns the share of the messages sent that came within each of [`LIMITS`]; `None` without
    /// messages.
    pub fn shares(&self) -> Option<[f64; LIMITS.len()]> {
        (self.sent() > 0).then(|| self.within.map(|within| within as f64 / self.sent() as f64))
    }
}

/// The largest datagram in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// From vehicle to operator.
    pub up: ByteCount,
    /// From operator to vehicle.
    pub down: ByteCount,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B up, {} B down", self.up.get(), self.down.get())
    }
}

/// What one round of a trial saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Messages on the vehicle's way alone: to the switchboard, or to the operator if none stands
    /// between them.
    pub vehicle: Bins,
    /// Messages on the operator's way alone, likewise.
    pub operator: Bins,
    /// Messages from one end to the other.
    pub end_to_end: Bins,
    /// Bytes on the wire in both directions, headers of IP and UDP included.
    pub wire: ByteCount,
    /// The applications' bytes among them.
    pub payload: ByteCount,
}

/// One size and what came of it, round by round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The size tried.
    pub size: Size,
    /// At least one.
    pub rounds: Vec<Round>,
}

impl Trial {
    /// Returns all rounds in one.
    pub fn total(&self) -> Round {
        let mut total = Round::default();
        for round in &self.rounds {
            total.vehicle.append(&round.vehicle);
            total.operator.append(&round.operator);
            total.end_to_end.append(&round.end_to_end);
            total.wire += round.wire;
            total.payload += round.payload;
        }
        total
    }
}

impl Round {
    /// Returns the three kinds of messages, with the paper's names for them.
    pub fn ways(&self) -> [(&'static str, &Bins); 3] {
        [
            ("vehicle only", &self.vehicle),
            ("operator only", &self.operator),
            ("end to end", &self.end_to_end),
        ]
    }

    /// Returns the share of the bytes on the wire that are no application's: headers, repair
    /// packets and probes.
    pub fn overhead_share(&self) -> Option<f64> {
        let wire = self.wire.get();
        (wire > 0).then(|| 1.0 - self.payload.get() as f64 / wire as f64)
    }
}

/// Makes the table of all bins, one line for each size and kind of message.
pub fn table(name: &str, trials: &[Trial]) -> Table {
    let columns = [
        "up_bytes",
        "down_bytes",
        "way",
        "below_125_ms",
        "below_250_ms",
        "below_375_ms",
        "below_500_ms",
        "lost",
        "messages",
        "overhead",
    ];
    let mut table = Table::new(name, columns);
    for trial in trials {
        let total = trial.total();
        for (way, bins) in total.ways() {
            let [a, b, c, d] = bins.shares().unwrap_or([f64::NAN; LIMITS.len()]);
            table.push([
                trial.size.up.get().into(),
                trial.size.down.get().into(),
                way.into(),
                a.into(),
                b.into(),
                c.into(),
                d.into(),
                bins.lost_share().into(),
                bins.sent().into(),
                total.overhead_share().into(),
            ]);
        }
    }
    table
}

/// Draws the share of messages end to end within each limit; `x` says what stands along the axis
/// and `at` where a size stands on it.
pub fn plot(name: &str, title: &str, trials: &[Trial], x: &str, at: fn(Size) -> f64) -> Plot {
    let y = Axis::linear("share of messages, end to end").range(0.0, 1.0);
    let series = LIMITS.iter().enumerate().map(|(limit, below)| {
        let points = trials.iter().filter_map(|trial| {
            let shares = trial.total().end_to_end.shares()?;
            Some((at(trial.size), shares[limit]))
        });
        Series::marked(format!("below {} ms", below.as_millis()), points.collect())
    });
    Plot::new(name, title, Axis::linear(x), y).with_all(series)
}

/// Writes the paper's table for people: a block of lines for each kind of message, a column for
/// each size.
pub fn text(trials: &[Trial]) -> String {
    let totals: Vec<Round> = trials.iter().map(Trial::total).collect();
    let mut lines = vec![
        line("bytes up", trials.iter().map(|trial| trial.size.up.get().to_string())),
        line("bytes down", trials.iter().map(|trial| trial.size.down.get().to_string())),
    ];
    for way in 0..3 {
        lines.push(totals.first().map_or("", |total| total.ways()[way].0).to_owned());
        for (limit, below) in LIMITS.iter().enumerate() {
            let shares = totals.iter().map(|total| total.ways()[way].1.shares());
            let name = format!("  below {} ms", below.as_millis());
            lines.push(line(&name, shares.map(|shares| percent(shares.map(|s| s[limit])))));
        }
        let bins = || totals.iter().map(|total| total.ways()[way].1);
        lines.push(line("  lost", bins().map(|bins| percent(bins.lost_share()))));
        lines.push(line("  messages", bins().map(|bins| bins.sent().to_string())));
    }
    lines.push(line("overhead", totals.iter().map(|total| percent(total.overhead_share()))));
    lines.join("\n")
}

fn line(name: &str, cells: impl Iterator<Item = String>) -> String {
    cells.fold(format!("{name:<15}"), |line, cell| line + &format!("{cell:>8}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_within_every_limit_above_its_delay() {
        let mut bins = Bins::default();
        assert_eq!((bins.shares(), bins.lost_share()), (None, None));
        for millis in [100, 125, 450, 500] {
            bins.arrive(Duration::from_millis(millis));
        }
        bins.lose(4);
        assert_eq!(bins.shares(), Some([0.125, 0.25, 0.25, 0.375]));
        assert_eq!((bins.sent(), bins.lost_share()), (8, Some(0.5)));
        let mut twice = bins;
        twice.append(&bins);
        assert_eq!((twice.sent(), twice.shares()), (16, bins.shares()));
    }

    #[test]
    fn the_text_has_a_column_for_each_size() {
        let size = |bytes| Size { up: ByteCount::new(bytes), down: ByteCount::new(400) };
        let mut round = Round::default();
        round.end_to_end.arrive(Duration::from_millis(200));
        (round.wire, round.payload) = (ByteCount::new(100), ByteCount::new(75));
        let trials = [150, 1500].map(|bytes| Trial { size: size(bytes), rounds: vec![round] });
        let text = text(&trials);
        assert!(text.starts_with("bytes up            150    1500\n"), "{text}");
        assert!(text.contains("\n  below 250 ms  100.0 % 100.0 %\n"), "{text}");
        assert!(text.ends_with("overhead         25.0 %  25.0 %"), "{text}");
        assert_eq!(table("bins", &trials).row_count(), 6);
        assert!(plot("bins", "Bins", &trials, "bytes", |s| s.up.get() as f64).to_svg().is_ok());
    }
}
