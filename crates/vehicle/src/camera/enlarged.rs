//! Pictures coded larger than the sensor delivers them.

use std::time::Duration;

use tautline_video::{Enlargement, Error, Layout, Losses, Origin, Picture, Sensor};

/// Sensor whose pictures are too small to be coded, enlarged to make room for the stamp and six
/// strips.
pub(super) struct Enlarged {
    sensor: Box<dyn Sensor>,
    enlargement: Enlargement,
    /// Strips of the sensor's pictures; the first `read_count` are of the current one.
    strips: Vec<Picture>,
    read_count: usize,
}

impl Enlarged {
    /// Creates an enlarged sensor from `sensor`.
    ///
    /// # Errors
    /// Fails if the sensor's strips are no valid pictures.
    pub(super) fn new(sensor: Box<dyn Sensor>, enlargement: Enlargement) -> Result<Self, Error> {
        let whole = sensor.layout();
        let strip = |strip| Picture::new(whole.width(), whole.strip_rows(strip).len());
        let strips = (0..whole.strip_count()).map(strip).collect::<Result<_, _>>()?;
        Ok(Self { sensor, enlargement, strips, read_count: 0 })
    }
}

impl Sensor for Enlarged {
    fn origin(&self) -> Origin {
        self.sensor.origin()
    }

    fn layout(&self) -> Layout {
        *self.enlargement.layout()
    }

    fn pictures_per_second(&self) -> f64 {
        self.sensor.pictures_per_second()
    }

    fn interval(&self) -> Duration {
        self.sensor.interval()
    }

    fn age(&self) -> Duration {
        self.sensor.age()
    }

    fn sequence(&self) -> Option<u32> {
        self.sensor.sequence()
    }

    fn gives_rows(&self) -> bool {
        self.sensor.gives_rows()
    }

    fn losses(&self) -> Losses {
        self.sensor.losses()
    }

    fn trouble(&self) -> Option<&str> {
        self.sensor.trouble()
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        self.read_count = 0;
        self.sensor.next_picture()
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        for needed in self.read_count..self.enlargement.strips(strip).end {
            self.sensor.read(needed, &mut self.strips[needed]);
            self.read_count = needed + 1;
        }
        self.enlargement.draw(&self.strips, strip, rows);
    }
}
