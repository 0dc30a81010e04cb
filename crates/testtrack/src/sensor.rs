use tautline_video::{Error, Layout, Picture, Sensor};

use crate::camera::Camera;
use crate::world::Viewpoint;

/// The camera behind the windscreen as a sensor: each strip shows the test track from where the car
/// is when the strip is read, as a rolling shutter does.
pub struct Windscreen {
    camera: Camera,
    layout: Layout,
    view: Box<dyn FnMut() -> Viewpoint + Send>,
    pictures_per_second: f64,
}

impl Windscreen {
    /// Pixels in a row of its pictures.
    pub const WIDTH: usize = 1280;
    /// Rows of its pictures.
    pub const HEIGHT: usize = 720;

    /// Returns a camera that looks from wherever `view` says when a strip is read.
    ///
    /// # Errors
    /// None at this size; those of [`Layout::of`] and [`Camera::new`] otherwise.
    pub fn new(
        view: impl FnMut() -> Viewpoint + Send + 'static,
        pictures_per_second: f64,
    ) -> Result<Self, Error> {
        let layout = Layout::of(Self::WIDTH, Self::HEIGHT)?;
        let camera = Camera::new(Self::WIDTH, Self::HEIGHT)?;
        Ok(Self { camera, layout, view: Box::new(view), pictures_per_second })
    }
}

impl Sensor for Windscreen {
    fn layout(&self) -> Layout {
        self.layout
    }

    fn pictures_per_second(&self) -> f64 {
        self.pictures_per_second
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        self.camera.render_rows(&(self.view)(), self.layout.strip_rows(strip), rows);
    }
}
