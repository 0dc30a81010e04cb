use tautline_guard::Extra;
use tautline_video::{Error, Layout, Origin, Picture, Sensor};

use crate::camera::{self, Camera};
use crate::kind::Kind;
use crate::world::Viewpoint;

/// The windscreen camera as a sensor. Each strip shows the test track from the machine's position
/// when the strip is read, as with a rolling shutter.
pub struct Windscreen {
    camera: Camera,
    layout: Layout,
    view: Box<dyn FnMut() -> Viewpoint + Send>,
    pictures_per_second: f64,
}

impl Windscreen {
    /// Pixels per row of the camera's pictures.
    pub const WIDTH: usize = 1280;
    /// Rows of the camera's pictures.
    pub const HEIGHT: usize = 720;
    /// Returns position and view of the camera on a machine of this kind, and the machine's
    /// dimensions, by which a console draws distances on the road. `console/src/road.ts` reads them
    /// by name.
    pub fn geometry(kind: Kind) -> [Extra; 8] {
        let body = kind.body();
        [
            Extra { name: "camera height", value: body.camera_height, unit: "m" },
            Extra { name: "camera before rear axle", value: body.camera_mount, unit: "m" },
            Extra { name: "camera focal length", value: camera::FOCAL.into(), unit: "widths" },
            Extra { name: "camera centre", value: camera::HORIZON.into(), unit: "heights" },
            Extra { name: "camera pitch", value: 0.0, unit: "°" },
            Extra { name: "front before rear axle", value: body.front, unit: "m" },
            Extra { name: "half width", value: body.half_width, unit: "m" },
            Extra { name: "wheelbase", value: body.wheelbase, unit: "m" },
        ]
    }

    /// Creates a camera with the viewpoint that `view` returns when a strip is read.
    ///
    /// # Errors
    /// Never fails at this size; otherwise as [`Layout::of`] and [`Camera::new`].
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
