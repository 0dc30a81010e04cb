//! Rendering of cones: a plate, a tapering body, two white bands.

use super::clamp::{to_u8, unit};
use super::colour::{Colour, HAZE, clear};
use super::pose::Pose;
use super::projected::Projected;
use super::strip::Strip;
use crate::cone;

/// Range of distances ahead at which a cone is drawn, m.
pub(super) const DEPTHS: (f32, f32) = (0.7, 170.0);

const ORANGE: Colour = Colour::rgb(244.0, 92.0, 22.0);
const ORANGE_DARK: Colour = Colour::rgb(150.0, 44.0, 12.0);
const BAND: Colour = Colour::rgb(246.0, 246.0, 242.0);
const BAND_DARK: Colour = Colour::rgb(140.0, 144.0, 154.0);
const PLATE: Colour = Colour::rgb(196.0, 66.0, 20.0);
const PLATE_SIDE: Colour = Colour::rgb(92.0, 32.0, 14.0);

/// Half a side of the square plate under a cone, m.
const PLATE_HALF: f32 = 0.21;
/// Thickness of the square plate under a cone, m.
const PLATE_THICK: f32 = 0.035;
/// Radius of the cone's body at the plate, m.
const RADIUS_BASE: f32 = 0.155;
/// Radius of the cone's body at the tip, m.
const RADIUS_TIP: f32 = 0.028;
/// Start and end of the two white bands, as shares of the body's length from foot to tip.
const BANDS: [(f32, f32); 2] = [(0.34, 0.54), (0.68, 0.82)];

pub(super) fn draw(pose: &Pose, cone: &cone::Pose, strip: &mut Strip<'_>) {
    let foot = pose.project(cone.base);
    // No part except the plate's corners is farther from the middle of the base than the tip.
    let reach = 1.25 * cone::HEIGHT as f32 * pose.focal / foot.depth;
    let (rows, columns) =
        strip.within(foot.x - reach, foot.x + reach, foot.y - reach, foot.y + reach);
    if rows.is_empty() || columns.is_empty() {
        return;
    }
    let clear = clear(foot.depth);
    let plate = |height: f32| plate_corners(pose, cone, height);
    fill(strip, &plate(0.0), HAZE.mix(PLATE_SIDE, clear));
    fill(strip, &plate(PLATE_THICK), HAZE.mix(PLATE, clear));
    Body::new(pose, cone, clear).draw(strip);
}

fn along(cone: &cone::Pose, metres: f32) -> [f32; 3] {
    [0, 1, 2].map(|i| cone.base[i] + cone.axis[i] * metres)
}

/// Returns the plate's corners in the picture, `height` metres from the base along the cone's axis.
/// Corners below the ground are raised to it.
fn plate_corners(pose: &Pose, cone: &cone::Pose, height: f32) -> [Projected; 4] {
    let [ax, ay, az] = cone.axis;
    // Two directions across the axis: one level, one perpendicular to both.
    let level = (ax * ax + ay * ay).sqrt();
    let e1 = if level > 1e-4 { [-ay / level, ax / level, 0.0] } else { [0.8, 0.6, 0.0] };
    let e2 = [ay * e1[2] - az * e1[1], az * e1[0] - ax * e1[2], ax * e1[1] - ay * e1[0]];
    let middle = along(cone, height);
    [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(u, v): (f32, f32)| {
        let corner = |i: usize| middle[i] + PLATE_HALF * (u * e1[i] + v * e2[i]);
        pose.project([corner(0), corner(1), corner(2).max(0.0)])
    })
}

/// Fills the convex quadrilateral of `corners`, in either direction of turn, with soft edges.
fn fill(strip: &mut Strip<'_>, corners: &[Projected; 4], colour: Colour) {
    let area: f32 = (0..4).map(|i| cross(corners[i], corners[(i + 1) % 4])).sum();
    let turn = if area < 0.0 { -1.0 } else { 1.0 };
    let edges = [0, 1, 2, 3].map(|i| {
        let (a, b) = (corners[i], corners[(i + 1) % 4]);
        let (dx, dy) = (b.x - a.x, b.y - a.y);
        let length = (dx * dx + dy * dy).sqrt().max(1e-3);
        (turn * dx / length, turn * dy / length, a)
    });
    let inside = |x: f32, y: f32| {
        let distance = |(dx, dy, a): &(f32, f32, Projected)| dx * (y - a.y) - dy * (x - a.x);
        edges.iter().map(distance).fold(f32::INFINITY, f32::min)
    };
    let bound = |pick: fn(&Projected) -> f32| {
        let values = corners.iter().map(pick);
        (values.clone().fold(f32::INFINITY, f32::min), values.fold(f32::NEG_INFINITY, f32::max))
    };
    let ((left, right), (top, bottom)) = (bound(|p| p.x), bound(|p| p.y));
    paint(strip, (left, right, top, bottom), |x, y| (unit(inside(x, y) + 0.5), colour));
}

fn cross(a: Projected, b: Projected) -> f32 {
    a.x * b.y - b.x * a.y
}

/// The tapering body of a cone, as projected into the picture; lengths in pixels.
struct Body {
    foot: Projected,
    tip: Projected,
    /// Unit vector in the picture from the foot to the tip of the body.
    up: (f32, f32),
    length: f32,
    radius_foot: f32,
    radius_tip: f32,
    /// Distance by which the near side of a band lies below its ends in the picture, as a share of
    /// the body's length.
    sag: f32,
    /// Share of the cone's own colour that remains after the air in front of it, 0 to 1.
    clear: f32,
}

impl Body {
    fn new(pose: &Pose, cone: &cone::Pose, clear: f32) -> Self {
        let foot = pose.project(along(cone, PLATE_THICK));
        let tip = pose.project(along(cone, cone::HEIGHT as f32));
        let (dx, dy) = (tip.x - foot.x, tip.y - foot.y);
        let length = (dx * dx + dy * dy).sqrt();
        // Seen along its axis a cone is a disc: keep a direction and a minimum length.
        let radius_foot = RADIUS_BASE * pose.focal / foot.depth;
        let up = if length > 0.5 { (dx / length, dy / length) } else { (0.0, -1.0) };
        let length = length.max(0.6 * radius_foot);
        let below = (pose.height - cone.base[2] - 0.3) / foot.depth;
        let away = cone.axis[0] * pose.cos + cone.axis[1] * pose.sin;
        let sag = (cone.axis[2].abs() * below + away).clamp(-0.9, 0.9) * radius_foot / length;
        let radius_tip = RADIUS_TIP * pose.focal / tip.depth;
        Self { foot, tip, up, length, radius_foot, radius_tip, sag, clear }
    }

    fn draw(&self, strip: &mut Strip<'_>) {
        let reach = self.radius_foot.max(self.radius_tip) + 1.0;
        let bound = |a: f32, b: f32| (a.min(b) - reach, a.max(b) + reach);
        let (left, right) = bound(self.foot.x, self.tip.x);
        let (top, bottom) = bound(self.foot.y, self.tip.y);
        paint(strip, (left, right, top, bottom), |x, y| self.shade(x, y));
    }

    /// Returns the opacity and colour of the body at a point of the picture.
    fn shade(&self, x: f32, y: f32) -> (f32, Colour) {
        let (dx, dy) = (x - self.foot.x, y - self.foot.y);
        let height = (dx * self.up.0 + dy * self.up.1) / self.length;
        let across = dx * self.up.1 - dy * self.up.0;
        let radius = self.radius_foot + (self.radius_tip - self.radius_foot) * unit(height);
        let share = (across / radius.max(0.3)).clamp(-1.0, 1.0);
        let round = (1.0 - share * share).sqrt();
        // Lines of equal height on the near side are arcs.
        let height = height + self.sag * round * (radius / self.radius_foot.max(1e-3));
        let pixel = 1.0 / self.length;
        let inside = unit(radius - across.abs() + 0.5)
            * unit(height / pixel + 0.5)
            * unit((1.0 - height) / pixel + 0.5);
        if inside == 0.0 {
            return (0.0, HAZE);
        }
        let band: f32 = BANDS
            .iter()
            .map(|(from, to)| {
                unit((height - from) / pixel + 0.5) * unit((to - height) / pixel + 0.5)
            })
            .sum();
        let light = unit(0.28 + 0.62 * round + 0.30 * share);
        let body = ORANGE_DARK.mix(ORANGE, light);
        let white = BAND_DARK.mix(BAND, light);
        (inside, HAZE.mix(body.mix(white, unit(band)), self.clear))
    }
}

/// Paints the part of a box (left, right, top, bottom, in pixels of the picture) within `strip`
/// with the opacity and colour that `shade` returns for each point.
fn paint(
    strip: &mut Strip<'_>,
    (left, right, top, bottom): (f32, f32, f32, f32),
    shade: impl Fn(f32, f32) -> (f32, Colour),
) {
    let (rows, columns) = strip.within(left, right, top, bottom);
    for row in rows.clone() {
        let y = row as f32 + 0.5;
        let start = columns.start;
        for (i, out) in strip.luma_row(row)[columns.clone()].iter_mut().enumerate() {
            let (opacity, colour) = shade((start + i) as f32 + 0.5, y);
            let under = f32::from(*out);
            *out = to_u8(under + (colour.y - under) * opacity);
        }
    }
    // A chroma sample lies in the middle of four pixels.
    for row in (rows.start & !1..rows.end).step_by(2) {
        let y = row as f32 + 1.0;
        let (cb, cr) = strip.chroma_rows(row);
        for column in columns.start / 2..columns.end.div_ceil(2) {
            let (opacity, colour) = shade((2 * column) as f32 + 1.0, y);
            let mix = |under: u8, over: f32| {
                let under = f32::from(under);
                to_u8(under + (over - under) * opacity)
            };
            cb[column] = mix(cb[column], colour.cb);
            cr[column] = mix(cr[column], colour.cr);
        }
    }
}
