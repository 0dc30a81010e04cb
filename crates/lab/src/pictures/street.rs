//! A drive through a street of houses, as footage without recordings: by day, at night and in rain.
//!
//! Everything derives from a seed by integer arithmetic, sums, products, quotients and roots, so
//! that a seed yields the same bytes on every machine; [`hash`](Footage::hash) verifies that.

use anyhow::Result;
use tautline_video::Picture;

use super::footage::{Footage, Size};

/// Conditions in the street.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    /// By day, with a camera's noise of 40 dB.
    City,
    /// Lamps, headlights, lit windows, and high camera noise.
    Night,
    /// Grey light, a reflecting road, falling drops, and drops on the windscreen.
    Rain,
}

impl Mood {
    /// All conditions.
    pub const ALL: [Self; 3] = [Self::City, Self::Night, Self::Rain];

    fn name(self) -> &'static str {
        match self {
            Self::City => "street-city",
            Self::Night => "street-night",
            Self::Rain => "street-rain",
        }
    }

    /// Returns the standard deviation of the sensor noise, luma and chroma.
    fn noise(self) -> [f32; 2] {
        match self {
            Self::City => [2.55, 1.0],
            Self::Night => [4.0, 2.5],
            Self::Rain => [3.0, 1.5],
        }
    }
}

impl Footage {
    /// Returns a drive of `count` pictures through the street of `seed`.
    pub(crate) fn street(
        mood: Mood,
        size: Size,
        rate: u32,
        count: usize,
        seed: u64,
    ) -> Result<Self> {
        let pictures = (0..count).map(|number| {
            let mut picture = Picture::new(size.width, size.height)?;
            View::new(mood, size, number as f32 / rate as f32, seed).draw(&mut picture);
            grain(&mut picture, mood.noise(), mix(seed, number as u64, 77));
            Ok(picture)
        });
        let pictures = pictures.collect::<Result<_>>()?;
        Ok(Self { name: mood.name().to_owned(), pictures, rate })
    }

    /// Returns the 64-bit FNV-1a hash of all samples in order: luma, Cb, Cr, picture by picture.
    pub(crate) fn hash(&self) -> u64 {
        let planes = self.pictures.iter().flat_map(|it| [it.luma(), it.cb(), it.cr()]);
        planes.flatten().fold(0xcbf2_9ce4_8422_2325, |hash, sample| {
            (hash ^ u64::from(*sample)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The camera in the street at one instant.
struct View {
    mood: Mood,
    size: Size,
    seed: u64,
    time: f32,
    /// Position of the camera: metres from the middle of the road, and along it.
    at: [f32; 2],
    /// Focal length in samples.
    focal: f32,
}

/// A colour: luma from 0 to 255, and chroma around 0.
type Colour = [f32; 3];
/// A visible point: its colour, its position, and its own light.
type Sight = (Colour, [f32; 3], Colour);

impl View {
    fn new(mood: Mood, size: Size, time: f32, seed: u64) -> Self {
        let at = [-1.8 + 0.15 * wave(time, 3.1), 3.0 + SPEED * time];
        Self { mood, size, seed, time, at, focal: size.width as f32 * 0.7 }
    }

    fn draw(&self, picture: &mut Picture) {
        let Size { width, height } = self.size;
        let (luma, cb, cr) = picture.planes_mut();
        let shake = 1.5 * wave(self.time, 0.37) + 0.8 * wave(self.time, 0.11);
        for row in 0..height {
            for column in 0..width {
                let (x, y) = self.through_drops(column as f32, row as f32);
                let direction = [
                    (x - width as f32 * 0.5) / self.focal,
                    (y - height as f32 * 0.46 + shake) / self.focal,
                ];
                let [l, b, r] = self.lit(direction);
                luma[row * width + column] = clamp(16.0 + 0.86 * l);
                if row % 2 == 0 && column % 2 == 0 {
                    let at = row / 2 * (width / 2) + column / 2;
                    (cb[at], cr[at]) = (clamp(128.0 + b), clamp(128.0 + r));
                }
            }
        }
        if self.mood == Mood::Rain {
            self.streaks(luma);
        }
    }

    /// Returns the position in the view that is seen at a position of the picture: another one only
    /// in rain, where a drop on the windscreen refracts it. Each drop stays for a second.
    fn through_drops(&self, x: f32, y: f32) -> (f32, f32) {
        if self.mood != Mood::Rain {
            return (x, y);
        }
        let side = self.size.width as f32 / 16.0;
        let (column, row) = ((x / side).floor(), (y / side).floor());
        let cell = mix(self.seed, column as u64 * 64 + row as u64, 5);
        let age = self.time + unit(cell);
        let drop = mix(cell, age.floor() as u64, 6);
        if unit(drop) > 0.3 {
            return (x, y);
        }
        let radius = side * (0.12 + 0.2 * unit(mix(drop, 1, 1)));
        let place = |salt: u64| 0.3 + 0.4 * unit(mix(drop, salt, 2));
        let apart = [x - (column + place(1)) * side, y - (row + place(2)) * side];
        let near = (apart[0] * apart[0] + apart[1] * apart[1]) / (radius * radius);
        if near >= 1.0 {
            return (x, y);
        }
        (x - apart[0] * 2.5 * (1.0 - near), y - apart[1] * 2.5 * (1.0 - near))
    }

    /// Returns the illuminated colour in a direction.
    fn lit(&self, direction: [f32; 2]) -> Colour {
        let (colour, [x, height, z], lamp) = self.seen(direction);
        let ahead = z - self.at[1];
        match self.mood {
            Mood::City => colour,
            Mood::Rain => {
                let haze = (ahead / 90.0).clamp(0.0, 0.8);
                colour.map(|value| value * 0.7 * (1.0 - haze)).plus([110.0 * haze, 0.0, 0.0])
            }
            Mood::Night => {
                let to_lamp = z - ((z / 24.0).floor() + 0.5) * 24.0;
                let pool = 1.0 + (to_lamp * to_lamp + (5.5 - height) * (5.5 - height)) / 14.0;
                let beam = (1.0 - direction[0] * direction[0] * 6.0).clamp(0.0, 1.0);
                let low = (1.0 - (height - 0.8).max(0.0) * 0.7).clamp(0.0, 1.0);
                let headlight = beam * low * 0.9 / (1.0 + ahead * ahead / 220.0);
                let light = 0.03 + 0.5 / pool * lamp_side(x) + headlight;
                [
                    colour[0] * light.min(1.0) + lamp[0],
                    colour[1] * light - 6.0 * light + lamp[1],
                    colour[2] * light + 8.0 * light + lamp[2],
                ]
            }
        }
    }

    /// Returns the daylight colour, the position, and the own light at night, of the point in a
    /// direction.
    fn seen(&self, [right, down]: [f32; 2]) -> (Colour, [f32; 3], Colour) {
        let dark = [0.0; 3];
        let mut nearest = f32::INFINITY;
        let mut found =
            ([205.0 - 60.0 * (0.3 + down).clamp(0.0, 0.4), 6.0, -6.0], [0.0, 40.0, 1e4], dark);
        if down > 1e-3 {
            nearest = EYE / down;
            let (x, z) = (self.at[0] + right * nearest, self.at[1] + nearest);
            found = (self.ground(x, z, nearest), [x, 0.0, z], dark);
        }
        if right.abs() > 1e-3 {
            let side = if right > 0.0 { WALL } else { -WALL };
            let distance = (side - self.at[0]) / right;
            let (height, z) = (EYE - down * distance, self.at[1] + distance);
            let house = (z / HOUSE).floor();
            let number = mix(self.seed, house as u64 * 2 + u64::from(right > 0.0), 3);
            if distance < nearest && (0.0..8.0 + 12.0 * unit(number)).contains(&height) {
                nearest = distance;
                let (colour, lamp) = self.wall(number, z, height, distance / self.focal);
                found = (colour, [side, height, z], lamp);
            }
        }
        for car in 0..CARS {
            if let Some((distance, seen)) = self.car(car, [right, down])
                && distance < nearest
            {
                (nearest, found) = (distance, seen);
            }
        }
        found
    }

    fn ground(&self, x: f32, z: f32, distance: f32) -> Colour {
        // The road is seen at a glancing angle, which lengthens a sample along it.
        let grain = distance / self.focal * (1.0 + distance / 8.0);
        let rough = self.texture([x, z], grain, 11);
        if x.abs() > 5.0 {
            let joint = edge(0.03 - near_whole(x / 0.5) * 0.5, grain)
                .max(edge(0.03 - near_whole(z / 0.5) * 0.5, grain));
            return [138.0 + 30.0 * rough - 40.0 * joint * fade(0.5, grain), 0.0, 2.0];
        }
        let dash = (z / 8.0 - (z / 8.0).floor()) < 0.45;
        let line = if dash { edge(0.08 - x.abs(), grain) } else { 0.0 }
            .max(edge(0.07 - (x.abs() - 4.6).abs(), grain));
        let asphalt = 84.0 + 38.0 * rough;
        let asphalt = match self.mood {
            // Reflections of the sky and the houses, in patches.
            Mood::Rain => {
                let ripple = self.texture([x * 0.6, z * 0.25 + self.time * 0.2], grain, 12);
                let mirrored = self.texture([x * 0.4, (z - self.at[1]) * 0.1 + z * 0.2], grain, 13);
                asphalt * 0.5 + (60.0 + 90.0 * mirrored) * (0.5 + 0.5 * ripple).clamp(0.0, 1.0)
            }
            Mood::City | Mood::Night => asphalt,
        };
        [asphalt + (215.0 - asphalt) * line, 0.0, 0.0]
    }

    fn wall(&self, house: u64, z: f32, height: f32, grain: f32) -> (Colour, Colour) {
        let tone = 90.0 + 90.0 * unit(mix(house, 1, 4));
        let (u, v) = (z / 2.4, height / 3.1);
        let pane = mix(house, (u.floor() as i64 as u64) << 16 | v.floor() as u64, 8);
        let (across, up) = (u - u.floor(), v - v.floor());
        let glass = edge((0.28 - (across - 0.5).abs()) * 2.4, grain)
            * edge((0.3 - (up - 0.55).abs()) * 3.1, grain);
        let course = edge(0.012 - near_whole(height / 0.22) * 0.22, grain) * fade(0.22, grain);
        let brick = tone + 34.0 * self.texture([z, height], grain, 9) - 24.0 * course;
        let shine = 40.0
            + 60.0 * unit(pane)
            + 25.0 * self.texture([z * 0.3 - self.at[1] * 0.2, height], grain, 10);
        let warm = 14.0 * unit(mix(house, 2, 4)) - 4.0;
        let colour = [brick + (shine - brick) * glass, -warm * (1.0 - glass), warm * (1.0 - glass)];
        let is_lit = unit(mix(pane, 1, 1)) < 0.18;
        let lamp = if is_lit { [150.0 * glass, -20.0 * glass, 14.0 * glass] } else { [0.0; 3] };
        (colour, lamp)
    }

    /// Returns the distance in m and the visible point of car number `car` in a direction; `None`
    /// if the car is not in that direction, or not at least 2 m ahead.
    fn car(&self, car: u64, [right, down]: [f32; 2]) -> Option<(f32, Sight)> {
        let number = mix(self.seed, car, 20);
        let (oncoming, parked) = (car.is_multiple_of(3), car % 3 == 1);
        let [x, speed] = match (oncoming, parked) {
            (true, _) => [1.8, -9.0],
            (_, true) => [if number & 1 == 0 { 4.2 } else { -4.2 }, 0.0],
            _ => [-1.8, SPEED + 1.5],
        };
        let z = 14.0 + car as f32 * 11.0 + 6.0 * unit(number) + speed * self.time;
        let distance = z - self.at[1];
        if distance < 2.0 {
            return None;
        }
        let (across, height) = (self.at[0] + right * distance - x, EYE - down * distance);
        if across.abs() > 0.9 || !(0.15..1.5).contains(&height) {
            return None;
        }
        let narrow = if height > 0.9 { 0.7 } else { 0.9 };
        if across.abs() > narrow {
            return None;
        }
        let grain = distance / self.focal;
        let paint = 40.0 + 150.0 * unit(mix(number, 1, 1));
        let tint = 24.0 * unit(mix(number, 2, 1)) - 12.0;
        let glass = height > 0.95 && across.abs() < 0.6 && height < 1.4;
        let rough = self.texture([across * 2.0, height * 2.0 + car as f32], grain, 21);
        let light = (across.abs() - 0.65).abs() < 0.12 && (height - 0.7).abs() < 0.08;
        let colour = if glass {
            [50.0 + 30.0 * rough, 2.0, 0.0]
        } else {
            [paint + 20.0 * rough, tint, -tint]
        };
        let lamp = match (light, oncoming) {
            (true, true) => [230.0, 0.0, 0.0],
            (true, false) => [60.0, -20.0, 60.0],
            (false, _) => [0.0; 3],
        };
        Some((distance, (colour, [x, height, z], lamp)))
    }

    /// Returns position-dependent noise around 0 in four sizes, each faded by its visibility in
    /// samples of `grain` metres.
    fn texture(&self, [x, y]: [f32; 2], grain: f32, salt: u64) -> f32 {
        let octave = |size: f32, weight: f32| {
            let seen = fade(size, grain);
            if seen == 0.0 { 0.0 } else { weight * seen * self.smooth([x / size, y / size], salt) }
        };
        octave(2.0, 0.4) + octave(0.5, 0.3) + octave(0.12, 0.3) + octave(0.03, 0.25)
    }

    /// Returns noise from -1 to 1, interpolated between grid points.
    fn smooth(&self, [x, y]: [f32; 2], salt: u64) -> f32 {
        let (column, row) = (x.floor(), y.floor());
        let ease = |t: f32| t * t * (3.0 - 2.0 * t);
        let (u, v) = (ease(x - column), ease(y - row));
        let corner = |right: i64, below: i64| {
            let place = ((column as i64 + right) as u64) << 24 ^ (row as i64 + below) as u64;
            unit(mix(self.seed, place, salt)) * 2.0 - 1.0
        };
        let above = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * u;
        let below = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * u;
        above + (below - above) * v
    }

    /// Draws falling drops, each visible in only one picture.
    fn streaks(&self, luma: &mut [u8]) {
        let Size { width, height } = self.size;
        let picture = (self.time * 1000.0) as u64;
        for streak in 0..(width * height / 2500) as u64 {
            let number = mix(mix(self.seed, picture, 30), streak, 31);
            let (x, y) = (number as usize % width, (number >> 20) as usize % height);
            let length = 6 + (number >> 40) as usize % (height / 20).max(1);
            for (row, column) in (y..(y + length).min(height)).zip((x * 4..).map(|x| x / 4)) {
                if column < width {
                    let sample = &mut luma[row * width + column];
                    *sample = sample.saturating_add(14);
                }
            }
        }
    }
}

/// Adds approximately normal noise with these standard deviations of luma and chroma.
fn grain(picture: &mut Picture, [luma, chroma]: [f32; 2], seed: u64) {
    let (y, cb, cr) = picture.planes_mut();
    for (salt, (plane, deviation)) in
        [(y, luma), (cb, chroma), (cr, chroma)].into_iter().enumerate()
    {
        for (at, sample) in plane.iter_mut().enumerate() {
            let bits = mix(seed, at as u64, 40 + salt as u64);
            // Four numbers of 16 bits: their sum has a deviation of 65536 / sqrt(3).
            let sum = (0..4).map(|part| (bits >> (16 * part) & 0xffff) as f32).sum::<f32>();
            let noise = (sum - 131_070.0) / 37_837.0;
            *sample = clamp(f32::from(*sample) + noise * deviation);
        }
    }
}

trait Plus {
    fn plus(self, other: Self) -> Self;
}

impl Plus for Colour {
    fn plus(self, other: Self) -> Self {
        [self[0] + other[0], self[1] + other[1], self[2] + other[2]]
    }
}

/// Mixes three numbers into 64 bits (the finalizer of splitmix64).
fn mix(a: u64, b: u64, salt: u64) -> u64 {
    let mut z =
        a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for _ in 0..2 {
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
    }
    z
}

/// Returns a number from 0 to less than 1, from the upper 24 bits.
fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1 << 24) as f32
}

/// Returns an oscillation between -1 and 1 with `period` seconds, without a sine.
fn wave(time: f32, period: f32) -> f32 {
    let turn = time / period - (time / period).floor();
    let up = 1.0 - (4.0 * turn - 2.0).abs();
    up * (1.5 - 0.5 * up * up)
}

/// Returns 1 well inside an edge, 0 well outside, and a blend for a sample of this size in between.
fn edge(within: f32, grain: f32) -> f32 {
    (0.5 + within / grain.max(1e-4)).clamp(0.0, 1.0)
}

/// Returns the visibility, from 0 to 1, of a pattern that repeats after `size`, with samples of
/// `grain`, both in m.
fn fade(size: f32, grain: f32) -> f32 {
    (size / grain * 0.5 - 1.0).clamp(0.0, 1.0)
}

fn near_whole(value: f32) -> f32 {
    (value - (value + 0.5).floor()).abs()
}

/// Returns the lamps' light at a position across the street: they are on one side.
fn lamp_side(x: f32) -> f32 {
    1.0 / (1.0 + (x - 5.5) * (x - 5.5) / 30.0)
}

fn clamp(value: f32) -> u8 {
    (value + 0.5).clamp(0.0, 255.0) as u8
}

/// Speed of the camera along the street, in m/s.
const SPEED: f32 = 9.0;
/// Camera height in metres above the road.
const EYE: f32 = 1.4;
/// Distance from the middle of the road to the houses, in m.
const WALL: f32 = 8.0;
/// Width of a house, in m.
const HOUSE: f32 = 13.0;
const CARS: u64 = 9;

#[cfg(test)]
mod tests {

    use super::*;
    use crate::quality;

    #[test]
    fn a_seed_gives_the_same_street_everywhere() {
        let hash = |mood, seed| Footage::street(mood, Size::SMALL, 60, 2, seed).unwrap().hash();
        assert_eq!(Mood::ALL.map(|mood| hash(mood, 1)), HASHES);
        assert_ne!(hash(Mood::City, 2), HASHES[0]);
    }

    #[test]
    fn the_street_moves_and_nights_are_dark() {
        let [city, night] = [Mood::City, Mood::Night]
            .map(|mood| Footage::street(mood, Size::SMALL, 60, 8, 1).unwrap().pictures);
        let mean = |picture: &Picture| {
            picture.luma().iter().map(|luma| u64::from(*luma)).sum::<u64>()
                / picture.luma().len() as u64
        };
        assert!(mean(&night[0]) < 60 && mean(&city[0]) > 90);
        let apart = |count: usize| quality::psnr(&city[0], &city[count]).unwrap();
        assert!(apart(7) < 26.0 && apart(1) > apart(7), "{} {}", apart(1), apart(7));
    }

    const HASHES: [u64; 3] = [0x885a_6e89_4f7c_8614, 0x69ab_12f7_7d23_a619, 0x2b7e_a128_156a_9d95];
}
