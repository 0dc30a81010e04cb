//! Rate control of a link.
//!
//! A controller reads what was sent and what arrived, report by report, and grants a rate. It
//! changes nothing else; the session paces by the grant.
//!
//! [`DelayRate`] controls every link by default. Another crate supplies a controller of its own by
//! implementing [`Controller`] and [`Factory`], and setting
//! [`Config::controllers`](crate::Config::controllers). This one grants the initial rate, whatever
//! happens:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tautline_transport::Config;
//! use tautline_transport::rate::{self, Cause, Controller, Evidence, Factory, Grant};
//! use tautline_units::{Bitrate, Instant};
//!
//! #[derive(Debug)]
//! struct Constant(Bitrate);
//!
//! impl Controller for Constant {
//!     fn initial(&self) -> Grant {
//!         let (rate, sustained) = (self.0, self.0);
//!         Grant { rate, sustained, window: None, probing: false, cause: Cause::Fixed }
//!     }
//!
//!     fn on_report(&mut self, _evidence: &Evidence) -> Grant {
//!         self.initial()
//!     }
//!
//!     fn on_silent(&mut self, _now: Instant) -> Grant {
//!         self.initial()
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct ConstantFactory;
//!
//! impl Factory for ConstantFactory {
//!     fn controller(&self, config: &rate::Config) -> Box<dyn Controller> {
//!         Box::new(Constant(config.initial))
//!     }
//! }
//!
//! let config = Config { controllers: Arc::new(ConstantFactory), ..Config::default() };
//! assert_eq!(config.controllers.controller(&config.rate).initial().rate, config.rate.initial);
//! ```

mod competing;
mod config;
mod controller;
mod delay_rate;
mod grant;
mod losses;
mod marks;
mod meter;
mod sample;

pub use config::Config;
pub use controller::{Controller, Evidence, Factory};
pub use delay_rate::{DelayRate, DelayRateFactory};
pub use grant::{Cause, Grant};
pub use marks::Marked;
pub use sample::Sample;
