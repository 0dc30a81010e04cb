//! Synthetic moving pictures: textured ground that slides, a bright post that crosses, and camera
//! noise over everything.

use tautline_video::Picture;

/// A scene that renders pictures by number.
pub(crate) struct Scene {
    width: usize,
    height: usize,
    texture: Vec<u8>,
}

const SIDE: usize = 256;

impl Scene {
    /// Creates a scene whose texture is derived from `seed`.
    pub(crate) fn new(width: usize, height: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut noise = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        // Coarse and fine value noise, because camera pictures have detail at every scale.
        let coarse: Vec<u8> = (0..SIDE * SIDE / 64).map(|_| noise()).collect();
        let texture = (0..SIDE * SIDE)
            .map(|at| {
                let (row, column) = (at / SIDE / 8, at % SIDE / 8);
                let large = coarse[row * (SIDE / 8) + column];
                60 + large / 3 + noise() / 16
            })
            .collect();
        Self { width, height, texture }
    }

    /// Returns picture `number`.
    pub(crate) fn picture(&self, number: u32) -> Picture {
        let mut picture = Picture::new(self.width, self.height).expect("a valid size");
        let width = self.width;
        let shift = number as usize * 3;
        let post = number as usize * 5 % width;
        let (luma, cb, cr) = picture.planes_mut();
        for (row, line) in luma.chunks_exact_mut(width).enumerate() {
            for (column, value) in line.iter_mut().enumerate() {
                let at = (row + number as usize / 2) % SIDE * SIDE + (column + shift) % SIDE;
                let on_post = (post..post + 12).contains(&column);
                let clean = if on_post { 220 } else { self.texture[at] };
                *value = clean - 2 + (noise(row * width + column, number) & 3);
            }
        }
        for (row, (cb, cr)) in
            cb.chunks_exact_mut(width / 2).zip(cr.chunks_exact_mut(width / 2)).enumerate()
        {
            cb.fill(118 + (row / 4 % 8) as u8);
            cr.fill(130);
        }
        picture
    }
}

/// Returns a byte derived from the numbers of a pixel and a picture.
fn noise(pixel: usize, number: u32) -> u8 {
    // The finalizer of SplitMix64.
    let mixed = (pixel as u64 | u64::from(number) << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 56) as u8
}
