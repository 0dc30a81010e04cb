use tautline_guard::Extra;
use tautline_video::{Error, Layout, Origin, Picture, Sensor};

use crate::camera::{self, Camera};
use crate::car;
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
    /// How it looks at the ground before the car, and the car's own measures: by these a console draws
    /// distances on the road. `console/src/road.ts` reads them by name.
    pub const GEOMETRY: [Extra; 8] = [
        Extra { name: "camera height", value: camera::HEIGHT as f64, unit: "m" },
        Extra { name: "camera before rear axle", value: camera::MOUNT, unit: "m" },
        Extra { name: "camera focal length", value: camera::FOCAL as f64, unit: "widths" },
        Extra { name: "camera centre", value: camera::HORIZON as f64, unit: "heights" },
        Extra { name: "camera pitch", value: 0.0, unit: "°" },
        Extra { name: "front before rear axle", value: car::FRONT, unit: "m" },
        Extra { name: "half width", value: car::HALF_WIDTH, unit: "m" },
        Extra { name: "wheelbase", value: car::WHEELBASE, unit: "m" },
    ];

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
    fn origin(&self) -> Origin {
        Origin::Drawn
    }

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
