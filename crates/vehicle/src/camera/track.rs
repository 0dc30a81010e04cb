//! The windscreen camera of the simulated car.

use std::sync::{Arc, Mutex, PoisonError};

use tautline_testtrack::{Camera, View};
use tautline_video::{Layout, Picture};

use super::Sensor;

/// Sees the test track from where the car is at the moment each strip is read.
pub struct TrackSensor {
    camera: Camera,
    view: Arc<Mutex<View>>,
    pictures_per_second: f64,
}

impl TrackSensor {
    /// A camera of the layout's size that looks from `view`, which the car keeps up to date.
    ///
    /// # Errors
    /// When the layout's size is none for a camera.
    pub fn new(
        layout: &Layout,
        view: Arc<Mutex<View>>,
        pictures_per_second: f64,
    ) -> anyhow::Result<Self> {
        let camera = Camera::new(layout.width(), layout.height())?;
        Ok(Self { camera, view, pictures_per_second })
    }
}

impl Sensor for TrackSensor {
    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn next_picture(&mut self) -> anyhow::Result<bool> {
        Ok(true)
    }

    fn read(&mut self, layout: &Layout, strip: usize, rows: &mut Picture) {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.camera.render_rows(&view, layout.strip_rows(strip), rows);
    }
}
