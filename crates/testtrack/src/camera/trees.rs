//! Trees near the road: painted in advance in a few sizes, drawn scaled.

use std::ops::Range;

use super::colour::{Colour, HAZE, clear};
use super::pose::Pose;
use super::strip::Strip;
use crate::course::Tree;
use crate::noise;

/// Range of distances ahead at which a tree is drawn, m.
pub(super) const DEPTHS: (f32, f32) = (6.0, 240.0);

/// Ratio of a sprite's width to its height.
const ASPECT: f32 = 0.75;
const SPRITE: (usize, usize) = (192, 256);
const KINDS: usize = 3;
const LEAVES: [Colour; KINDS] =
    [Colour::rgb(70.0, 104.0, 50.0), Colour::rgb(56.0, 92.0, 52.0), Colour::rgb(86.0, 110.0, 48.0)];

/// Pictures of trees, each in sizes from 256 rows down to 8.
pub(super) struct Sprites {
    kinds: Vec<Vec<Sprite>>,
}

/// Opacity and luma of a tree; fully transparent texels around it are skipped by row.
struct Sprite {
    width: usize,
    height: usize,
    texels: Vec<[u8; 2]>,
    spans: Vec<Range<usize>>,
}

impl Sprites {
    pub(super) fn new() -> Self {
        let kinds = (0..KINDS).map(|kind| sizes(paint(kind as u64))).collect();
        Self { kinds }
    }

    pub(super) fn draw(&self, pose: &Pose, tree: &Tree, strip: &mut Strip<'_>) {
        let foot = pose.project([tree.x, tree.y, 0.0]);
        let rows = tree.height * pose.focal / foot.depth;
        let columns = rows * ASPECT;
        let (top, left) = (foot.y - rows, foot.x - columns * 0.5);
        let (rows_in, columns_in) = strip.within(left, left + columns, top, foot.y);
        if rows_in.is_empty() || columns_in.is_empty() {
            return;
        }
        let kind = usize::from(tree.kind) % KINDS;
        let sprites = &self.kinds[kind];
        let sprite =
            sprites.iter().rev().find(|sprite| sprite.height as f32 >= rows).unwrap_or(&sprites[0]);
        let clear = clear(foot.depth);
        let scaled = Scaled {
            sprite,
            left,
            top,
            step: sprite.height as f32 / rows,
            contrast: (clear * 256.0) as i32,
            colour: HAZE.mix(LEAVES[kind], clear),
            haze: ((1.0 - clear) * HAZE.y) as i32,
        };
        for row in rows_in {
            scaled.draw_luma(row, &columns_in, strip);
            if row % 2 == 0 {
                scaled.draw_chroma(row, &columns_in, strip);
            }
        }
    }
}

/// A sprite scaled to a tree, at its position in the picture.
struct Scaled<'a> {
    sprite: &'a Sprite,
    left: f32,
    top: f32,
    /// Texels of the sprite per pixel of the picture.
    step: f32,
    contrast: i32,
    colour: Colour,
    haze: i32,
}

/// Part of one row of a sprite that a row of the picture shows.
struct Line<'a> {
    texels: &'a [[u8; 2]],
    /// Columns of the picture that show this part.
    columns: Range<usize>,
    /// Position of the first column in texels, in 16.16 fixed point.
    at: u32,
    /// Texels per column of the picture, in 16.16 fixed point.
    step: u32,
}

impl Scaled<'_> {
    /// Returns the part of the sprite that the row of the picture shows within `columns`; `None` if
    /// there is none.
    fn row(&self, row: f32, columns: &Range<usize>) -> Option<Line<'_>> {
        let line = ((row - self.top) * self.step).max(0.0) as usize;
        let span = self.sprite.spans.get(line)?;
        let column_of = |texel: usize| self.left + texel as f32 / self.step;
        let first = (column_of(span.start).max(0.0) as usize).max(columns.start);
        let last = ((column_of(span.end) + 1.0).max(0.0) as usize).min(columns.end);
        if first >= last {
            return None;
        }
        let texels = &self.sprite.texels[line * self.sprite.width..(line + 1) * self.sprite.width];
        let at = ((first as f32 + 0.5 - self.left) * self.step).max(0.0);
        let fixed = |texel: f32| (texel * 65536.0) as u32;
        Some(Line { texels, columns: first..last, at: fixed(at), step: fixed(self.step) })
    }

    fn draw_luma(&self, row: usize, columns: &Range<usize>, strip: &mut Strip<'_>) {
        let Some(Line { texels, columns, mut at, step }) = self.row(row as f32 + 0.5, columns)
        else {
            return;
        };
        for out in &mut strip.luma_row(row)[columns] {
            let [opacity, luma] = texels[((at >> 16) as usize).min(texels.len() - 1)];
            at = at.wrapping_add(step);
            let value = self.haze + ((i32::from(luma) * self.contrast) >> 8);
            let under = i32::from(*out);
            *out = (under + (((value - under) * i32::from(opacity)) >> 8)) as u8;
        }
    }

    fn draw_chroma(&self, row: usize, columns: &Range<usize>, strip: &mut Strip<'_>) {
        let Some(Line { texels, columns, at, step }) = self.row(row as f32 + 1.0, columns) else {
            return;
        };
        let (cb, cr) = strip.chroma_rows(row);
        let half = columns.start / 2..columns.end / 2;
        let (to_cb, to_cr) = (self.colour.cb as i32, self.colour.cr as i32);
        let mut at = at;
        for (cb, cr) in cb[half.clone()].iter_mut().zip(&mut cr[half]) {
            let [opacity, _] = texels[((at >> 16) as usize).min(texels.len() - 1)];
            at = at.wrapping_add(2 * step);
            let opacity = i32::from(opacity);
            *cb = (i32::from(*cb) + (((to_cb - i32::from(*cb)) * opacity) >> 8)) as u8;
            *cr = (i32::from(*cr) + (((to_cr - i32::from(*cr)) * opacity) >> 8)) as u8;
        }
    }
}

/// Paints a trunk and a crown of many lit balls of leaves.
fn paint(kind: u64) -> Sprite {
    let (width, height) = SPRITE;
    let mut texels = vec![[0_u8, 0_u8]; width * height];
    let draw = |i: u64, what: u64| noise::unit(0x7AEE + kind, i * 8 + what) as f32;
    let base = LEAVES[kind as usize].y;
    for row in height * 6 / 10..height {
        let half = 4 + (row - height * 6 / 10) / 40;
        for column in width / 2 - half..width / 2 + half {
            let light = (width / 2 + half - column) as f32 / (2 * half) as f32;
            texels[row * width + column] = [255, (44.0 + 22.0 * light) as u8];
        }
    }
    let slender = [0.84, 0.62, 0.95][kind as usize];
    for ball in 0..150_u64 {
        // From back and bottom to front and top: later balls are lighter.
        let age = ball as f32 / 150.0;
        let (u, v) = (draw(ball, 0) * 2.0 - 1.0, draw(ball, 1) * 2.0 - 1.0);
        if u * u + v * v > 1.0 {
            continue;
        }
        let x = width as f32 * (0.5 + 0.37 * slender * u * (1.15 - 0.25 * (1.0 - v)));
        let y = height as f32 * (0.41 + 0.31 * v - 0.03 * age);
        let radius = (11.0 + 13.0 * draw(ball, 2)) * (0.8 + 0.2 * slender);
        let lit = 0.72 + 0.22 * age - 0.22 * v - 0.10 * u;
        stamp(&mut texels, (x, y), radius, base * lit);
    }
    Sprite::new(width, height, texels)
}

/// Paints a ball of leaves, lighter at its upper left.
fn stamp(texels: &mut [[u8; 2]], (x, y): (f32, f32), radius: f32, luma: f32) {
    let (width, height) = SPRITE;
    for row in 0..height {
        for column in 0..width {
            let (dx, dy) = ((column as f32 - x) / radius, (row as f32 - y) / radius);
            let inside = 1.0 - (dx * dx + dy * dy).sqrt();
            if inside <= 0.0 {
                continue;
            }
            let texel = &mut texels[row * width + column];
            let opacity = (inside * radius * 0.5).min(1.0);
            let lit = luma * (1.0 - 0.20 * (dx + dy));
            let under = f32::from(texel[1]);
            let start = if texel[0] == 0 { lit } else { under };
            texel[1] = (start + (lit - start) * opacity).clamp(22.0, 200.0) as u8;
            texel[0] = texel[0].max((opacity * 255.0) as u8);
        }
    }
}

/// Returns the sprite at full size, half, a quarter, and so on down to 8 rows.
fn sizes(sprite: Sprite) -> Vec<Sprite> {
    let mut sizes = vec![sprite];
    while sizes[sizes.len() - 1].height > 8 {
        let last = &sizes[sizes.len() - 1];
        let (width, height) = (last.width / 2, last.height / 2);
        let texels = (0..width * height).map(|i| last.average(i % width * 2, i / width * 2));
        let texels = texels.collect();
        sizes.push(Sprite::new(width, height, texels));
    }
    sizes
}

impl Sprite {
    fn new(width: usize, height: usize, texels: Vec<[u8; 2]>) -> Self {
        let spans = texels
            .chunks_exact(width)
            .map(|row| {
                let first = row.iter().position(|texel| texel[0] > 0).unwrap_or(width);
                let last =
                    row.iter().rposition(|texel| texel[0] > 0).map_or(first, |last| last + 1);
                first..last
            })
            .collect();
        Self { width, height, texels, spans }
    }

    /// Returns the mean opacity, and the mean luma weighted by opacity, of the four texels from
    /// (`column`, `row`) on.
    fn average(&self, column: usize, row: usize) -> [u8; 2] {
        let four = [(0, 0), (1, 0), (0, 1), (1, 1)]
            .map(|(dx, dy)| self.texels[(row + dy) * self.width + column + dx].map(u32::from));
        let opacity: u32 = four.iter().map(|[opacity, _]| opacity).sum();
        let luma: u32 = four.iter().map(|[opacity, luma]| opacity * luma).sum();
        [(opacity / 4) as u8, luma.checked_div(opacity).unwrap_or(0) as u8]
    }
}
