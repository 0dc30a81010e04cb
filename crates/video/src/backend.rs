use std::fmt;

use crate::{Encoder, Error, QuantizerEncoder};

/// Choice of a strip's encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Backend {
    /// Tautline's own encoder with a method of loss recovery.
    Avc(crate::avc::LossRecovery),
    /// Tautline's own encoder with joinable strips: see
    /// [`Config::joinable`](crate::avc::Config::joinable).
    JoinableAvc(crate::avc::LossRecovery),
    /// Cisco's openh264, in a build with the feature `openh264`.
    Openh264,
    /// An encoder of another crate.
    External(External),
}

/// A source of encoders from another crate, which its `Display` names.
pub trait Factory: fmt::Debug + fmt::Display + Sync {
    /// Creates an encoder for strips of `width` by `height` pixels at `pictures_per_second`.
    ///
    /// # Errors
    /// Fails if there is no encoder for this size or rate.
    fn open(
        &self,
        width: usize,
        height: usize,
        pictures_per_second: u32,
    ) -> Result<Box<dyn QuantizerEncoder>, Error>;
}

/// An encoder of another crate. Two are equal if their names are.
#[derive(Clone, Copy, Debug)]
pub struct External(pub &'static dyn Factory);

impl PartialEq for External {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for External {}

impl Backend {
    /// Returns one backend for each encoder of this crate in this build, with default settings.
    pub fn all() -> Vec<Self> {
        vec![
            #[cfg(feature = "openh264")]
            Self::Openh264,
            Self::Avc(crate::avc::LossRecovery::Idr),
        ]
    }

    /// Returns whether this build contains the backend.
    pub fn is_built(self) -> bool {
        self != Self::Openh264 || cfg!(feature = "openh264")
    }

    /// Creates an encoder for strips of `width` by `height` pixels at `pictures_per_second`.
    ///
    /// # Errors
    /// As the backend's own constructor: [`Error::Dimensions`], [`Error::Invalid`] for the rate, or
    /// [`Error::Encoder`]; [`Error::NotBuilt`] if this build lacks it.
    pub fn open(
        self,
        width: usize,
        height: usize,
        pictures_per_second: u32,
    ) -> Result<Box<dyn Encoder>, Error> {
        Ok(self.open_at(width, height, pictures_per_second)?)
    }

    /// Creates an encoder as [`open`](Self::open) does, whose quantizers the caller can set.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(
        self,
        width: usize,
        height: usize,
        pictures_per_second: u32,
    ) -> Result<Box<dyn QuantizerEncoder>, Error> {
        match self {
            Self::Avc(loss_recovery) | Self::JoinableAvc(loss_recovery) => {
                let config = crate::avc::Config {
                    width,
                    height,
                    cropped: [0, 0],
                    pictures_per_second,
                    loss_recovery,
                    joinable: matches!(self, Self::JoinableAvc(_)),
                };
                Ok(Box::new(crate::avc::StripEncoder::new(config)?))
            }
            #[cfg(feature = "openh264")]
            Self::Openh264 => Ok(Box::new(crate::openh264::StripEncoder::new(
                width,
                height,
                pictures_per_second,
            )?)),
            #[cfg(not(feature = "openh264"))]
            Self::Openh264 => Err(Error::NotBuilt { feature: "openh264" }),
            Self::External(External(factory)) => factory.open(width, height, pictures_per_second),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Avc(loss_recovery) => write!(f, "own{loss_recovery}"),
            Self::JoinableAvc(loss_recovery) => write!(f, "own{loss_recovery} joinable"),
            Self::Openh264 => f.write_str("openh264"),
            Self::External(External(factory)) => factory.fmt(f),
        }
    }
}
