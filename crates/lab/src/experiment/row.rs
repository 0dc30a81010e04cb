//! One quantity: published, expected and measured values, and their agreement.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::notation::number;

/// One quantity of a paper and its measured counterpart.
///
/// ```
/// use tautline_lab::experiment::{Row, Verdict};
///
/// let row = Row::new("gain at 0.95", "ms", 5.83).published(6.0).within(0.05);
/// assert_eq!(row.verdict(), Verdict::Within);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the quantity, with the conditions that distinguish it from others.
    pub quantity: String,
    /// Unit of the published, the expected and the measured value; empty for a ratio or a count.
    pub unit: String,
    /// Value printed in the paper, if any.
    pub published: Option<f64>,
    /// The right value if the paper errs, or the theoretical one; takes precedence over
    /// `published`.
    pub reference: Option<f64>,
    /// A requirement without a theoretical value; takes precedence over `reference` and
    /// `published`.
    #[serde(default)]
    pub asked: Option<f64>,
    /// Value measured here; NaN if there is none.
    #[serde(deserialize_with = "number_or_none")]
    pub measured: f64,
    /// Permitted distance of `measured` from [`Row::expected`].
    pub tolerance: Tolerance,
    /// Reason for the width of the tolerance, or why the row is true by construction; empty if not
    /// judged.
    #[serde(default)]
    pub reason: String,
    /// True if the machine's clock measured it, so that a busy machine affects it.
    #[serde(default)]
    pub is_clocked: bool,
    /// Information for the reader of this row; may be empty.
    pub note: String,
}

/// Permitted distance between the measured and the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// Shown, not judged.
    None,
    /// Shown, not judged: the result is certain.
    ByConstruction,
    /// At most this relative deviation from the expected value.
    Relative(f64),
    /// At most this deviation, in the row's unit.
    Absolute(f64),
    /// At least this multiple of the expected value: a speed.
    AtLeast(f64),
    /// At most this multiple of the expected value: a delay, a bound.
    AtMost(f64),
}

/// Result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The measured value is within the row's tolerance.
    Within,
    /// The measured value is out of tolerance or not a number, or the row has a tolerance but no
    /// expected value.
    Out,
    /// No judgement: the row is only shown.
    Shown,
}

impl Row {
    /// Creates a row with a measured quantity and no comparison yet: it is shown, not judged.
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

    /// Sets the value printed in the paper.
    #[must_use]
    pub fn published(mut self, value: f64) -> Self {
        self.published = Some(value);
        self
    }

    /// Sets the right or theoretical value; the row is then judged against it.
    #[must_use]
    pub fn reference(mut self, value: f64) -> Self {
        self.reference = Some(value);
        self
    }

    /// Sets a requirement without a theoretical value. The row is then judged against it, with
    /// [`at_most`](Row::at_most) or [`at_least`](Row::at_least), and its reason states the origin
    /// of the requirement.
    #[must_use]
    pub fn asked(mut self, bar: f64) -> Self {
        self.asked = Some(bar);
        self
    }

    /// Sets the tolerance: at most this relative deviation from the expected value; 0.05 is 5 %.
    #[must_use]
    pub fn within(mut self, share: f64) -> Self {
        self.tolerance = Tolerance::Relative(share);
        self
    }

    /// Sets the tolerance: at most this deviation from the expected value, in the row's unit.
    #[must_use]
    pub fn within_absolute(mut self, difference: f64) -> Self {
        self.tolerance = Tolerance::Absolute(difference);
        self
    }

    /// Sets the tolerance: the measured value must be at least this multiple of the expected one.
    #[must_use]
    pub fn at_least(mut self, factor: f64) -> Self {
        self.tolerance = Tolerance::AtLeast(factor);
        self
    }

    /// Sets the tolerance: the measured value must be at most this multiple of the expected one.
    #[must_use]
    pub fn at_most(mut self, factor: f64) -> Self {
        self.tolerance = Tolerance::AtMost(factor);
        self
    }

    /// Sets the reason for the width of the tolerance; every judged row has one.
    #[must_use]
    pub fn because(mut self, words: impl Into<String>) -> Self {
        self.reason = words.into();
        self
    }

    /// Shows the row without ever judging it; `words` are the reason why its result is certain.
    #[must_use]
    pub fn by_construction(mut self, words: impl Into<String>) -> Self {
        self.tolerance = Tolerance::ByConstruction;
        self.because(words)
    }

    /// Marks the row as measured by the machine's clock: a quick run may share its machine with
    /// others.
    #[must_use]
    pub fn clocked(mut self) -> Self {
        self.is_clocked = true;
        self
    }

    /// Sets a note for the reader.
    #[must_use]
    pub fn note(mut self, words: impl Into<String>) -> Self {
        self.note = words.into();
        self
    }

    /// Returns the value against which `measured` is judged: the requirement, the reference, or
    /// else the value printed in the paper; `None` if none of the three is set.
    pub fn expected(&self) -> Option<f64> {
        self.asked.or(self.reference).or(self.published)
    }

    /// Returns the largest permitted factor between `measured` and the expected value, in either
    /// direction.
    ///
    /// `None` if the row is not judged or has no expected value, and for an absolute tolerance
    /// around 0, which has no multiples. Infinite if the tolerance admits 0.
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

    /// Compares the measured value with the expected one, by the row's tolerance. A row without a
    /// tolerance, or right by construction, is only shown; one with a tolerance but no expected
    /// value is out.
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
    /// Returns the verdict's word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Out => "OUT",
            Verdict::Shown => "-",
        }
    }
}

/// Deserializes a number, or `null`, which is the JSON form of NaN.
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
    fn a_row_true_by_construction_is_not_judged() {
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
