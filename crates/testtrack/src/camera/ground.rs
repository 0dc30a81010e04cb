//! The ground: grass, asphalt, kerbs and lines, row by row.
//!
//! A row of the picture is a straight line on the ground. Every 16 pixels the course's map gives
//! the road's coordinates; they are interpolated in between. Lines, kerbs and edges are drawn from
//! them as exact shapes, blurred by the pixel's footprint on the ground. So they are sharp nearby
//! and do not flicker far away.

use std::ops::Range;

use super::bonnet::Bonnet;
use super::clamp::{to_u8, unit};
use super::colour::{Colour, HAZE, clear};
use super::pose::Pose;
use super::strip::Strip;
use crate::course::{Course, KERB_WIDTH, ROAD_HALF_WIDTH, RoadPoint};
use crate::noise::Tile;

/// Pixels between two lookups of the road's coordinates.
const SEGMENT: usize = 16;
/// Pixels between two lookups of the ground's texture.
const STEP: usize = 4;
/// Distance ahead beyond which only grass and haze are drawn, m.
const DEPTH_MAX: f32 = 300.0;

const HALF: f32 = ROAD_HALF_WIDTH as f32;
const KERB: f32 = KERB_WIDTH as f32;
/// Width of the bare earth next to the road, m.
const DIRT: f32 = 0.8;
/// Edge lines: distance of the middle from the road's centre line, and half the width, m.
const EDGE_LINE: (f32, f32) = (HALF - 0.3, 0.08);
/// Half the width of the dashed line in the middle of the road, m.
const DASH: f32 = 0.07;
/// Length of one dash and gap of the middle line in m, and the share of it that is painted.
const DASH_PERIOD: (f32, f32) = (8.0, 0.42);
/// Length of a red and a white kerb stone together, m.
const KERB_PERIOD: f32 = 2.0;
/// Half the depth of the start line and the side of its squares, m.
const START: (f32, f32) = (0.8, 0.4);

const GRASS: Colour = Colour::rgb(92.0, 128.0, 58.0);
const EARTH: Colour = Colour::rgb(134.0, 120.0, 86.0);
const ASPHALT: Colour = Colour::rgb(98.0, 99.0, 102.0);
const PAINT: Colour = Colour::rgb(224.0, 224.0, 216.0);
const KERB_RED: Colour = Colour::rgb(186.0, 42.0, 36.0);
const KERB_WHITE: Colour = Colour::rgb(222.0, 220.0, 214.0);

/// Luma amplitude of the fine texture on grass.
const GRASS_FINE: f32 = 9.0;
/// Luma amplitude of the coarse texture on grass.
const GRASS_COARSE: f32 = 8.0;
/// Luma amplitude of the fine texture on asphalt.
const ASPHALT_FINE: f32 = 4.0;
/// Luma amplitude of the coarse texture on asphalt.
const ASPHALT_COARSE: f32 = 2.5;
/// Greatest luma difference by which the tracks of tyres are darker than the asphalt.
const WEAR: f32 = 5.0;

/// Draws every row of `strip` below the horizon, except where the bonnet hides the ground.
pub(super) fn draw(
    pose: &Pose,
    course: &Course,
    tile: &Tile,
    bonnet: Option<&Bonnet>,
    strip: &mut Strip<'_>,
) {
    let mut line = Line {
        fine: vec![0.0; strip.width / STEP + 1],
        points: vec![Point::default(); strip.width / SEGMENT + 1],
    };
    for row in pose.ground_from().max(strip.rows.start)..strip.rows.end {
        let ground = Ground::new(pose, row);
        let hidden = bonnet.map_or(0..0, |bonnet| bonnet.hides(row));
        let hidden = hidden.start.div_ceil(SEGMENT)..hidden.end / SEGMENT;
        let brush = Brush::new(ground.depth);
        if ground.depth > DEPTH_MAX {
            plain(&brush, row, strip);
            continue;
        }
        line.look(&ground, course, tile, &hidden);
        line.paint(course, &brush, row, &hidden, strip);
    }
}

/// Projection of one row of the picture onto the ground.
struct Ground {
    /// Distance of the row ahead of the camera, m.
    depth: f32,
    /// Width on the ground of a pixel of the row, m.
    across: f32,
    /// Depth on the ground of the row, m.
    ahead: f32,
    /// Ground point at the row's left end, m east and north.
    start: (f32, f32),
    /// Vector on the ground from one pixel of the row to the next, m east and north.
    step: (f32, f32),
    /// Unit vector in the direction of the camera's view.
    forward: (f32, f32),
}

impl Ground {
    fn new(pose: &Pose, row: usize) -> Self {
        let below = (row as f32 + 0.5 - pose.horizon).max(0.25);
        let depth = pose.height * pose.focal / below;
        let across = depth / pose.focal;
        let side = -pose.centre * across;
        Self {
            depth,
            across,
            ahead: depth / below,
            start: (
                pose.x + depth * pose.cos + side * pose.sin,
                pose.y + depth * pose.sin - side * pose.cos,
            ),
            step: (across * pose.sin, -across * pose.cos),
            forward: (pose.cos, pose.sin),
        }
    }

    fn at(&self, column: usize) -> (f32, f32) {
        let column = column as f32;
        (self.start.0 + self.step.0 * column, self.start.1 + self.step.1 * column)
    }

    /// Returns how many metres a pixel spans in the direction of the unit vector (`x`, `y`).
    fn footprint(&self, (x, y): (f32, f32)) -> f32 {
        let (fx, fy) = self.forward;
        (x * fy - y * fx).abs() * self.across + (x * fx + y * fy).abs() * self.ahead
    }
}

/// Colours of the materials as seen through the haze at a row's distance, and the share of their
/// own colour that remains.
struct Brush {
    grass: Colour,
    earth: Colour,
    asphalt: Colour,
    paint: Colour,
    red: Colour,
    white: Colour,
    clear: f32,
}

impl Brush {
    fn new(depth: f32) -> Self {
        let clear = clear(depth);
        let seen = |colour: Colour| HAZE.mix(colour, clear);
        Self {
            grass: seen(GRASS),
            earth: seen(EARTH),
            asphalt: seen(ASPHALT),
            paint: seen(PAINT),
            red: seen(KERB_RED),
            white: seen(KERB_WHITE),
            clear,
        }
    }
}

/// Road coordinates and texture at an end of a segment of [`SEGMENT`] pixels.
#[derive(Clone, Copy)]
struct Point {
    road: RoadPoint,
    /// Value of the coarse texture at the point, around 0.
    coarse: f32,
    /// Footprint of a pixel across and along the road, m.
    blur: (f32, f32),
}

impl Default for Point {
    fn default() -> Self {
        let road = RoadPoint { lateral: 0.0, turn: 0, left: (0.0, 0.0) };
        Self { road, coarse: 0.0, blur: (1.0, 1.0) }
    }
}

/// Texture and road coordinates of the row being drawn.
struct Line {
    fine: Vec<f32>,
    points: Vec<Point>,
}

impl Line {
    fn look(&mut self, ground: &Ground, course: &Course, tile: &Tile, hidden: &Range<usize>) {
        let shown = |segment: usize| !(hidden.start < segment && segment < hidden.end);
        fine_texture(tile, ground, &mut self.fine);
        let coarse = Walk::new(ground, SEGMENT, COARSE_TEXEL, 0);
        let soft = unit(1.6 - ground.ahead * 0.12);
        for (segment, point) in self.points.iter_mut().enumerate() {
            if !shown(segment) {
                continue;
            }
            let (x, y) = ground.at(segment * SEGMENT);
            let road = course.map().lookup(x, y);
            let (u, v) = coarse.at(segment as u32);
            let (lx, ly) = road.left;
            *point = Point {
                road,
                coarse: tile.nearest(u, v) * soft,
                blur: (ground.footprint((lx, ly)) + 1e-3, ground.footprint((ly, -lx)) + 1e-3),
            };
        }
    }

    fn paint(
        &self,
        course: &Course,
        brush: &Brush,
        row: usize,
        hidden: &Range<usize>,
        strip: &mut Strip<'_>,
    ) {
        let chroma = row.is_multiple_of(2);
        for segment in 0..self.points.len() - 1 {
            if hidden.contains(&segment) {
                continue;
            }
            let ends = (&self.points[segment], &self.points[segment + 1]);
            let fine = &self.fine[segment * 4..segment * 4 + 5];
            let mut pixels = Pixels::textured(fine);
            match Cover::of(ends.0, ends.1, course) {
                Cover::Grass => grass(ends, brush, &mut pixels),
                Cover::Asphalt => asphalt(ends, brush, &mut pixels),
                Cover::Mixed => mixed(ends, brush, course, &mut pixels),
            }
            let columns = segment * SEGMENT..(segment + 1) * SEGMENT;
            for (out, y) in strip.luma_row(row)[columns.clone()].iter_mut().zip(&pixels.y) {
                *out = to_u8(*y);
            }
            if chroma {
                let half = columns.start / 2..columns.end / 2;
                let (cb, cr) = strip.chroma_rows(row);
                halve(&pixels.cb, &mut cb[half.clone()]);
                halve(&pixels.cr, &mut cr[half]);
            }
        }
    }
}

/// Materials that a segment shows.
enum Cover {
    Grass,
    Asphalt,
    Mixed,
}

impl Cover {
    fn of(a: &Point, b: &Point, course: &Course) -> Self {
        let (left, right) = (a.road.lateral, b.road.lateral);
        let (near, far) = match left.abs() < right.abs() {
            true => (left.abs(), right.abs()),
            false => (right.abs(), left.abs()),
        };
        let blur = a.blur.0.max(b.blur.0);
        if left * right <= 0.0 {
            return Self::Mixed;
        }
        if near > HALF + KERB + 1.5 * DIRT + blur {
            return Self::Grass;
        }
        let scale = course.map().scale();
        let start = (a.road.turn as i32 as f32 * scale)
            .abs()
            .min((b.road.turn as i32 as f32 * scale).abs());
        let plain = far + blur < EDGE_LINE.0 - EDGE_LINE.1
            && near > blur + DASH
            && start > 3.0 + a.blur.1 + b.blur.1;
        if plain { Self::Asphalt } else { Self::Mixed }
    }
}

/// Sixteen pixels of a row, in floating point before they are rounded to bytes.
struct Pixels {
    /// Value of the fine texture at each pixel, around 0.
    fine: [f32; SEGMENT],
    y: [f32; SEGMENT],
    cb: [f32; SEGMENT],
    cr: [f32; SEGMENT],
}

/// Position of the middle of each pixel within its segment, 0 to 1.
const MIDDLES: [f32; SEGMENT] = {
    let mut middles = [0.0; SEGMENT];
    let mut i = 0;
    while i < SEGMENT {
        middles[i] = (i as f32 + 0.5) / SEGMENT as f32;
        i += 1;
    }
    middles
};

impl Pixels {
    fn textured(samples: &[f32]) -> Self {
        let mut fine = [0.0; SEGMENT];
        for (i, quarter) in fine.chunks_exact_mut(STEP).enumerate() {
            let (a, b) = (samples[i], samples[i + 1]);
            for (j, value) in quarter.iter_mut().enumerate() {
                *value = a + (b - a) * ((j as f32 + 0.5) / STEP as f32);
            }
        }
        Self { fine, y: [0.0; SEGMENT], cb: [0.0; SEGMENT], cr: [0.0; SEGMENT] }
    }
}

fn grass((a, b): (&Point, &Point), brush: &Brush, pixels: &mut Pixels) {
    let start = brush.grass.y + a.coarse * GRASS_COARSE * brush.clear;
    let step = (b.coarse - a.coarse) * GRASS_COARSE * brush.clear;
    let fine = GRASS_FINE * brush.clear;
    for ((y, middle), texture) in pixels.y.iter_mut().zip(MIDDLES).zip(&pixels.fine) {
        *y = start + step * middle + texture * fine;
    }
    // Dry patches are lighter and yellower.
    let dry = 0.5 * (a.coarse + b.coarse) * brush.clear;
    pixels.cb = [brush.grass.cb - 1.5 * dry; SEGMENT];
    pixels.cr = [brush.grass.cr + 2.5 * dry; SEGMENT];
}

fn asphalt((a, b): (&Point, &Point), brush: &Brush, pixels: &mut Pixels) {
    let tone = |p: &Point| (p.coarse * ASPHALT_COARSE - WEAR * wear(p)) * brush.clear;
    let (start, end) = (tone(a), tone(b));
    let fine = ASPHALT_FINE * brush.clear;
    for ((y, middle), texture) in pixels.y.iter_mut().zip(MIDDLES).zip(&pixels.fine) {
        *y = brush.asphalt.y + start + (end - start) * middle + texture * fine;
    }
    pixels.cb = [brush.asphalt.cb; SEGMENT];
    pixels.cr = [brush.asphalt.cr; SEGMENT];
}

/// Returns the darkening of the asphalt by tyres: two tracks in each lane, 0 to 1.
fn wear(point: &Point) -> f32 {
    let from_lane = (point.road.lateral.abs() - 1.85).abs();
    unit(1.0 - (from_lane - 0.75).abs() * 1.6)
}

/// Draws a segment that may show road edge, kerb, earth, lines or the start line.
fn mixed(ends: (&Point, &Point), brush: &Brush, course: &Course, pixels: &mut Pixels) {
    let (a, b) = ends;
    let mut under = Pixels { fine: pixels.fine, ..Pixels::textured(&[0.0; 5]) };
    grass(ends, brush, &mut under);
    asphalt(ends, brush, pixels);
    let scale = course.map().scale();
    let blur = 0.5 * (a.blur.0 + b.blur.0);
    let long = 0.5 * (a.blur.1 + b.blur.1);
    let (lateral, lateral_step) = (a.road.lateral, b.road.lateral - a.road.lateral);
    let along = a.road.turn as i32 as f32 * scale;
    let along_step = b.road.turn.wrapping_sub(a.road.turn) as i32 as f32 * scale;
    let kerb_width = KERB * course.map().kerb(a.road.turn);
    let sharp = 1.0 / blur;
    let thin = |half: f32| unit(2.0 * half * sharp);
    let (edge_most, dash_most) = (thin(EDGE_LINE.1), thin(DASH));
    let dash = Wave::new(DASH_PERIOD.0, DASH_PERIOD.1, long);
    let stone = Wave::new(KERB_PERIOD, 0.5, long);
    let ragged = 0.30;
    for (i, middle) in MIDDLES.into_iter().enumerate() {
        let side = lateral + lateral_step * middle;
        let s = along + along_step * middle;
        let out = side.abs();
        let fine = pixels.fine[i];
        let road = unit((HALF - out) * sharp + 0.5);
        let kerb = unit((HALF + kerb_width - out) * sharp + 0.5);
        let earth = unit((HALF + KERB + DIRT - out + ragged * fine) * (1.0 / DIRT));
        let edge = unit((EDGE_LINE.1 - (out - EDGE_LINE.0).abs()) * sharp + 0.5);
        let edge = if edge < edge_most { edge } else { edge_most };
        let centre = unit((DASH - out) * sharp + 0.5);
        let centre = if centre < dash_most { centre } else { dash_most };
        // Paint is slightly worn where the asphalt is rough.
        let line = (edge + centre * dash.at(s)) * (0.90 + 0.06 * fine);
        let red = stone.at(s);
        let lay = |grass: f32, earth_c: f32, white: f32, red_c: f32, asphalt: f32, paint: f32| {
            let ground = grass + (earth_c - grass) * 0.8 * earth;
            let stones = white + (red_c - white) * red;
            let ground = ground + (stones - ground) * kerb;
            let ground = ground + (asphalt - ground) * road;
            ground + (paint - ground) * line
        };
        let Brush { earth: e, white: w, red: r, paint: p, .. } = brush;
        pixels.y[i] = lay(under.y[i], e.y + 5.0 * fine, w.y, r.y, pixels.y[i], p.y);
        pixels.cb[i] = lay(under.cb[i], e.cb, w.cb, r.cb, pixels.cb[i], p.cb);
        pixels.cr[i] = lay(under.cr[i], e.cr, w.cr, r.cr, pixels.cr[i], p.cr);
    }
    if along.abs().min((along + along_step).abs()) < START.0 + long {
        start_line((lateral, lateral_step, blur), (along, along_step, long), brush, pixels);
    }
}

/// Draws the luma of the chequered start line over a segment. `across` and `along` hold, for each
/// direction of the road, the coordinate at the segment's start, its change to the end, and the
/// pixel's footprint, all in metres.
fn start_line(across: (f32, f32, f32), along: (f32, f32, f32), brush: &Brush, pixels: &mut Pixels) {
    let columns = Wave::new(2.0 * START.1, 0.5, across.2);
    let rows = Wave::new(2.0 * START.1, 0.5, along.2);
    for (y, middle) in pixels.y.iter_mut().zip(MIDDLES) {
        let side = across.0 + across.1 * middle;
        let s = along.0 + along.1 * middle;
        let inside = unit((START.0 - s.abs()) / along.2 + 0.5).min(unit(2.0 * START.0 / along.2))
            * unit((HALF - 0.45 - side.abs()) / across.2 + 0.5);
        let (u, v) = (columns.at(side), rows.at(s + 0.5 * START.1));
        let white = u + v - 2.0 * u * v;
        let black = brush.asphalt.y - 38.0 * brush.clear;
        let colour = black + (brush.paint.y - black) * white;
        *y += (colour - *y) * inside;
    }
}

/// A square wave of 0 and 1 along a length, blurred by a footprint.
struct Wave {
    per_metre: f32,
    duty: f32,
    sharp: f32,
    /// Share of the wave that the blur leaves, 0 to 1; the rest is its mean value.
    kept: f32,
}

impl Wave {
    fn new(period: f32, duty: f32, footprint: f32) -> Self {
        Self {
            per_metre: 1.0 / period,
            duty,
            sharp: period / footprint,
            kept: unit(2.0 - 2.0 * footprint / period),
        }
    }

    #[inline(always)]
    fn at(&self, metres: f32) -> f32 {
        let phase = metres * self.per_metre;
        // Adding and subtracting 1.5 * 2^23 rounds to an integer.
        let phase = phase - ((phase + 12_582_912.0) - 12_582_912.0);
        let on = unit((0.5 * self.duty - phase.abs()) * self.sharp + 0.5);
        self.duty + (on - self.duty) * self.kept
    }
}

/// Metres per texel of the coarse texture: its wavelengths are 4 m and longer.
const COARSE_TEXEL: f32 = 1.0;

/// Texture coordinates along a row, 16.16 fixed point.
struct Walk {
    start: (u32, u32),
    step: (u32, u32),
}

impl Walk {
    /// Returns the coordinates of samples every `stride` pixels of the row, at `texel` metres per
    /// texel, shifted in the tile by an offset that depends on `corner`.
    fn new(ground: &Ground, stride: usize, texel: f32, corner: u32) -> Self {
        let scale = 65536.0 / f64::from(texel);
        let fixed = |metres: f32| (f64::from(metres) * scale) as i64 as u32;
        let shift = corner.wrapping_mul(0x0053_0000);
        let stride = stride as f32;
        Self {
            start: (
                fixed(ground.start.0).wrapping_add(shift),
                fixed(ground.start.1).wrapping_sub(shift),
            ),
            step: (fixed(ground.step.0 * stride), fixed(ground.step.1 * stride)),
        }
    }

    #[inline(always)]
    fn at(&self, index: u32) -> (u32, u32) {
        (
            self.start.0.wrapping_add(self.step.0.wrapping_mul(index)),
            self.start.1.wrapping_add(self.step.1.wrapping_mul(index)),
        )
    }
}

/// Writes the fine texture along a row, one value every [`STEP`] pixels, around 0: a mix of two
/// scales of the same texture, one twice the other. So its wavelengths are as long as the row can
/// show without flicker, and there is no seam between rows. It fades out far away.
fn fine_texture(tile: &Tile, ground: &Ground, out: &mut [f32]) {
    let texel = (3.0 * ground.across).max(0.55 * ground.ahead);
    let exponent = (texel.to_bits() >> 23) as i32 - 127;
    let size = f32::from_bits(((exponent + 127) as u32) << 23);
    let share = texel / size - 1.0;
    let small = Walk::new(ground, STEP, size, exponent as u32);
    let large = Walk::new(ground, STEP, 2.0 * size, (exponent + 1) as u32);
    let fade = unit(1.3 - ground.ahead * 0.06);
    for (i, out) in out.iter_mut().enumerate() {
        let (a, b) = (small.at(i as u32), large.at(i as u32));
        let (a, b) = (tile.nearest(a.0, a.1), tile.nearest(b.0, b.1));
        *out = (a + (b - a) * share) * fade;
    }
}

/// Draws a row in the plain colour of grass, without texture.
fn plain(brush: &Brush, row: usize, strip: &mut Strip<'_>) {
    strip.luma_row(row).fill(to_u8(brush.grass.y));
    if row.is_multiple_of(2) {
        let (cb, cr) = strip.chroma_rows(row);
        cb.fill(to_u8(brush.grass.cb));
        cr.fill(to_u8(brush.grass.cr));
    }
}

/// Writes the rounded mean of each pair of `values`.
fn halve(values: &[f32; SEGMENT], out: &mut [u8]) {
    for (out, pair) in out.iter_mut().zip(values.chunks_exact(2)) {
        *out = to_u8(0.5 * (pair[0] + pair[1]));
    }
}
