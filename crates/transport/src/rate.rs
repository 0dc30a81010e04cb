//! Rate control of a link: controllers, one file each.
//!
//! A controller reads what was sent and what arrived, report by report, and grants a rate. It
//! changes nothing else; the session paces by the grant.

mod competing;
mod controller;
mod delay_rate;
mod fixed;
mod grant;
mod losses;
mod marks;
mod meter;
mod sample;
mod two_state;

pub use controller::{Controller, Evidence};
pub use delay_rate::DelayRate;
pub use fixed::Fixed;
pub use grant::{Cause, Grant};
pub use marks::Marked;
pub use sample::Sample;
use serde::Deserialize;
use tautline_units::Bitrate;
pub use two_state::TwoState;

use crate::error::ConfigError;
use crate::setting::{check, kbps};

/// Choice of a controller, and its parameters.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Controller; default delay-rate.
    pub controller: Kind,
    /// Rate of `fixed`, and initial rate of the others before the first report; default 8000 kbit/s
    /// (1 MB/s, [LLMLNCL]).
    #[serde(rename = "initial_kbps", deserialize_with = "kbps")]
    pub initial: Bitrate,
    /// Minimum rate that `two-state` grants; default 800 kbit/s (100 kB/s, [LLMLNCL]).
    #[serde(rename = "floor_kbps", deserialize_with = "kbps")]
    pub floor: Bitrate,
    /// Maximum granted rate; default 80000 kbit/s (10 MB/s, [LLMLNCL]).
    #[serde(rename = "ceiling_kbps", deserialize_with = "kbps")]
    pub ceiling: Bitrate,
}

/// Name of a controller in settings, tests and the lab.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// [`TwoState`].
    TwoState,
    /// [`DelayRate`].
    DelayRate,
    /// [`Fixed`].
    Fixed,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            controller: Kind::DelayRate,
            initial: Bitrate::from_mbps(8),
            floor: Bitrate::from_kbps(800),
            ceiling: Bitrate::from_mbps(80),
        }
    }
}

impl Config {
    /// Creates a controller for one link.
    pub fn controller(&self) -> Box<dyn Controller> {
        match self.controller {
            Kind::TwoState => Box::new(TwoState::new(self.initial, self.floor, self.ceiling)),
            Kind::DelayRate => Box::new(DelayRate::new(self.initial, self.ceiling)),
            Kind::Fixed => Box::new(Fixed::new(self.initial)),
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] with the name of the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("rate.floor_kbps", self.floor >= Bitrate::from_kbps(8), || {
            format!("{} is below 8 kbit/s, which pings and reports need", self.floor)
        })?;
        check("rate.initial_kbps", self.initial >= self.floor, || {
            format!("{} is below the floor of {}", self.initial, self.floor)
        })?;
        check("rate.ceiling_kbps", self.ceiling >= self.initial, || {
            format!("{} is below the initial rate of {}", self.ceiling, self.initial)
        })
    }
}
