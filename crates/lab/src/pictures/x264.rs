//! The x264 backend: VideoLAN's library, which must be installed.
//!
//! x264 is under the GPL, and so is any binary linked with it: the feature `x264` is off by
//! default. It serves for measurements.

mod native;

use std::ffi::CStr;
use std::fmt;

use tautline_units::ByteCount;
use tautline_video::budgeted::Budgeted;
use tautline_video::{
    Backend, Encoded, Encoder, Error, External, Factory, Picture, QuantizerEncoder, Quantizers,
    Refresh,
};

use self::native::Native;

/// x264 for one strip: one slice per picture, one reference, one thread, no delay.
///
/// Sizes follow the budget by the same method as with openh264, for comparison. Quantizers below 11
/// are raised to 11. Refreshed macroblocks use the predicted quantizer.
pub struct StripEncoder {
    coder: Budgeted<Native>,
}

/// Parameters of x264.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Trade-off of time against quality.
    pub preset: Preset,
    /// Pictures in which intra refresh, a contiguous band of intra columns, crosses the strip; 0
    /// for none. x264 does not prevent refreshed macroblocks from referring to others, so recovery
    /// takes longer.
    pub refresh_period: u8,
    /// True to use CABAC instead of CAVLC: main profile, which the
    /// [`Concealer`](tautline_video::Concealer) does not support.
    pub cabac: bool,
}

/// Preset, by x264's own names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Preset {
    Ultrafast,
    Superfast,
    Veryfast,
}

impl Settings {
    /// Superfast, without refresh, CAVLC: the baseline of comparisons.
    pub const BASELINE: Self = Self { preset: Preset::Superfast, refresh_period: 0, cabac: false };

    /// Returns the backend with these settings.
    pub fn backend(&'static self) -> Backend {
        Backend::External(External(self))
    }
}

impl Preset {
    fn name(self) -> &'static CStr {
        match self {
            Self::Ultrafast => c"ultrafast",
            Self::Superfast => c"superfast",
            Self::Veryfast => c"veryfast",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name().to_string_lossy())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::BASELINE
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x264 {}", self.preset)?;
        if self.cabac {
            f.write_str(" CABAC")?;
        }
        match self.refresh_period {
            0 => Ok(()),
            period => write!(f, " intra refresh {period}"),
        }
    }
}

impl Factory for Settings {
    fn open(
        &self,
        width: usize,
        height: usize,
        pictures_per_second: u32,
    ) -> Result<Box<dyn QuantizerEncoder>, Error> {
        Ok(Box::new(StripEncoder::new(width, height, pictures_per_second, *self)?))
    }
}

impl StripEncoder {
    /// Creates an encoder for strips of `width` by `height` pixels at `pictures_per_second`.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 from 16 to 8192;
    /// [`Error::Invalid`] unless the rate is 1 to 240; [`Error::Encoder`] if the library refuses.
    pub fn new(
        width: usize,
        height: usize,
        pictures_per_second: u32,
        settings: Settings,
    ) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(16) && (16..=8192).contains(&side);
        if !valid(width) || !valid(height) {
            return Err(Error::Dimensions { width, height });
        }
        if pictures_per_second == 0 || pictures_per_second > 240 {
            let value = u64::from(pictures_per_second);
            return Err(Error::Invalid { what: "picture rate", value });
        }
        let Settings { preset, refresh_period, cabac } = settings;
        let rate = pictures_per_second;
        let native = Native::new(width, height, rate, preset.name(), refresh_period, cabac)?;
        Ok(Self { coder: Budgeted::new(native, width, height) })
    }
}

impl Encoder for StripEncoder {
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.coder.encode(rows, budget, refresh)
    }
}

impl QuantizerEncoder for StripEncoder {
    fn encode_at(
        &mut self,
        rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.coder.encode_at(rows, quantizers, refresh)
    }
}
