//! The car's own bonnet at the bottom of the picture: painted in advance as an overlay.

use std::ops::Range;

use super::clamp::{to_u8, unit};
use super::colour::Colour;
use super::strip::Strip;

const PAINT: Colour = Colour::rgb(24.0, 52.0, 92.0);
const SHINE: Colour = Colour::rgb(150.0, 178.0, 206.0);
const SEAM: Colour = Colour::rgb(10.0, 20.0, 36.0);

/// The bonnet: colour and opacity of the picture's lowest rows.
pub(super) struct Bonnet {
    width: usize,
    /// First row with any part of the bonnet.
    top: usize,
    /// Opacity, luma, cb and cr of each pixel from row `top` on, row by row.
    texels: Vec<[u8; 4]>,
    /// For each row from `top` on: the columns that show any of the bonnet, and those that show
    /// nothing else.
    spans: Vec<(Range<usize>, Range<usize>)>,
}

impl Bonnet {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let edge = |x: f32| edge(x / width as f32, height as f32);
        let top = ((edge(width as f32 / 2.0) - 1.0).max(0.0) as usize).min(height);
        let mut texels = Vec::with_capacity((height - top) * width);
        let mut spans = Vec::with_capacity(height - top);
        for row in top..height {
            let start = texels.len();
            for column in 0..width {
                let x = column as f32 + 0.5;
                let below = row as f32 + 0.5 - edge(x);
                let colour = shade(x / width as f32 - 0.5, below / height as f32);
                let opacity = to_u8(unit(below + 0.5) * 255.0);
                texels.push([opacity, to_u8(colour.y), to_u8(colour.cb), to_u8(colour.cr)]);
            }
            let row = &texels[start..];
            let span = |wanted: fn(u8) -> bool| {
                let first = row.iter().position(|t| wanted(t[0])).unwrap_or(width);
                first..row.iter().rposition(|t| wanted(t[0])).map_or(first, |last| last + 1)
            };
            spans.push((span(|opacity| opacity > 0), span(|opacity| opacity == 255)));
        }
        Self { width, top, texels, spans }
    }

    /// Returns the columns of `row` in which the bonnet hides everything behind it.
    pub(super) fn hides(&self, row: usize) -> Range<usize> {
        match row.checked_sub(self.top).and_then(|row| self.spans.get(row)) {
            Some((_, hidden)) => hidden.clone(),
            None => 0..0,
        }
    }

    pub(super) fn draw(&self, strip: &mut Strip<'_>) {
        for row in strip.rows.start.max(self.top)..strip.rows.end {
            let (covered, _) = self.spans[row - self.top].clone();
            let start = (row - self.top) * self.width;
            let texels = &self.texels[start + covered.start..start + covered.end];
            for (out, texel) in strip.luma_row(row)[covered.clone()].iter_mut().zip(texels) {
                *out = blend(*out, texel[1], texel[0]);
            }
            if row % 2 == 0 {
                let (cb, cr) = strip.chroma_rows(row);
                let half = covered.start.div_ceil(2)..covered.end / 2;
                let texels = &self.texels[start..start + self.width];
                for column in half {
                    let [opacity, _, to_cb, to_cr] = texels[2 * column];
                    cb[column] = blend(cb[column], to_cb, opacity);
                    cr[column] = blend(cr[column], to_cr, opacity);
                }
            }
        }
    }
}

fn blend(under: u8, over: u8, opacity: u8) -> u8 {
    let (under, over, opacity) = (u32::from(under), u32::from(over), u32::from(opacity));
    ((over * opacity + under * (255 - opacity) + 127) / 255) as u8
}

/// Returns the row, which may be fractional, where the bonnet begins at `u` picture widths from the
/// left.
fn edge(u: f32, height: f32) -> f32 {
    let aside = (u - 0.5).abs() * 2.0;
    let square = aside * aside;
    // A gentle curve in the middle that falls off to the wings.
    let fall = 0.028 * square + 0.085 * square * square * square;
    let bulge = 0.006 * unit(1.0 - ((aside - 0.45) * 9.0).abs());
    height * (0.893 + fall - bulge)
}

/// Returns the colour at `aside` picture widths from the middle and `below` picture heights under
/// the bonnet's edge.
fn shade(aside: f32, below: f32) -> Colour {
    let below = if below > 0.0 { below } else { 0.0 };
    // The far edge mirrors the sky at a grazing angle.
    let grazing = unit(1.0 - below / 0.085);
    let light = 0.10 + 0.50 * grazing * grazing + 0.12 * unit(1.0 - aside.abs() * 2.2);
    let mut colour = PAINT.mix(SHINE, light);
    let crease = |at: f32, width: f32| unit(1.0 - ((aside.abs() - at).abs() / width));
    let lean = 0.235 + below * 0.45;
    colour = colour.mix(SHINE, 0.30 * crease(lean, 0.012));
    colour = colour.mix(SEAM, 0.25 * crease(lean + 0.018, 0.014));
    // A dark lip along the edge.
    colour.mix(SEAM, 0.55 * unit(1.0 - below / 0.0045))
}
