//! Rate-quality curves of every mode, and whether refresh is the best of those compared in the
//! paper.

use super::loss_recovery::{BAND, COLUMNS, INTER, INTRA, MODES, modes};
use crate::experiment::{Cell, Row, Table};
use crate::plot::{Axis, Plot, Series};

/// Rate-quality curves of all modes on one footage.
pub(super) struct Curves<'a> {
    footage: &'a str,
    average: Average,
    /// Points (dB, Mbit/s) of each mode, in the order of [`modes`].
    modes: [Vec<(f64, f64)>; MODES],
}

/// Items over which a PSNR is averaged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Average {
    /// Single slices, as in the paper.
    Slices,
    /// Complete pictures.
    Pictures,
}

/// Rate at which a curve reaches a quality.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Reach {
    /// At this rate, Mbit/s.
    At(f64),
    /// No measured rate suffices.
    Never,
    /// At a rate below the measured ones.
    Below,
}

impl Average {
    pub(super) const ALL: [Self; 2] = [Self::Slices, Self::Pictures];

    fn name(self) -> &'static str {
        match self {
            Self::Slices => "slices",
            Self::Pictures => "pictures",
        }
    }
}

impl<'a> Curves<'a> {
    /// Creates curves from trials in the order of modes, equally many of each; `point` returns dB
    /// and Mbit/s.
    pub(super) fn new<Trial>(
        footage: &'a str,
        average: Average,
        trials: &[Trial],
        point: impl Fn(&Trial) -> (f64, f64),
    ) -> Self {
        let each = trials.len() / MODES;
        let curve = |mode: usize| trials[mode * each..][..each].iter().map(&point).collect();
        Self { footage, average, modes: std::array::from_fn(curve) }
    }

    /// Returns the rate that each mode needs for a quality in dB, Mbit/s; `None` if the quality is
    /// outside what was measured of the mode.
    pub(super) fn rates(&self, quality: f64) -> [Option<f64>; MODES] {
        self.modes.each_ref().map(|curve| rate_at(curve, quality))
    }

    /// Returns the quality of each mode at its given rate, dB; `None` without a rate, or if the
    /// rate is outside what was measured of the mode.
    pub(super) fn qualities(&self, rates: [Option<f64>; MODES]) -> [Option<f64>; MODES] {
        std::array::from_fn(|mode| value_at(&self.modes[mode], rates[mode]?))
    }

    /// Returns the best quality of each mode at any rate, dB.
    pub(super) fn best(&self) -> [Option<f64>; MODES] {
        self.modes.each_ref().map(|curve| curve.iter().map(|point| point.0).max_by(f64::total_cmp))
    }

    /// Adds a line to a [table of modes](table).
    pub(super) fn list(&self, values: [Option<f64>; MODES], table: &mut Table) {
        let cells: [Cell; MODES + 2] = std::array::from_fn(|column| match column {
            0 => self.footage.into(),
            1 => self.average.name().into(),
            _ => values[column - 2].into(),
        });
        table.push(cells);
    }

    /// Returns a row with the quality up to which refresh is ahead of intra; NaN if it is nowhere.
    /// The row's note says whether the paper's claim, that refresh is the best, holds at each of
    /// [`PAPERS_BEST`].
    pub(super) fn claim(&self) -> Row {
        let words = PAPERS_BEST.map(|quality| format!("{} at {quality} dB", self.judge(quality)));
        let quantity = self.named("refresh ahead of intra up to");
        let crossing = self.crossing();
        let never = if crossing.is_none() { "Nowhere. " } else { "" };
        Row::new(quantity, "dB", crossing.unwrap_or(f64::NAN))
            .note(format!("{never}The paper's claim {}.", words.join(", ")))
    }

    /// Returns the rate of refresh at the paper's qualities, relative to the lower rate of intra
    /// and inter: the paper's claim as stated. It is 0 if neither of those reaches the quality, and
    /// NaN if refresh does not. A rate below the measured range counts as 0.
    pub(super) fn least(&self) -> [Row; PAPERS_BEST.len()] {
        PAPERS_BEST.map(|quality| {
            let [refresh, other] = self.least_rates(quality);
            let share = match (refresh, other) {
                (Some(refresh), Some(other)) => refresh / other,
                (Some(_), None) => 0.0,
                (None, _) => f64::NAN,
            };
            let quantity =
                format!("rate of refresh over the least of intra and inter, {quality} dB");
            Row::new(self.named(&quantity), "", share).published(1.0)
        })
    }

    /// Adds the rates of all modes compared in the paper, at the qualities of its claim, to a
    /// [table of claims](claims).
    pub(super) fn list_claims(&self, table: &mut Table) {
        for quality in PAPERS_BEST {
            let [band, columns, intra, inter] =
                [BAND, COLUMNS, INTRA, INTER].map(|name| match self.reach(name, quality) {
                    Reach::At(rate) => Cell::Number(rate),
                    Reach::Never => "never".into(),
                    Reach::Below => "below what was measured".into(),
                });
            table.push([
                self.footage.into(),
                self.average.name().into(),
                quality.into(),
                self.judge(quality).into(),
                band,
                columns,
                intra,
                inter,
            ]);
        }
    }

    /// Returns a quantity's name, with its population and footage.
    pub(super) fn named(&self, quantity: &str) -> String {
        format!("{quantity}, by {}, {}", self.average.name(), self.footage)
    }

    /// Returns in words whether the paper's claim holds at a quality: refresh without feedback
    /// needs a lower rate than intra and inter, or reaches the quality where they do not. Says that
    /// it is not measured if both lowest rates are below the measured range; if one is, it counts
    /// as the lower.
    fn judge(&self, quality: f64) -> &'static str {
        match self.least_rates(quality).into() {
            (Some(0.0), Some(0.0)) => "is not measured",
            (Some(refresh), Some(other)) if refresh < other => "holds",
            (Some(_), None) => "holds",
            (Some(_) | None, _) => "does not hold",
        }
    }

    /// Returns two rates in Mbit/s: the lowest of the refresh modes without feedback, and the
    /// lowest of intra and inter. A rate is 0 if it is below the measured range, and `None` if no
    /// rate suffices.
    fn least_rates(&self, quality: f64) -> [Option<f64>; 2] {
        [[BAND, COLUMNS], [INTRA, INTER]].map(|names| {
            let rates = names.iter().filter_map(|name| match self.reach(name, quality) {
                Reach::At(rate) => Some(rate),
                Reach::Below => Some(0.0),
                Reach::Never => None,
            });
            rates.min_by(f64::total_cmp)
        })
    }

    fn reach(&self, name: &str, quality: f64) -> Reach {
        let curve = &self.modes[index(name)];
        match rate_at(curve, quality) {
            Some(rate) => Reach::At(rate),
            None if curve.iter().all(|point| point.0 < quality) => Reach::Never,
            None => Reach::Below,
        }
    }

    /// Returns the quality at the highest rate at which the better of band and columns is above
    /// intra; `None` if it never is.
    fn crossing(&self) -> Option<f64> {
        let intra = &self.modes[index(INTRA)];
        let (most, least) = (intra.first()?.1, intra.last()?.1);
        let rates = (0..=CROSSING_STEPS)
            .map(|step| most * (least / most).powf(f64::from(step) / f64::from(CROSSING_STEPS)));
        let mut ahead = rates.filter_map(|rate| {
            let refresh = [BAND, COLUMNS].map(|name| value_at(&self.modes[index(name)], rate));
            let best = refresh.into_iter().flatten().max_by(f64::total_cmp)?;
            (best > value_at(intra, rate)?).then_some(best)
        });
        ahead.next()
    }

    /// Plots the curves; those of modes with loss feedback are dashed.
    pub(super) fn plot(&self, loss: &str) -> Plot {
        let by = self.average.name();
        let name = format!("{by}-{}", self.footage);
        let title = format!("{loss}, PSNR by {by}: {}", self.footage);
        let series = modes().into_iter().zip(&self.modes).map(|(mode, curve)| {
            let points = curve.iter().map(|(psnr, mbps)| (*mbps, *psnr)).collect();
            let series = Series::marked(mode.name, points);
            if mode.answers_loss() { series.dashed() } else { series }
        });
        Plot::new(&name, &title, Axis::log("Mbit/s"), Axis::linear("luma PSNR, dB"))
            .with_all(series)
            .mark_y(QUALITY_DB, "36 dB")
    }
}

/// Returns a table with one column per mode, for [`Curves::list`].
pub(super) fn table(name: &str, caption: &str) -> Table {
    let modes = modes();
    let columns: [&str; MODES + 2] = std::array::from_fn(|column| match column {
        0 => "footage",
        1 => "average_by",
        _ => modes[column - 2].name,
    });
    Table::new(name, columns).shown(caption)
}

/// Returns the value of the mode with this name; NaN if it has none.
pub(super) fn of(values: [Option<f64>; MODES], name: &str) -> f64 {
    values[index(name)].unwrap_or(f64::NAN)
}

/// Returns a table for [`Curves::list_claims`].
pub(super) fn claims(loss: &str) -> Table {
    let columns = [
        "footage",
        "average_by",
        "psnr_db",
        "claim",
        "refresh: band",
        "refresh: columns",
        "intra",
        "inter",
    ];
    let caption =
        format!("The paper's claim that refresh needs least, with {loss}: Mbit/s of each");
    Table::new("claims", columns).shown(&caption)
}

fn index(name: &str) -> usize {
    let mut modes = modes().into_iter();
    modes.position(|mode| mode.name == name).expect("it is one of the modes")
}

/// Returns the rate at which a curve of (value, rate) has a value, interpolated in the logarithm of
/// the rate; `None` if no two neighbouring points enclose the value.
fn rate_at(curve: &[(f64, f64)], value: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| (pair[0].0 >= value) != (pair[1].0 >= value))?;
    let share = (value - pair[0].0) / (pair[1].0 - pair[0].0);
    Some((pair[0].1.ln() + share * (pair[1].1.ln() - pair[0].1.ln())).exp())
}

/// Returns the value of a curve of (value, rate) at a rate, interpolated in the logarithm of the
/// rate; `None` if no two neighbouring points enclose the rate.
fn value_at(curve: &[(f64, f64)], rate: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| (pair[0].1 >= rate) != (pair[1].1 >= rate))?;
    let share = (rate / pair[0].1).ln() / (pair[1].1 / pair[0].1).ln();
    Some(pair[0].0 + share * (pair[1].0 - pair[0].0))
}

/// The most important quality in the paper, dB.
pub(super) const QUALITY_DB: f64 = 36.0;
/// Qualities in dB at which the paper claims that refresh is the best.
const PAPERS_BEST: [f64; 2] = [QUALITY_DB, 37.0];
const CROSSING_STEPS: u32 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_between_two_measurements_is_their_geometric_mean() {
        let curve = [(40.0, 8.0), (32.0, 2.0)];
        assert!((rate_at(&curve, 36.0).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(rate_at(&curve, 41.0), None);
        assert!((value_at(&curve, 4.0).unwrap() - 36.0).abs() < 1e-9);
        assert_eq!(value_at(&curve, 9.0), None);
    }

    #[test]
    fn the_claim_holds_as_far_as_refresh_needs_least() {
        // Intra is ahead from 36.2 dB on; inter never gets there.
        let points = |name: &str| match name {
            INTRA => [(42.0, 10.0), (34.0, 4.5)],
            INTER => [(34.0, 10.0), (30.0, 1.0)],
            _ => [(40.0, 10.0), (34.0, 4.0)],
        };
        let trials: Vec<(f64, f64)> = modes().iter().flat_map(|mode| points(mode.name)).collect();
        let curves = Curves::new("drawn", Average::Slices, &trials, |point| *point);
        let row = curves.claim();
        assert!(36.0 < row.measured && row.measured < 37.0, "{row:?}");
        assert_eq!(row.note, "The paper's claim holds at 36 dB, does not hold at 37 dB.");
        let mut table = claims("a loss");
        curves.list_claims(&mut table);
        assert!(table.to_csv().lines().nth(2).unwrap().ends_with(",never"), "{}", table.to_csv());
        assert_eq!(curves.best()[index(INTRA)], Some(42.0));
        assert_eq!(curves.reach(INTRA, 33.0), Reach::Below);
    }
}
