use std::io;
use std::time::Duration;

use super::mode::Mode;

/// A camera as the kernel presents it: the port that [`Kernel`](super::Kernel) and recorded devices
/// in tests implement.
pub trait Device: Send {
    /// Returns the device's own name.
    fn name(&self) -> &str;

    /// Returns all capture modes, including those with an [obstacle](Mode::obstacle).
    ///
    /// # Errors
    /// Returns any error of the system.
    fn modes(&mut self) -> io::Result<Vec<Mode>>;

    /// Sets a mode, and returns the one that the driver chose.
    ///
    /// # Errors
    /// Returns any error of the system.
    fn set(&mut self, mode: &Mode) -> io::Result<Set>;

    /// Starts capturing.
    ///
    /// # Errors
    /// Returns any error of the system.
    fn start(&mut self) -> io::Result<()>;

    /// Waits for a picture and copies the newest into `bytes`; older waiting ones are dropped.
    ///
    /// # Errors
    /// Returns any error of the system; [`io::ErrorKind::TimedOut`] if none arrives within
    /// `timeout`, [`io::ErrorKind::WouldBlock`] if the device signalled a picture but delivered
    /// none.
    fn take(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> io::Result<Taken>;
}

/// Metadata of a captured picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Driver's timestamp on the machine's monotonic clock; `None` if it is of another clock.
    pub at: Option<Duration>,
    /// True if the timestamp is the start of exposure; otherwise it is the arrival of the last row.
    pub is_of_start: bool,
    /// True if the driver reports missing data.
    pub is_damaged: bool,
    /// Number of older waiting pictures that were dropped.
    pub left_out: u32,
    /// Driver's number of the picture, increased by one with each capture, wrapping; some drivers
    /// leave it at 0.
    pub sequence: u32,
}

/// A mode as set by the driver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Set {
    /// The mode, which may differ from the requested one.
    pub mode: Mode,
    /// Bytes from one row to the next; 0 if the driver does not report it.
    pub stride: usize,
    /// True if samples are full-range (0 to 255) rather than 16 to 235.
    pub is_full_range: bool,
}
