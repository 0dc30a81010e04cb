//! One quantity: published, expected, measured, and whether they agree.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::notation::number;

/// One quantity of a paper and what was measured in its place.
///
/// ```
/// use tautline_lab::experiment::{Row, Verdict};
///
/// let row = Row::new("gain at 0.95", "ms", 5.83).published(6.0).within(0.05);
/// assert_eq!(row.verdict(), Verdict::Within);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Names the quantity, with the conditions that tell it from its neighbours.
    pub quantity: String,
    /// The unit of all three numbers; empty for a ratio or a count.
    pub unit: String,
    /// What the paper prints, if it prints it.
    pub published: Option<f64>,
    /// What is right where the paper errs, or what theory says; goes before `published`.
    pub reference: Option<f64>,
    /// A bar that is asked for where no theory gives a number: a demand, no truth; goes before both.
    #[serde(default)]
    pub asked: Option<f64>,
    /// What came out here.
    #[serde(deserialize_with = "number_or_none")]
    pub measured: f64,
    /// How far `measured` may be from [`Row::expected`].
    pub tolerance: Tolerance,
    /// Why the tolerance is that wide, or what makes the row true by construction; empty where nothing is
    /// judged.
    #[serde(default)]
    pub reason: String,
    /// Whether the machine's clock measured it, so that a busy machine makes it worse.
    #[serde(default)]
    pub is_clocked: bool,
    /// What a reader of this row must know; may be empty.
    pub note: String,
}

/// The distance that a measured value may have from the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Shown, not judged.
    None,
    /// Shown, not judged: it could not come out otherwise.
    ByConstruction,
    /// Off by at most this share of the expected value.
    Relative(f64),
    /// Off by at most so much, in the row's unit.
    Absolute(f64),
    /// At least this many times the expected value: a speed.
    AtLeast(f64),
    /// At most this many times the expected value: a delay, a bound.
    AtMost(f64),
}

/// What a row says about the reproduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within its tolerance.
    Within,
    /// Out of it, not a number, or with a tolerance but nothing to hold it against.
    Out,
    /// Not judged.
    Shown,
}

impl Row {
    /// Returns a measured quantity that nothing is known about yet: it is shown, not judged.
    pub fn new(quantity: impl Into<String>, unit: &str, measured: f64) -> Self {
        Self {
            quantity: quantity.into(),
            unit: unit.to_owned(),
            published: None,
            reference: None,
            asked: None,
            measured,
            tolerance: Tolerance::None,
            reason: String::new(),
            is_clocked: false,
            note: String::new(),
        }
    }

    /// Adds what the paper prints.
    #[must_use]
    pub fn published(mut self, value: f64) -> Self {
        self.published = Some(value);
        self
    }

    /// Adds what is right or what theory says; the row is then judged by this.
    #[must_use]
    pub fn reference(mut self, value: f64) -> Self {
        self.reference = Some(value);
        self
    }

    /// Adds a bar that is asked for where no theory gives a number; the row is then judged by this, with
    /// [`at_most`](Row::at_most) or [`at_least`](Row::at_least), and its reason says whose bar it is.
    #[must_use]
    pub fn asked(mut self, bar: f64) -> Self {
        self.asked = Some(bar);
        self
    }

    /// Judges the row: off by at most this share of the expected value.
    #[must_use]
    pub fn within(mut self, share: f64) -> Self {
        self.tolerance = Tolerance::Relative(share);
        self
    }

    /// Judges the row: off by at most so much, in the row's unit.
    #[must_use]
    pub fn within_absolute(mut self, difference: f64) -> Self {
        self.tolerance = Tolerance::Absolute(difference);
        self
    }

    /// Judges the row: at least this many times the expected value.
    #[must_use]
    pub fn at_least(mut self, factor: f64) -> Self {
        self.tolerance = Tolerance::AtLeast(factor);
        self
    }

    /// Judges the row: at most this many times the expected value.
    #[must_use]
    pub fn at_most(mut self, factor: f64) -> Self {
        self.tolerance = Tolerance::AtMost(factor);
        self
    }

    /// Says why the tolerance is that wide: every row that is judged does.
    #[must_use]
    pub fn because(mut self, words: impl Into<String>) -> Self {
        self.reason = words.into();
        self
    }

    /// Shows the row and judges it never: these words say why it could not come out otherwise.
    #[must_use]
    pub fn by_construction(mut self, words: impl Into<String>) -> Self {
        self.tolerance = Tolerance::ByConstruction;
        self.because(words)
    }

    /// Says that the machine's clock measured it: a quick run may share its machine with others.
    #[must_use]
    pub fn clocked(mut self) -> Self {
        self.is_clocked = true;
        self
    }

    /// Adds words for the reader.
    #[must_use]
    pub fn note(mut self, words: impl Into<String>) -> Self {
        self.note = words.into();
        self
    }

    /// Returns what `measured` is held against: a bar that is asked for, the reference, or else what the paper
    /// prints.
    pub fn expected(&self) -> Option<f64> {
        self.asked.or(self.reference).or(self.published)
    }

    /// Returns the largest factor by which `measured` may miss what it is held against, either way.
    ///
    /// None where nothing is judged, and where 0 is expected, of which nothing is a multiple.
    pub fn looseness(&self) -> Option<f64> {
        let expected = self.expected()?.abs();
        let of_share = |share: f64| match share < 1.0 {
            true => (1.0 + share).max(1.0 / (1.0 - share)),
            false => f64::INFINITY,
        };
        match self.tolerance {
            Tolerance::None | Tolerance::ByConstruction => None,
            Tolerance::Relative(share) => Some(of_share(share)),
            Tolerance::Absolute(_) if expected == 0.0 => None,
            Tolerance::Absolute(most) => Some(of_share(most / expected)),
            Tolerance::AtLeast(factor) => Some(1.0 / factor),
            Tolerance::AtMost(factor) => Some(factor),
        }
    }

    /// Judges the row.
    pub fn verdict(&self) -> Verdict {
        if matches!(self.tolerance, Tolerance::None | Tolerance::ByConstruction) {
            return Verdict::Shown;
        }
        let Some(expected) = self.expected() else { return Verdict::Out };
        let difference = (self.measured - expected).abs();
        let agrees = match self.tolerance {
            Tolerance::None | Tolerance::ByConstruction => true,
            Tolerance::Relative(share) => difference <= share * expected.abs(),
            Tolerance::Absolute(most) => difference <= most,
            Tolerance::AtLeast(factor) => self.measured >= factor * expected,
            Tolerance::AtMost(factor) => self.measured <= factor * expected,
        };
        if agrees { Verdict::Within } else { Verdict::Out }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Tolerance::None => Ok(()),
            Tolerance::ByConstruction => f.write_str("by construction"),
            Tolerance::Relative(share) => write!(f, "±{} %", number(share * 100.0)),
            Tolerance::Absolute(most) => write!(f, "±{}", number(most)),
            Tolerance::AtLeast(factor) => write!(f, "≥ {} ×", number(factor)),
            Tolerance::AtMost(factor) => write!(f, "≤ {} ×", number(factor)),
        }
    }
}

impl Verdict {
    /// Returns the word for it in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Out => "OUT",
            Verdict::Shown => "-",
        }
    }
}

/// Reads a number, or `null`, which is how JSON writes "not a number".
fn number_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(measured: f64) -> Row {
        Row::new("delay", "ms", measured).published(10.0)
    }

    #[test]
    fn each_tolerance_has_an_edge() {
        for (within, out) in [
            (row(10.99).within(0.1), row(11.01).within(0.1)),
            (row(9.01).within(0.1), row(8.99).within(0.1)),
            (row(10.2).within_absolute(0.25), row(10.3).within_absolute(0.25)),
            (row(20.0).at_least(2.0), row(19.9).at_least(2.0)),
            (row(5.0).at_most(0.5), row(5.1).at_most(0.5)),
        ] {
            assert_eq!(within.verdict(), Verdict::Within, "{within:?}");
            assert_eq!(out.verdict(), Verdict::Out, "{out:?}");
        }
    }

    #[test]
    fn looseness_is_the_factor_by_which_a_row_may_miss() {
        for (row, looseness) in [
            (row(1.0).within(0.5), Some(2.0)),
            (row(1.0).within(0.2), Some(1.25)),
            (row(1.0).within(1.0), Some(f64::INFINITY)),
            (row(1.0).within_absolute(5.0), Some(2.0)),
            (row(1.0).at_least(0.1), Some(10.0)),
            (row(1.0).at_most(3.0), Some(3.0)),
            (row(1.0).reference(0.0).within_absolute(0.1), None),
            (row(1.0), None),
        ] {
            assert_eq!(row.looseness(), looseness, "{row:?}");
        }
    }

    #[test]
    fn what_is_true_by_construction_is_not_judged() {
        let row = row(99.0).by_construction("the paper's own number");
        assert_eq!((row.verdict(), row.looseness()), (Verdict::Shown, None));
        assert_eq!(row.tolerance.to_string(), "by construction");
    }

    #[test]
    fn the_reference_goes_before_the_paper() {
        let row = row(12.0).reference(12.0).within(0.01);
        assert_eq!(row.verdict(), Verdict::Within);
    }

    #[test]
    fn a_bar_that_is_asked_for_goes_before_the_reference() {
        let row = row(12.0).reference(12.0).asked(11.0).at_most(1.0);
        assert_eq!((row.expected(), row.verdict()), (Some(11.0), Verdict::Out));
    }

    #[test]
    fn nothing_passes_by_lacking_a_number() {
        assert_eq!(row(f64::NAN).within(0.5).verdict(), Verdict::Out);
        assert_eq!(row(f64::NAN).at_least(0.0).verdict(), Verdict::Out);
        assert_eq!(Row::new("delay", "ms", 1.0).within(0.5).verdict(), Verdict::Out);
        assert_eq!(row(1.0).verdict(), Verdict::Shown);
    }

    #[test]
    fn not_a_number_survives_json() {
        let json = serde_json::to_string(&row(f64::NAN).at_most(1.0)).unwrap();
        let read: Row = serde_json::from_str(&json).unwrap();
        assert!(read.measured.is_nan() && read.verdict() == Verdict::Out, "{json}");
    }
}
