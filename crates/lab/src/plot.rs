//! Plots in one house look: what is drawn here, and `plot/draw.rs` draws it as SVG.
//!
//! What a paper published is black, dashed and hollow ([`Series::published`]); what was measured
//! here has the colours of Okabe and Ito, which colour-blind eyes tell apart, and a marker of its
//! own for eyes that see no colour at all.

mod axis;
mod draw;

pub use axis::Axis;

use crate::notation::is_name;

/// One figure: two axes and what stands between them.
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

/// One curve, cloud or row of bars, with its entry in the legend.
#[derive(Clone, Debug)]
pub struct Series {
    label: String,
    points: Vec<(f64, f64)>,
    /// How far each point may be off along y, both ways; of fewer points than there are, or of none.
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
    /// Level from each point to the next, then up: a distribution function.
    Steps,
    /// From the axis up, centred on x; the series of a plot stand side by side.
    Bars,
    /// From every odd point to the next: when something lasts.
    Spans,
}

/// A thin line across the plot.
#[derive(Clone, Debug)]
enum Mark {
    X(f64, String),
    Y(f64, String),
}

impl Plot {
    /// Returns an empty plot that becomes `<name>.svg`.
    ///
    /// # Panics
    /// When the name is not one of lower-case letters, digits and hyphens.
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

    /// Adds a thin upright line at `x`; its label may be empty.
    #[must_use]
    pub fn mark_x(mut self, x: f64, label: &str) -> Self {
        self.marks.push(Mark::X(x, label.to_owned()));
        self
    }

    /// Adds a thin level line at `y`; its label may be empty.
    #[must_use]
    pub fn mark_y(mut self, y: f64, label: &str) -> Self {
        self.marks.push(Mark::Y(y, label.to_owned()));
        self
    }

    /// Returns the file's name without `.svg`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the words above the plot.
    pub fn title(&self) -> &str {
        &self.title
    }
}

impl Series {
    /// Returns a line through the points.
    pub fn line(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Line)
    }

    /// Returns a line through the points with a marker on each: few points, each of them a measurement.
    pub fn marked(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Marked)
    }

    /// Draws markers alone.
    pub fn points(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Points)
    }

    /// Draws steps: level from each point to the next, as distribution functions are.
    pub fn steps(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Steps)
    }

    /// Draws bars from the axis up to each point; bars of several series stand side by side.
    pub fn bars(label: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self::new(label, points, Form::Bars)
    }

    /// Draws level blocks, half a unit of y high, each from one x to another at a y: when something
    /// lasts.
    pub fn spans(
        label: impl Into<String>,
        spans: impl IntoIterator<Item = (f64, f64, f64)>,
    ) -> Self {
        let ends = spans.into_iter().flat_map(|(from, to, y)| [(from, y), (to, y)]);
        Self::new(label, ends.collect(), Form::Spans)
    }

    /// Draws through each point an upright line, so much up and down: how sure it is.
    #[must_use]
    pub fn with_intervals(mut self, half_widths: Vec<f64>) -> Self {
        self.reaches = half_widths;
        self
    }

    /// Says that these are the paper's numbers: black, dashed, hollow.
    #[must_use]
    pub fn published(mut self) -> Self {
        self.published = true;
        self
    }

    /// Draws the line dashed: theory beside what was measured.
    #[must_use]
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Takes the palette's colour of that number, so that series that belong together look so.
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
