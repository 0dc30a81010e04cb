//! Sky, hills and the line of trees at the horizon: a panorama around the course.

use std::f64::consts::TAU;

use super::clamp::{to_u8, unit};
use super::colour::{Colour, HAZE};
use super::pose::Pose;
use super::strip::Strip;
use super::sun;
use crate::noise::Tile;
use crate::trig;

/// Panorama texels in a full turn.
const TURN: usize = 4096;
/// Fixed-point fraction bits of a panorama column.
const FRACTION: u32 = 16;

const ZENITH: Colour = Colour::rgb(70.0, 124.0, 196.0);
const MIST: Colour = Colour::rgb(206.0, 222.0, 234.0);
const CLOUD: Colour = Colour::rgb(250.0, 249.0, 246.0);
const CLOUD_SHADE: Colour = Colour::rgb(178.0, 190.0, 206.0);
const SUN: Colour = Colour::rgb(255.0, 248.0, 226.0);
const RIDGES: [Colour; 2] = [Colour::rgb(146.0, 172.0, 192.0), Colour::rgb(112.0, 144.0, 148.0)];
const WOOD: Colour = Colour::rgb(58.0, 84.0, 58.0);

/// The painted panorama and the silhouettes in front of it.
pub(super) struct Sky {
    /// Number of rows of the panorama, which go upwards from the horizon.
    rows: usize,
    luma: Vec<u8>,
    cb: Vec<u8>,
    cr: Vec<u8>,
    /// Offset of every picture column from straight ahead to the right, in panorama columns, 16.16
    /// fixed point.
    columns: Vec<u32>,
    /// Height of two ridges and of the wood in each panorama column, in pixels above the horizon.
    tops: [Vec<f32>; 3],
    /// Brightness variation of the wood in each panorama column, around 0.
    leaves: Vec<f32>,
}

impl Sky {
    pub(super) fn new(tile: &Tile, width: usize, height: usize, focal: f32) -> Self {
        let rows = (height * 11 / 20).next_multiple_of(2);
        let mut sky = Self {
            rows,
            luma: vec![0; rows * TURN],
            cb: vec![0; rows * TURN / 4],
            cr: vec![0; rows * TURN / 4],
            columns: columns(width, focal),
            tops: silhouettes(tile, focal),
            leaves: (0..TURN).map(|c| tile.smooth(c as f64, 3.5)).collect(),
        };
        sky.paint(tile, focal);
        sky
    }

    fn paint(&mut self, tile: &Tile, focal: f32) {
        let compass: Vec<(f64, f64)> =
            (0..TURN).map(|c| trig::sin_cos(TAU * c as f64 / TURN as f64)).collect();
        for row in 0..self.rows {
            let slope = (row as f32 + 0.5) / focal;
            for (column, &(sin, cos)) in compass.iter().enumerate() {
                let colour = sky_colour(tile, slope, sin, cos);
                self.luma[row * TURN + column] = to_u8(colour.y);
                if row % 2 == 0 && column % 2 == 0 {
                    let at = row / 2 * (TURN / 2) + column / 2;
                    self.cb[at] = to_u8(colour.cb);
                    self.cr[at] = to_u8(colour.cr);
                }
            }
        }
    }

    /// Draws sky, ridges and wood into the rows of `strip` above row `until` of the picture, which
    /// must not lie beyond the strip's end.
    pub(super) fn draw(&self, pose: &Pose, until: usize, strip: &mut Strip<'_>) {
        if strip.rows.start >= until {
            return;
        }
        let turns = -pose.heading / TAU;
        let ahead = ((turns - turns.floor()) * (TURN as f64) * f64::from(1 << FRACTION)) as u32;
        let view = self.look(ahead);
        for row in strip.rows.start..until {
            let above = pose.horizon - (row as f32 + 0.5);
            let at = (above.max(0.0) as usize).min(self.rows - 1);
            let source = &self.luma[at * TURN..(at + 1) * TURN];
            let luma = strip.luma_row(row);
            copy(source, &view.columns, 1, luma);
            view.cover(above, 1, &|colour| colour.y, luma);
            if row % 2 == 0 {
                let range = at / 2 * (TURN / 2)..(at / 2 + 1) * (TURN / 2);
                let (cb, cr) = strip.chroma_rows(row);
                copy(&self.cb[range.clone()], &view.columns, 2, cb);
                copy(&self.cr[range], &view.columns, 2, cr);
                view.cover(above - 0.5, 2, &|colour| colour.cb, cb);
                view.cover(above - 0.5, 2, &|colour| colour.cr, cr);
            }
        }
    }

    /// Returns the part of the panorama behind each picture column for a camera directed at
    /// panorama column `ahead` (16.16 fixed point).
    fn look(&self, ahead: u32) -> Look {
        let columns: Vec<u16> = self
            .columns
            .iter()
            .map(|offset| (ahead.wrapping_add(*offset) >> FRACTION) as u16 & (TURN - 1) as u16)
            .collect();
        let between = |table: &[f32]| -> Vec<f32> {
            let value = |offset: &u32| {
                let column = ahead.wrapping_add(*offset);
                let at = (column >> FRACTION) as usize;
                let (a, b) = (table[at & (TURN - 1)], table[(at + 1) & (TURN - 1)]);
                a + (b - a) * ((column & 0xFFFF) as f32 / 65536.0)
            };
            self.columns.iter().map(value).collect()
        };
        let tops = [0, 1, 2].map(|i| between(&self.tops[i]));
        let highest = [0, 1, 2].map(|i| self.tops[i].iter().copied().fold(0.0, f32::max));
        Look { columns, highest, tops, leaves: between(&self.leaves) }
    }
}

/// Parts of the panorama that each picture column shows from one pose, and the silhouettes there.
struct Look {
    columns: Vec<u16>,
    highest: [f32; 3],
    tops: [Vec<f32>; 3],
    leaves: Vec<f32>,
}

impl Look {
    /// Draws ridges and wood over `out`, a row of one plane `above` pixels over the horizon, for
    /// every `stride`th column of the picture. `plane` selects the colour's component.
    #[inline(always)]
    fn cover(&self, above: f32, stride: usize, plane: &dyn Fn(Colour) -> f32, out: &mut [u8]) {
        for (layer, ridge) in RIDGES.iter().enumerate() {
            if above < self.highest[layer] + 1.0 {
                // Haze is denser at a ridge's foot.
                let foot = unit(1.0 - above / self.highest[layer]);
                let value = plane(ridge.mix(MIST, 0.55 * foot));
                for (out, top) in out.iter_mut().zip(self.tops[layer].iter().step_by(stride)) {
                    let share = unit((top - above) / stride as f32 + 0.5);
                    let under = f32::from(*out);
                    *out = to_u8(under + (value - under) * share);
                }
            }
        }
        if above < self.highest[2] + 1.0 {
            let value = plane(WOOD.mix(HAZE, 0.26));
            let texture = if stride == 1 { 5.0 } else { 0.0 };
            // Crowns are lit, the parts below them are not.
            let tops = self.tops[2].iter().step_by(stride);
            let leaves = self.leaves.iter().step_by(stride);
            for ((out, top), leaf) in out.iter_mut().zip(tops).zip(leaves) {
                let share = unit((top - above) / stride as f32 + 0.5);
                let lit = unit(1.0 - (top - above) * 0.14) * 2.0 - 0.8;
                let under = f32::from(*out);
                *out = to_u8(under + (value + texture * (lit + leaf) - under) * share);
            }
        }
    }
}

fn copy(source: &[u8], columns: &[u16], stride: usize, out: &mut [u8]) {
    if stride == 1 {
        let source: &[u8; TURN] = source.try_into().expect("a row of the panorama");
        for (out, column) in out.iter_mut().zip(columns) {
            *out = source[usize::from(*column) & (TURN - 1)];
        }
    } else {
        let source: &[u8; TURN / 2] = source.try_into().expect("a chroma row of the panorama");
        for (out, column) in out.iter_mut().zip(columns.iter().step_by(2)) {
            *out = source[usize::from(*column / 2) & (TURN / 2 - 1)];
        }
    }
}

/// Returns the angles of the picture's columns to the right of straight ahead, in panorama columns,
/// 16.16 fixed point.
fn columns(width: usize, focal: f32) -> Vec<u32> {
    (0..width)
        .map(|x| {
            let slope = (x as f64 + 0.5 - width as f64 / 2.0) / f64::from(focal);
            let texels = trig::atan(slope) / TAU * TURN as f64;
            (texels * f64::from(1 << FRACTION)) as i64 as u32
        })
        .collect()
}

fn silhouettes(tile: &Tile, focal: f32) -> [Vec<f32>; 3] {
    let ring = |waves: f64, shift: f64, c: usize| {
        tile.smooth(c as f64 / TURN as f64 * 256.0 * waves, shift)
    };
    let table = |height: &dyn Fn(usize) -> f32| (0..TURN).map(|c| focal * height(c)).collect();
    [
        table(&|c| 0.052 + 0.020 * ring(1.0, 20.0, c) + 0.0015 * ring(8.0, 60.0, c)),
        table(&|c| 0.028 + 0.012 * ring(2.0, 90.0, c) + 0.0012 * ring(12.0, 120.0, c)),
        table(&|c| {
            let rough = 0.0016 * ring(16.0, 201.0, c) + 0.0012 * ring(8.0, 150.0, c);
            0.0155 + 0.0035 * ring(3.0, 180.0, c) + rough
        }),
    ]
}

fn sky_colour(tile: &Tile, slope: f32, sin: f64, cos: f64) -> Colour {
    let high = unit(slope / 0.46);
    let high = high * (2.0 - high);
    let mut colour = MIST.mix(ZENITH, high);
    // The sun's glow.
    let (sun_sin, sun_cos) = trig::sin_cos(sun::AZIMUTH);
    let aside = (sin * sun_cos - cos * sun_sin) as f32;
    let facing = (cos * sun_cos + sin * sun_sin) as f32;
    let up = slope - 0.30;
    let square = aside * aside + up * up + if facing < 0.0 { 4.0 } else { 0.0 };
    colour = colour.mix(SUN, 0.75 / (1.0 + square * 60.0));
    // Clouds lie on a plane overhead, so they converge towards the horizon.
    let far = f64::from(1.0 / (slope + 0.07));
    let density = |spread: f64| {
        let (u, v) = (cos * far * spread, sin * far * spread);
        tile.smooth(u * 4.2 + 40.0, v * 4.2)
            + 0.45 * tile.smooth(u * 11.0, v * 11.0 + 90.0)
            + 0.2 * tile.smooth(u * 27.0, v * 27.0 + 30.0)
    };
    let here = density(1.0);
    let thick = unit((here - 0.25) * 1.3);
    let thick = thick * thick * (3.0 - 2.0 * thick);
    // Clouds are lit from the sun's elevation; under more cloud they are in shade.
    let shade = unit(0.35 + 0.5 * (density(0.94) - 0.2));
    let cloud = CLOUD.mix(CLOUD_SHADE, shade * thick);
    let near = unit(slope / 0.10);
    colour.mix(cloud, thick * (0.35 + 0.55 * near))
}
