//! Draws a plot as SVG.

use anyhow::{Result, anyhow, ensure};
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::prelude::{
    Cartesian2d, Circle, DashedLineSeries, DrawingArea, DrawingBackend, EmptyElement,
    IntoDrawingArea, LineSeries, PathElement, Polygon, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::axis::Laid;
use super::{Form, Mark, Plot, Series};

impl Plot {
    /// Returns the drawn plot as the text of an SVG file.
    ///
    /// # Errors
    /// If there is nothing to draw: no series, or no finite point.
    pub fn to_svg(&self) -> Result<String> {
        svg(self)
    }
}

fn svg(plot: &Plot) -> Result<String> {
    let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    ensure!(
        plot.series.iter().any(|series| series.points.iter().any(finite)),
        "plot {} has nothing to draw",
        plot.name
    );
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
    draw(plot, &root).map_err(|error| anyhow!("plot {}: {error}", plot.name))?;
    root.present().map_err(|error| anyhow!("plot {}: {error}", plot.name))?;
    drop(root);
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Error<'a> =
    plotters::drawing::DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Laid, Laid>>;

fn draw<'a>(plot: &Plot, root: &Area<'a>) -> std::result::Result<(), Error<'a>> {
    root.fill(&GROUND)?;
    root.draw(&Text::new(plot.title.clone(), (MARGIN, 18), words(20, TEXT, FontStyle::Bold)))?;
    let legend_bottom = draw_legend(plot, root, 52)?;
    let axis_words = words(15, DIM, FontStyle::Normal);
    let top = legend_bottom + 12;
    root.draw(&Text::new(plot.y.label.clone(), (MARGIN, top), axis_words.clone()))?;
    let right = axis_words.pos(Pos::new(HPos::Right, VPos::Bottom));
    let corner = (WIDTH as i32 - MARGIN, HEIGHT as i32 - 14);
    root.draw(&Text::new(plot.x.label.clone(), corner, right))?;

    let bars = plot.series.iter().filter(|series| series.form == Form::Bars).count();
    let x = plot.x.lay(plot.values(|(x, _)| *x), false);
    let y = plot.y.lay(plot.values(|(_, y)| *y), bars > 0);
    let (_, below) = root.split_vertically(top + 26);
    let mut chart = mesh(&below, &x, &y)?;
    for mark in &plot.marks {
        draw_mark(&mut chart, mark, &x, &y)?;
    }
    let mut bar = 0;
    for (index, series) in plot.series.iter().enumerate() {
        let look = Look::of(plot, index);
        match series.form {
            Form::Bars => {
                draw_bars(&mut chart, series, look, &x, &y, (bar, bars))?;
                bar += 1;
            }
            Form::Spans => draw_spans(&mut chart, series, look, &x, &y)?,
            Form::Line | Form::Marked | Form::Points | Form::Steps => {
                draw_curve(&mut chart, series, look, &x, &y)?;
            }
        }
    }
    Ok(())
}

impl Plot {
    fn values(&self, of: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(move |series| series.points.iter().map(of))
    }
}

/// Draws the grid and its labels, and returns the chart into which series are drawn.
fn mesh<'a, 'b>(
    area: &'a Area<'b>,
    x: &Laid,
    y: &Laid,
) -> std::result::Result<Chart<'a, 'b>, Error<'b>> {
    let longest = y.ticks.iter().map(|(_, words)| words.chars().count()).max().unwrap_or(0);
    let mut chart = ChartBuilder::on(area)
        .margin_left(MARGIN)
        .margin_right(MARGIN + 8)
        .margin_top(6)
        .margin_bottom(30)
        .set_left_and_bottom_label_area_size(34)
        .y_label_area_size(16 + 8 * longest as i32)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .axis_style(ShapeStyle::from(AXIS).stroke_width(1))
        .bold_line_style(ShapeStyle::from(GRID).stroke_width(1))
        .light_line_style(ShapeStyle::from(GRID_MINOR).stroke_width(1))
        .x_label_style(words(15, DIM, FontStyle::Normal))
        .y_label_style(words(15, DIM, FontStyle::Normal))
        .draw()?;
    Ok(chart)
}

/// Draws the legend from `top` on, wrapped, and returns the y of its lower end.
fn draw_legend<'a>(plot: &Plot, root: &Area<'a>, top: i32) -> std::result::Result<i32, Error<'a>> {
    let (mut left, mut middle) = (MARGIN, top + 8);
    for (index, series) in plot.series.iter().enumerate() {
        // Without font metrics, assume the typical width of a character.
        let width = 44 + (series.label.chars().count() as f64 * 7.9) as i32;
        if left > MARGIN && left + width > WIDTH as i32 - MARGIN {
            (left, middle) = (MARGIN, middle + 24);
        }
        let look = Look::of(plot, index);
        if matches!(series.form, Form::Bars | Form::Spans) {
            let corners = [(left + 8, middle - 7), (left + 24, middle + 7)];
            root.draw(&Rectangle::new(corners, look.fill()))?;
            root.draw(&Rectangle::new(corners, look.stroke()))?;
        } else {
            let dash: &[(i32, i32)] =
                if look.dashed { &[(0, 8), (12, 20), (24, 32)] } else { &[(0, 32)] };
            let line = series.form != Form::Points;
            for (from, to) in dash.iter().filter(|_| line) {
                let path = vec![(left + from, middle), (left + to, middle)];
                root.draw(&PathElement::new(path, look.stroke()))?;
            }
            if series.has_markers() {
                draw_marker(root, (left + 16, middle), look)?;
            }
        }
        let style = words(15, TEXT, FontStyle::Normal).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(series.label.clone(), (left + 40, middle), style))?;
        left += width + 22;
    }
    Ok(middle + 10)
}

fn draw_marker<'a>(
    root: &Area<'a>,
    at: (i32, i32),
    look: Look,
) -> std::result::Result<(), Error<'a>> {
    let corners = look.marker.corners();
    if corners.is_empty() {
        root.draw(&Circle::new(at, MARKER, look.inside()))?;
        return root.draw(&Circle::new(at, MARKER, look.stroke()));
    }
    let path: Vec<(i32, i32)> = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
    root.draw(&Polygon::new(path.clone(), look.inside()))?;
    root.draw(&PathElement::new(closed(path), look.stroke()))
}

fn draw_mark<'b>(
    chart: &mut Chart<'_, 'b>,
    mark: &Mark,
    x: &Laid,
    y: &Laid,
) -> std::result::Result<(), Error<'b>> {
    let (line, at, hpos, label) = match mark {
        Mark::X(value, label) => {
            let Some(at) = x.position(*value) else { return Ok(()) };
            (vec![(at, y.low), (at, y.high)], (at, y.high), HPos::Left, label)
        }
        Mark::Y(value, label) => {
            let Some(at) = y.position(*value) else { return Ok(()) };
            (vec![(x.low, at), (x.high, at)], (x.high, at), HPos::Right, label)
        }
    };
    chart.draw_series(DashedLineSeries::new(line, 3, 4, ShapeStyle::from(DIM).stroke_width(1)))?;
    let (offset, vpos) = match mark {
        Mark::X(..) => ((6, 2), VPos::Top),
        Mark::Y(..) => ((-4, -4), VPos::Bottom),
    };
    let style = words(14, DIM, FontStyle::Normal).pos(Pos::new(hpos, vpos));
    chart.draw_series([EmptyElement::at(at) + Text::new(label.clone(), offset, style)])?;
    Ok(())
}

fn draw_curve<'b>(
    chart: &mut Chart<'_, 'b>,
    series: &Series,
    look: Look,
    x: &Laid,
    y: &Laid,
) -> std::result::Result<(), Error<'b>> {
    let path = series.path(x, y);
    let (low, high) = ((x.low, y.low), (x.high, y.high));
    if series.form != Form::Points {
        for piece in clip(&path, low, high) {
            if look.dashed {
                chart.draw_series(DashedLineSeries::new(piece, 8, 5, look.stroke()))?;
            } else {
                chart.draw_series(LineSeries::new(piece, look.stroke()))?;
            }
        }
    }
    for ((at, value), reach) in series.points.iter().zip(&series.reaches) {
        let Some(at) = x.position(*at).filter(|at| (low.0..=high.0).contains(at)) else { continue };
        let end = |value| y.position(value).unwrap_or(y.low).clamp(y.low, y.high);
        let (from, to) = (end(value - reach), end(value + reach));
        chart.draw_series([PathElement::new(vec![(at, from), (at, to)], look.stroke())])?;
    }
    if !series.has_markers() {
        return Ok(());
    }
    let inside = |(x, y): &(f64, f64)| (low.0..=high.0).contains(x) && (low.1..=high.1).contains(y);
    let corners = look.marker.corners();
    for at in path.into_iter().filter(inside) {
        if corners.is_empty() {
            chart.draw_series([EmptyElement::at(at)
                + Circle::new((0, 0), MARKER, look.inside())
                + Circle::new((0, 0), MARKER, look.stroke())])?;
        } else {
            chart.draw_series([EmptyElement::at(at)
                + Polygon::new(corners.clone(), look.inside())
                + PathElement::new(closed(corners.clone()), look.stroke())])?;
        }
    }
    Ok(())
}

/// Draws the bars of series `place.0` of `place.1`.
fn draw_bars<'b>(
    chart: &mut Chart<'_, 'b>,
    series: &Series,
    look: Look,
    x: &Laid,
    y: &Laid,
    place: (usize, usize),
) -> std::result::Result<(), Error<'b>> {
    let mut tops = series.path(x, y);
    tops.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gaps = tops.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|gap| *gap > 0.0);
    let room = gaps.fold(f64::INFINITY, f64::min).min(x.high - x.low);
    let width = if place.1 == 1 { 0.9 } else { 0.8 } * room / place.1 as f64;
    let start = width * (place.0 as f64 - place.1 as f64 / 2.0);
    let base = y.position(0.0).unwrap_or(y.low).clamp(y.low, y.high);
    for (at, top) in tops {
        let left = (at + start).max(x.low);
        let right = (at + start + width).min(x.high);
        if left >= right {
            continue;
        }
        let corners = [(left, base), (right, top.clamp(y.low, y.high))];
        chart.draw_series([Rectangle::new(corners, look.fill())])?;
        chart.draw_series([Rectangle::new(corners, look.stroke())])?;
    }
    Ok(())
}

/// Draws the blocks of a series, each from one point to the next of a pair, and half a unit of y
/// high.
fn draw_spans<'b>(
    chart: &mut Chart<'_, 'b>,
    series: &Series,
    look: Look,
    x: &Laid,
    y: &Laid,
) -> std::result::Result<(), Error<'b>> {
    for span in series.points.chunks_exact(2) {
        let [(from, level), (to, _)] = [span[0], span[1]];
        let edges =
            [x.position(from), x.position(to), y.position(level - 0.25), y.position(level + 0.25)];
        let [Some(left), Some(right), Some(bottom), Some(top)] = edges else { continue };
        let (left, right) = (left.max(x.low), right.min(x.high));
        if left >= right {
            continue;
        }
        let corners = [(left, bottom.max(y.low)), (right, top.min(y.high))];
        chart.draw_series([Rectangle::new(corners, look.fill())])?;
        chart.draw_series([Rectangle::new(corners, look.stroke())])?;
    }
    Ok(())
}

impl Series {
    fn has_markers(&self) -> bool {
        matches!(self.form, Form::Marked | Form::Points)
    }

    /// Returns the points that have positions, with the corners of steps inserted.
    fn path(&self, x: &Laid, y: &Laid) -> Vec<(f64, f64)> {
        let at = |(a, b): &(f64, f64)| Some((x.position(*a)?, y.position(*b)?));
        let mut path = Vec::new();
        for point in self.points.iter().filter_map(at) {
            if self.form == Form::Steps
                && let Some(&(_, level)) = path.last()
            {
                path.push((point.0, level));
            }
            path.push(point);
        }
        path
    }
}

/// Clips a path to the rectangle between two corners; each piece lies inside.
fn clip(path: &[(f64, f64)], low: (f64, f64), high: (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    for pair in path.windows(2) {
        let Some((from, to)) = clip_segment(pair[0], pair[1], low, high) else { continue };
        match pieces.last_mut().filter(|piece| piece.last() == Some(&from)) {
            Some(piece) => piece.push(to),
            None => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// Returns the part of the segment within all four edges, by Liang and Barsky's algorithm; `None`
/// if all of it is outside.
fn clip_segment(
    from: (f64, f64),
    to: (f64, f64),
    low: (f64, f64),
    high: (f64, f64),
) -> Option<((f64, f64), (f64, f64))> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let edges = [
        (-dx, from.0 - low.0),
        (dx, high.0 - from.0),
        (-dy, from.1 - low.1),
        (dy, high.1 - from.1),
    ];
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (speed, room) in edges {
        if speed == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if speed < 0.0 {
            enter = enter.max(room / speed);
        } else {
            leave = leave.min(room / speed);
        }
    }
    let at = |share: f64| (from.0 + share * dx, from.1 + share * dy);
    // Keep the ends bit for bit, so that pieces join.
    let start = if enter == 0.0 { from } else { at(enter) };
    let end = if leave == 1.0 { to } else { at(leave) };
    (enter <= leave).then_some((start, end))
}

/// The look of one series.
#[derive(Clone, Copy)]
struct Look {
    colour: RGBColor,
    marker: Marker,
    dashed: bool,
    hollow: bool,
}

impl Look {
    fn of(plot: &Plot, index: usize) -> Look {
        let series = &plot.series[index];
        if series.published {
            return Look { colour: TEXT, marker: Marker::Circle, dashed: true, hollow: true };
        }
        let place = plot.series[..index].iter().filter(|series| !series.published).count();
        let colour = series.colour.unwrap_or(place);
        Look {
            colour: PALETTE[colour % PALETTE.len()],
            marker: MARKERS[colour % MARKERS.len()],
            dashed: series.dashed,
            hollow: series.dashed,
        }
    }

    fn stroke(self) -> ShapeStyle {
        ShapeStyle::from(self.colour).stroke_width(2)
    }

    fn fill(self) -> ShapeStyle {
        ShapeStyle::from(self.colour.mix(if self.hollow { 0.12 } else { 0.75 })).filled()
    }

    fn inside(self) -> ShapeStyle {
        ShapeStyle::from(if self.hollow { GROUND } else { self.colour }).filled()
    }
}

#[derive(Clone, Copy)]
enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
}

impl Marker {
    /// Returns the corners around (0, 0), none for a circle.
    fn corners(self) -> Vec<(i32, i32)> {
        match self {
            Marker::Circle => vec![],
            Marker::Square => vec![(-5, -5), (5, -5), (5, 5), (-5, 5)],
            Marker::Triangle => vec![(0, -6), (6, 5), (-6, 5)],
            Marker::Diamond => vec![(0, -7), (6, 0), (0, 7), (-6, 0)],
            Marker::Down => vec![(0, 6), (6, -5), (-6, -5)],
        }
    }
}

fn closed(mut path: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    path.extend(path.first().copied());
    path
}

fn words(size: i32, colour: RGBColor, style: FontStyle) -> TextStyle<'static> {
    (FontFamily::Name(FONTS), size).into_font().style(style).color(&colour)
}

const WIDTH: u32 = 960;
const HEIGHT: u32 = 600;
const MARGIN: i32 = 24;
const MARKER: i32 = 5;
const FONTS: &str = "Inter, 'Segoe UI', 'DejaVu Sans', sans-serif";

const GROUND: RGBColor = RGBColor(255, 255, 255);
const TEXT: RGBColor = RGBColor(24, 30, 36);
const DIM: RGBColor = RGBColor(84, 96, 107);
const AXIS: RGBColor = RGBColor(120, 132, 143);
const GRID: RGBColor = RGBColor(222, 227, 231);
const GRID_MINOR: RGBColor = RGBColor(240, 243, 245);

/// Palette of Okabe and Ito, without the yellow, which is too faint on white, and the black, which
/// is reserved for the papers.
const PALETTE: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

const MARKERS: [Marker; 5] =
    [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Down];

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: (f64, f64) = (0.0, 0.0);
    const HIGH: (f64, f64) = (10.0, 10.0);

    #[test]
    fn a_path_inside_stays_whole() {
        let path = [(0.0, 0.0), (5.0, 7.0), (10.0, 10.0)];
        assert_eq!(clip(&path, LOW, HIGH), [path.to_vec()]);
    }

    #[test]
    fn a_path_that_leaves_and_returns_is_two_pieces() {
        let path = [(1.0, 5.0), (1.0, 15.0), (3.0, 15.0), (3.0, 5.0)];
        let pieces = clip(&path, LOW, HIGH);
        assert_eq!(pieces, [[(1.0, 5.0), (1.0, 10.0)], [(3.0, 10.0), (3.0, 5.0)]]);
    }

    #[test]
    fn a_path_outside_is_gone() {
        assert!(clip(&[(-5.0, 1.0), (-1.0, 9.0)], LOW, HIGH).is_empty());
        assert!(clip(&[(-5.0, 5.0), (5.0, 20.0)], LOW, HIGH).is_empty());
    }
}
