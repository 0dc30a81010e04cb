use std::fmt;

use super::code::Code;
use super::fraction::Fraction;
use crate::{Enlargement, Layout};

/// A capture mode of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mode {
    /// Pixel format.
    pub code: Code,
    /// Pixels in a row, and rows.
    pub size: [u32; 2],
    /// Seconds between two pictures; `None` if unknown.
    pub interval: Option<Fraction>,
}

impl Mode {
    /// Returns the rate in pictures per second; `None` if unknown.
    pub fn pictures_per_second(&self) -> Option<f64> {
        self.interval.map(|interval| f64::from(interval.under()) / f64::from(interval.over()))
    }

    /// Returns the reason why pictures of this mode cannot be used; `None` if they can.
    ///
    /// Applies to listed modes, to the chosen mode and to the mode that a driver set.
    pub fn obstacle(&self) -> Option<&'static str> {
        let [width, height] = self.size;
        if let Some(words) = self.code.obstacle() {
            return Some(words);
        }
        if width % 2 != 0 || height % 2 != 0 {
            return Some("its sides are not both even");
        }
        let layout = Layout::of_sensor(width as usize, height as usize);
        match layout.and_then(|layout| Enlargement::of(&layout)) {
            Ok(_) => None,
            Err(_) if width.max(height) > SIDE_MAX => Some("a side is longer than 8192"),
            Err(_) => Some("its shorter side is too short for its longer one"),
        }
    }
}

/// Returns one line that lists a device's modes, at most 32, with the reason after each unusable
/// one.
pub fn list(modes: &[Mode]) -> String {
    let mode = |mode: &Mode| match mode.obstacle() {
        Some(words) => format!("{mode} ({words})"),
        None => mode.to_string(),
    };
    let (told, rest) = modes.split_at(modes.len().min(LISTED_MAX));
    let mut told: Vec<String> = told.iter().map(mode).collect();
    if !rest.is_empty() {
        told.push(format!("and {} more", rest.len()));
    }
    told.join(", ")
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [width, height] = self.size;
        write!(f, "{} {width}x{height}", self.code)?;
        match self.pictures_per_second() {
            Some(rate) => write!(f, "@{}", (rate * 100.0).round() / 100.0),
            None => Ok(()),
        }
    }
}

/// Maximum side of a coded picture in pixels; a mode with a longer one is refused.
pub(super) const SIDE_MAX: u32 = 8192;
/// Maximum number of modes listed for a person, to keep the line readable; the rest is only
/// counted.
const LISTED_MAX: usize = 32;
