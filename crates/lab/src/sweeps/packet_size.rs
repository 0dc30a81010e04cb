//! Packet size for a link: delay bins, and the size that they recommend ([UGV]).
//!
//! A measurement, on models or on a live session, fills one [`Trial`] per [`Size`] and calls
//! [`Recommendation::of`]. A trial consists of rounds, so that its shares have an error. Round `i`
//! of every trial should have the same conditions: the same seed, or the same minute.

mod bins;
mod recommendation;
pub mod sweep;
mod trial;

pub use bins::{Bins, CHOSEN_BY, EFFECTS, LIMITS};
pub use recommendation::Recommendation;
pub use trial::{Round, Size, Trial};

use crate::experiment::Table;
use crate::plot::{Axis, Plot, Series};

/// Returns the table of all bins, with one line per size and kind of message.
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

/// Plots the share of end-to-end messages within each limit, for the sizes that have such messages.
/// `x` is the label of the axis, and `at` returns the position of a size on it.
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

/// Formats the paper's table for readers: a block of lines per kind of message, a column per size.
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
    use tautline_units::{ByteCount, Duration};

    use super::*;

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
