use std::time::Duration;

use crate::{Error, Layout, Picture};

/// A source of pictures: the port that a camera, a clip or a simulated windscreen implements.
///
/// One thread owns the sensor. For each picture it calls [`next_picture`](Self::next_picture),
/// which may wait for it, and then [`read`](Self::read) once for each strip that an encoder has
/// time for, from the top. The source determines the size and the rate, which stay constant.
pub trait Sensor: Send {
    /// Returns the origin of the pictures: a person who drives by a clip or by drawn pictures must
    /// be notified.
    fn origin(&self) -> Origin {
        Origin::Camera
    }

    /// Returns the layout of the pictures: their size and strips.
    fn layout(&self) -> Layout;

    /// Returns the sensor's own mean rate in pictures per second.
    fn pictures_per_second(&self) -> f64;

    /// Returns the time from the current picture to the next one; it changes if the source's rate
    /// varies.
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.pictures_per_second())
    }

    /// Returns the time since the start of the current picture's capture, which includes exposure
    /// and transfer; zero if unknown. Used only if the source does not deliver rows as they are
    /// read.
    fn age(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the source's own number of the current picture, increased by one with each capture,
    /// wrapping; `None` if it does not count.
    ///
    /// A gap is a picture that the source lost. An equal number means that the same capture was
    /// delivered again.
    fn sequence(&self) -> Option<u32> {
        None
    }

    /// Returns whether rows can be read while later ones are still exposed, as from a rolling
    /// shutter; otherwise a picture is complete when it begins.
    fn gives_rows(&self) -> bool {
        true
    }

    /// Returns the counts of pictures lost and corrected since the source was opened.
    fn losses(&self) -> Losses {
        Losses::default()
    }

    /// Returns the present fault of the pictures, described for the operator; `None` without one.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// Begins the next picture, to be read strip by strip; may wait for it. Returns false when
    /// there are no more.
    ///
    /// # Errors
    /// [`Error::Sensor`] if the source fails; [`Error::PictureLost`] if one picture fails and the
    /// source continues.
    fn next_picture(&mut self) -> Result<bool, Error>;

    /// Reads the pixel rows of `strip` into `rows`, which has exactly that size.
    fn read(&mut self, strip: usize, rows: &mut Picture);
}

/// Origin of a sensor's pictures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Origin {
    /// A camera: its noise makes every capture different.
    #[default]
    Camera,
    /// A recording, which does not show the present surroundings.
    Recorded,
    /// A drawing, identical while nothing in it moves.
    Drawn,
}

/// Counts of pictures lost or corrected since the source was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Losses {
    /// Pictures that arrived truncated, or that their decoder refused.
    pub damaged: u64,
    /// Pictures that never arrived, as gaps in the source's numbers show.
    pub missed: u64,
    /// Pictures replaced by a newer one while they waited.
    pub superseded: u64,
    /// Pictures with an impossible capture time: refused, or dated by their arrival.
    pub misdated: u64,
}
