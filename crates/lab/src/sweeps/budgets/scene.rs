use std::path::Path;

use anyhow::{Context, Result};
use tautline_units::Duration;
use tautline_video::{Layout, Picture};

use crate::pictures::footage::{Footage, Size};

/// The pictures of a drive, played forwards and backwards.
pub struct Scene {
    footage: Footage,
    pub(super) layout: Layout,
}

impl Scene {
    /// Creates a scene of `count` pictures of the simulated camera at `rate` per second, with a
    /// camera's noise. They have the size for quick runs if `is_small`.
    ///
    /// # Errors
    /// If they cannot be rendered.
    pub fn simulated(is_small: bool, rate: u32, count: usize, seed: u64) -> Result<Self> {
        let size = if is_small { Size::SMALL } else { Size::HD };
        Self::of(Footage::simulated(size, rate, count, seed)?.with_noise(seed)?)
    }

    /// Creates a scene of the first `count` pictures of a clip, scaled to 1280x720, at `rate` per
    /// second.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn clip(path: &Path, rate: u32, count: usize) -> Result<Self> {
        Self::of(Footage::clip(path, Size::HD, rate, count)?)
    }

    /// Returns the picture rate per second.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.footage.rate)
    }

    fn of(footage: Footage) -> Result<Self> {
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::of(first.width(), first.height())?;
        Ok(Self { footage, layout })
    }

    pub(super) fn picture(&self, number: u32) -> &Picture {
        let last = self.footage.pictures.len() - 1;
        let turn = number as usize % (2 * last).max(1);
        &self.footage.pictures[turn.min(2 * last - turn)]
    }

    pub(super) fn period(&self) -> Duration {
        Duration::from_secs(1) / self.footage.rate
    }
}
