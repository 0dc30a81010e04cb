//! Plots in one common style: described here, drawn as SVG by `plot/draw.rs`.
//!
//! The paper's data is black, dashed and hollow ([`Series::published`]). Data measured here has the
//! colours of Okabe and Ito, which colour-blind readers can distinguish, and different markers for
//! monochrome display.

mod axis;
mod draw;

pub use axis::Axis;

use crate::notation::is_name;

/// One figure: two axes with series and marks.
///
/// ```
/// use tautline_lab::plot::{Axis, Plot, Series};
///
/// let plot = Plot::new("delay-cdf", "How long a block takes", Axis::linear("delay, ms"),
///                      Axis::linear("share of blocks").range(0.0, 1.0))
///     .with(Series::steps("6 of 8", vec![(18.0, 0.0), (22.0, 0.5), (29.0, 1.0)]))
///     .mark_y(0.95, "0.95");
/// assert!(plot.to_svg()?.starts_with("<svg"));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plot {
    name: String,
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

/// One curve, scatter or set of bars, with its entry in the legend.
#[derive(Clone, Debug)]
pub struct Series {
    label: String,
    points: Vec<(f64, f64)>,
    /// Half lengths of the error bars along y; may be shorter than the points, or empty.
    reaches: Vec<f64>,
    form: Form,
    published: bool,
    dashed: bool,
    colour: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Line,
    /// A line with a marker on every point.
    Marked,
    Points,
    /// Horizontal from each point to the next, then vertical: a distribution function.
    Steps,
    /// From the axis up, centred on x; bars of several series are adjacent.
    Bars,
    /// A block from each first point of a pair to the second: a duration.
    Spans,
}

/// A thin line across the plot.
#[derive(Clone, Debug)]
enum Mark {
    X(f64, String),
    Y(f64, String),
}

impl Plot {
    /// Creates an empty plot that becomes `<name>.svg`.
    ///
    /// # Panics
    /// If the name contains anything but lower-case letters, digits and hyphens.
    pub fn new(name: &str, title: &str, x: Axis, y: Axis) -> Self {
        assert!(is_name(name), "{name:?} cannot name a file");
        let (name, title) = (name.to_owned(), title.to_owned());
        Self { name, title, x, y, series: Vec::new(), marks: Vec::new() }
    }

    /// Adds a series; later ones are drawn over earlier ones.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds several series.
    #[must_use]
    pub fn with_all(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// Adds a thin vertical line at `x`; its label may be empty.
    #[must_use]
    pub fn mark_x(mut self, x: f64, label: &str) -> Self {
        self.marks.push(Mark::X(x, label.to_owned()));
        self
    }

    /// Adds a thin horizontal line at `y`; its label may be empty.
    #[must_use]
    pub fn mark_y(mut self, y: f64, label: &str) -> Self {
        self.marks.push(Mark::Y(y, label.to_owned()));
        self
    }

    /// Returns the file's name without `.svg`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the title of the plot.
    pub fn title(&self) -> &str {
        &self.title
    }
}

impl Series {
    /// Returns a line through the points.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Line)
    }

    /// Returns a line with a marker on each point: for few points, each of them a measurement.
    pub fn marked(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Marked)
    }

    /// Returns markers without a line.
    pub fn points(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Points)
    }

    /// Returns steps, horizontal from each point to the next, as in distribution functions.
    pub fn steps(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Steps)
    }

    /// Returns bars from the axis up to each point; bars of several series are adjacent.
    pub fn bars(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Bars)
    }

    /// Returns horizontal blocks, half a unit of y high, each from one x to another at a y:
    /// durations.
    pub fn spans(
        label: impl Into<String>,
        spans: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Self {
        let ends = spans.into_iter().flat_map(|(from, to, y)| [(from, y), (to, y)]);
        Self::new(label, ends.collect(), Form::Spans)
    }

    /// Sets vertical error bars with these half lengths, one per point; further points have none.
    #[must_use]
    pub fn with_intervals(mut self, half_widths: Vec<f64>) -> Self {
        self.reaches = half_widths;
        self
    }

    /// Draws the series as numbers from the paper: black, dashed, hollow.
    #[must_use]
    pub fn published(mut self) -> Self {
        self.published = true;
        self
    }

    /// Draws the line dashed: theory next to measurements.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Uses the palette colour `index`, so that related series look alike; beyond the palette it
    /// begins anew.
    #[must_use]
    pub fn colour(mut self, index: usize) -> Self {
        self.colour = Some(index);
        self
    }

    fn new(label: impl Into<String>, points: Vec<(f64, f64)>, form: Form) -> Self {
        Self {
            label: label.into(),
            points,
            reaches: Vec::new(),
            form,
            published: false,
            dashed: false,
            colour: None,
        }
    }
}

#[cfg(test)]
mod tests;
