use std::time::Duration;

use crate::{Error, Layout, Picture};

/// A source of pictures: the port that a camera implements, a clip or a simulated windscreen.
///
/// One thread owns the sensor. For each picture it calls [`next_picture`](Self::next_picture), which
/// may wait for it, and then [`read`](Self::read) once for each strip that an encoder has time for,
/// from the top. The size and the rate come from the source, and stay as they are.
pub trait Sensor: Send {
    /// Returns where the pictures come from: a person who drives by a clip or by drawn pictures is told so.
    fn origin(&self) -> Origin {
        Origin::Camera
    }

    /// Returns the size of the pictures, and how they are cut into strips.
    fn layout(&self) -> Layout;

    /// Returns the pictures a second of the sensor itself, in the mean.
    fn pictures_per_second(&self) -> f64;

    /// Returns the time from the picture begun last to the next one: another each time where the
    /// source's rate varies.
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.pictures_per_second())
    }

    /// Returns how long ago the capture of the picture begun last began, where the source tells: exposure and
    /// transfer are part of it. Of use where no rows are given as they are read.
    fn age(&self) -> Duration {
        Duration::ZERO
    }

    /// Returns the source's own number of the picture begun last, one more with each capture, wrapping; `None` where it
    /// does not count.
    ///
    /// A gap is a picture that the source lost. An equal number means that the same capture came again.
    fn sequence(&self) -> Option<u32> {
        None
    }

    /// Returns whether rows can be read while later ones are still exposed, as from a rolling
    /// shutter; otherwise all of a picture is there when it begins.
    fn gives_rows(&self) -> bool {
        true
    }

    /// Returns what the source has lost and corrected since it was opened.
    fn losses(&self) -> Losses {
        Losses::default()
    }

    /// Returns what is wrong with the pictures at present, in words for those who drive by them; `None` if nothing is.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// Begins a picture, to be read strip by strip; false when there are no more.
    ///
    /// # Errors
    /// [`Error::Sensor`] when the source fails; [`Error::PictureLost`] when one picture did and the source goes on.
    fn next_picture(&mut self) -> Result<bool, Error>;

    /// Reads the pixel rows of `strip` into `rows`, which has exactly that size.
    fn read(&mut self, strip: usize, rows: &mut Picture);
}

/// Where a sensor's pictures come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Origin {
    /// A camera: its noise makes no two captures alike.
    #[default]
    Camera,
    /// A recording, which shows nothing of the present place.
    Recorded,
    /// A drawing, which is the same again while nothing of it moves.
    Drawn,
}

/// Pictures that a source has lost or corrected since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Losses {
    /// Those that came cut, or that their decoder refused.
    pub damaged: u64,
    /// Those that the source's own numbers tell of, and that never came.
    pub missed: u64,
    /// Those that waited until a newer one was there.
    pub superseded: u64,
    /// Those that came, and whose time of capture was not possible: our own was taken.
    pub misdated: u64,
}
