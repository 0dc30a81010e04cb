//! Seeded noise: a hash, and a tile of smooth noise that repeats seamlessly.

/// Returns a well-mixed 64-bit hash of `a` and `b` (SplitMix64's finaliser, twice).
pub(crate) fn hash(a: u64, b: u64) -> u64 {
    mix(mix(a.wrapping_add(0x9E37_79B9_7F4A_7C15)) ^ b.wrapping_mul(0xD1B5_4A32_D192_ED03))
}

/// Returns a number in [0, 1) derived from `a` and `b`.
pub(crate) fn unit(a: u64, b: u64) -> f64 {
    (hash(a, b) >> 11) as f64 / (1u64 << 53) as f64
}

/// Texels along a side of a [`Tile`].
pub(crate) const TILE: usize = 256;

/// Smooth noise, 256 by 256 texels, seamless at its edges, mean 128.
///
/// Its shortest wavelength is four texels, so that reading the nearest texel is smooth enough.
#[derive(Clone)]
pub(crate) struct Tile {
    texels: Box<[u8; TILE * TILE]>,
}

impl Tile {
    /// Returns the tile of `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let mut sums = vec![0.0_f32; TILE * TILE];
        for (octave, (period, weight)) in
            [(64, 1.0), (32, 0.7), (16, 0.5), (8, 0.25)].iter().enumerate()
        {
            add_octave(&mut sums, *period, *weight, hash(seed, octave as u64));
        }
        let mean = sums.iter().sum::<f32>() / sums.len() as f32;
        let variance =
            sums.iter().map(|s| (s - mean) * (s - mean)).sum::<f32>() / sums.len() as f32;
        let gain = 42.0 / variance.sqrt();
        let mut texels = Box::new([0; TILE * TILE]);
        for (texel, sum) in texels.iter_mut().zip(&sums) {
            *texel = (128.0 + (sum - mean) * gain).clamp(0.0, 255.0) as u8;
        }
        Self { texels }
    }

    /// Returns the texel nearest to (`u`, `v`), in 16.16 fixed point, as a number around 0, mostly
    /// within ±1 and never outside ±2.
    #[inline(always)]
    pub(crate) fn nearest(&self, u: u32, v: u32) -> f32 {
        let index = ((v >> 8) & 0xFF00) | ((u >> 16) & 0xFF);
        f32::from(self.texels[index as u16 as usize]) * (1.0 / 64.0) - 2.0
    }

    /// Returns the interpolated noise at (`u`, `v`) in texels, around 0, mostly within ±1 and never
    /// outside ±2.
    pub(crate) fn smooth(&self, u: f64, v: f64) -> f32 {
        let (iu, iv) = (u.floor(), v.floor());
        let (fu, fv) = ((u - iu) as f32, (v - iv) as f32);
        let (iu, iv) = (iu as i64, iv as i64);
        let at = |du: i64, dv: i64| {
            let row = (iv + dv).rem_euclid(TILE as i64) as usize;
            let column = (iu + du).rem_euclid(TILE as i64) as usize;
            f32::from(self.texels[row * TILE + column]) / 64.0 - 2.0
        };
        let top = at(0, 0) + (at(1, 0) - at(0, 0)) * fu;
        let bottom = at(0, 1) + (at(1, 1) - at(0, 1)) * fu;
        top + (bottom - top) * fv
    }
}

/// Adds smoothly interpolated random values to every texel of `sums`: `period` of them along a
/// side, between -`weight` and `weight`.
fn add_octave(sums: &mut [f32], period: usize, weight: f32, seed: u64) {
    let cell = TILE / period;
    let lattice: Vec<f32> =
        (0..period * period).map(|i| unit(seed, i as u64) as f32 * 2.0 - 1.0).collect();
    let at = |x: usize, y: usize| lattice[(y % period) * period + x % period];
    for y in 0..TILE {
        let fy = ease((y % cell) as f32 / cell as f32);
        for x in 0..TILE {
            let fx = ease((x % cell) as f32 / cell as f32);
            let (cx, cy) = (x / cell, y / cell);
            let top = at(cx, cy) + (at(cx + 1, cy) - at(cx, cy)) * fx;
            let bottom = at(cx, cy + 1) + (at(cx + 1, cy + 1) - at(cx, cy + 1)) * fx;
            sums[y * TILE + x] += weight * (top + (bottom - top) * fy);
        }
    }
}

fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_repeats_and_is_of_its_seed() {
        let (a, b) = (Tile::new(1), Tile::new(2));
        assert_eq!(a.texels, Tile::new(1).texels);
        assert_ne!(a.texels, b.texels);
        assert_eq!(a.smooth(3.25, 7.5), a.smooth(3.25 + 256.0, 7.5 - 256.0));
        assert_eq!(a.nearest(5 << 16, 9 << 16), a.smooth(5.0, 9.0));
    }

    #[test]
    fn units_lie_between_nought_and_one() {
        assert!((0..1000).all(|i| (0.0..1.0).contains(&unit(7, i))));
    }
}
