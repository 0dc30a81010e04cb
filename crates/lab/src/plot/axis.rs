//! Axes: positions of values, ticks and their labels.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::notation::number;

/// One axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    scale: Scale,
    range: Option<(f64, f64)>,
    ticks: Option<Vec<f64>>,
}

#[derive(Clone, Debug)]
enum Scale {
    Linear,
    Log,
    Categories(Vec<String>),
}

/// An axis fitted to data: positions are linear in the picture.
#[derive(Clone, Debug)]
pub(super) struct Laid {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Positions with a label and a grid line.
    pub(super) ticks: Vec<(f64, String)>,
    /// Positions with only a fainter line.
    pub(super) ticks_minor: Vec<f64>,
    log: bool,
}

impl Axis {
    /// Creates a linear axis; the label names the quantity and its unit, `delay, ms`.
    pub fn linear(label: &str) -> Self {
        Self::new(label, Scale::Linear)
    }

    /// Creates a logarithmic axis; values that are not positive are not drawn.
    pub fn log(label: &str) -> Self {
        Self::new(label, Scale::Log)
    }

    /// Creates an axis of names: the first is at x = 0, the next at 1.
    pub fn categories<S: Into<String>>(label: &str, names: impl IntoIterator<Item = S>) -> Self {
        Self::new(label, Scale::Categories(names.into_iter().map(Into::into).collect()))
    }

    /// Sets the exact range; points outside are clipped. By default the data determine it.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Puts ticks with labels at exactly these values. By default they are at round values.
    #[must_use]
    pub fn ticks(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = Some(values.into_iter().collect());
        self
    }

    fn new(label: &str, scale: Scale) -> Self {
        Self { label: label.to_owned(), scale, range: None, ticks: None }
    }

    /// Fits the axis to `values`; `from_zero` includes zero, for bars. An axis of names ignores
    /// both, and a logarithmic one ignores `from_zero`.
    pub(super) fn lay(&self, values: impl Iterator<Item = f64>, from_zero: bool) -> Laid {
        match &self.scale {
            Scale::Categories(names) => Laid {
                low: -0.5,
                high: names.len() as f64 - 0.5,
                ticks: names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| (at as f64, name.clone()))
                    .collect(),
                ticks_minor: Vec::new(),
                log: false,
            },
            Scale::Linear => self.lay_linear(values, from_zero),
            Scale::Log => self.lay_log(values),
        }
    }

    fn lay_linear(&self, values: impl Iterator<Item = f64>, from_zero: bool) -> Laid {
        let (low, high) = self.range.unwrap_or_else(|| {
            let (low, high) = extent(values).unwrap_or((0.0, 1.0));
            // Start at zero, unless the values are so far from it that most of the axis would be
            // empty.
            let low = if from_zero || (low > 0.0 && low < high / 2.0) { low.min(0.0) } else { low };
            if low < high { (low, high) } else { (low - 0.5, high + 0.5) }
        });
        let step = nice_step((high - low) / TICKS_ABOUT);
        let (low, high) = match self.range {
            Some(range) => range,
            None => ((low / step).floor() * step, (high / step - 1e-9).ceil() * step),
        };
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let all = || (first..=last).map(|tick| tick as f64 * step);
        let ticks = self.ticks.clone().unwrap_or_else(|| all().collect());
        let ticks = ticks.into_iter().map(|tick| (tick, number(tick))).collect();
        Laid { low, high, ticks, ticks_minor: Vec::new(), log: false }
    }

    fn lay_log(&self, values: impl Iterator<Item = f64>) -> Laid {
        let (low, high) = self.range.unwrap_or_else(|| {
            let (low, high) = extent(values.filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
            // Whole decades if there are several, otherwise no more space than the data need.
            if high / low > 30.0 {
                (10_f64.powf(low.log10().floor()), 10_f64.powf((high.log10() - 1e-9).ceil()))
            } else {
                (low / 1.3, high * 1.3)
            }
        });
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let within = |value: &f64| (low * 0.999..=high * 1.001).contains(value);
        let multiples = |of: &'static [f64]| {
            let powers = decades.clone().map(|power| 10_f64.powi(power));
            powers.flat_map(|power| of.iter().map(move |one| one * power)).filter(within)
        };
        let span = (high / low).log10();
        let of: &[f64] = match span {
            span if span > 2.5 => &[1.0],
            span if span > 1.2 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let ticks = self.ticks.clone().unwrap_or_else(|| multiples(of).collect());
        Laid {
            low: low.log10(),
            high: high.log10(),
            ticks: ticks.iter().map(|tick| (tick.log10(), log_words(*tick))).collect(),
            ticks_minor: match self.ticks {
                Some(_) => Vec::new(),
                None => multiples(&[2., 3., 4., 5., 6., 7., 8., 9.]).map(f64::log10).collect(),
            },
            log: true,
        }
    }
}

impl Laid {
    /// Returns the position of a value, or `None` if it cannot be on this axis: NaN, an infinity,
    /// or on a logarithmic axis a value that is not positive.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let position = if self.log { value.log10() } else { value };
        position.is_finite().then_some(position)
    }
}

impl Ranged for Laid {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, position: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (position - self.low) / (self.high - self.low);
        first + (share * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let mut points: Vec<f64> = self.ticks.iter().map(|(at, _)| *at).collect();
        if hint.weight().allow_light_points() {
            points.extend(&self.ticks_minor);
        }
        points
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Laid {
    /// Returns the label of the tick at a position; empty where no tick is.
    fn format_ext(&self, position: &f64) -> String {
        let here = |(at, _): &&(f64, String)| at == position;
        self.ticks.iter().find(here).map_or_else(String::new, |(_, words)| words.clone())
    }
}

fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |extent: Option<(f64, f64)>, value| {
        match extent {
            Some((low, high)) => Some((low.min(value), high.max(value))),
            None => Some((value, value)),
        }
    })
}

/// Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

/// Formats a value on a logarithmic axis: plain from 0.001 to below 10 million, otherwise with a
/// power of ten.
fn log_words(value: f64) -> String {
    if (0.001..1e7).contains(&value) {
        return thousands(&number(value));
    }
    let power = value.log10().floor();
    let mantissa = number(value / 10_f64.powf(power));
    let digits = (power as i32).to_string();
    let raised: String = digits.chars().map(superscript).collect();
    if mantissa == "1" { format!("10{raised}") } else { format!("{mantissa}·10{raised}") }
}

fn superscript(digit: char) -> char {
    match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

/// Puts thin spaces between groups of three digits in integers of five or more; other text stays
/// unchanged.
pub(crate) fn thousands(digits: &str) -> String {
    if digits.len() < 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.to_owned();
    }
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    grouped
}

const TICKS_ABOUT: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn words(laid: &Laid) -> Vec<&str> {
        laid.ticks.iter().map(|(_, words)| words.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        let laid = Axis::linear("").lay([3.0, 41.7].into_iter(), false);
        assert_eq!(words(&laid), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!((laid.low, laid.high), (0.0, 50.0));
        let laid = Axis::linear("").lay([0.12, 0.14].into_iter(), false);
        assert_eq!(words(&laid), ["0.12", "0.125", "0.13", "0.135", "0.14"]);
    }

    #[test]
    fn log_axes_have_decades() {
        let laid = Axis::log("").lay([218.0, 1e6].into_iter(), false);
        assert_eq!((laid.low, laid.high), (2.0, 6.0));
        assert_eq!(
            words(&laid),
            ["100", "1000", "10\u{2009}000", "100\u{2009}000", "1\u{2009}000\u{2009}000"]
        );
        let laid = Axis::log("").range(1e-6, 1e-3).lay([].into_iter(), false);
        assert_eq!(words(&laid), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001"]);
        assert_eq!(laid.position(0.0), None);
    }

    #[test]
    fn one_value_and_none_still_make_an_axis() {
        for laid in [
            Axis::linear("").lay([5.0].into_iter(), false),
            Axis::linear("").lay([].into_iter(), false),
            Axis::log("").lay([f64::NAN, -1.0].into_iter(), false),
            Axis::log("").lay([5.0].into_iter(), false),
        ] {
            assert!(laid.low < laid.high && !laid.ticks.is_empty(), "{laid:?}");
        }
    }
}
