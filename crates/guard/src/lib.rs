//! Safety controller of a machine: decides by its own computer's clock what the machine may do.
//!
//! A vehicle proposes; only the [`Guard`] moves the [`Machine`]. The guard measures the age of the
//! newest picture that a person saw, and bounds the speed by it. It brings the machine to a
//! standstill when a rule requires it. [`frame`] defines the messages between vehicle, guard and
//! machine. docs/guard.md lists modes, causes, bounds and bytes.
//!
//! The crate needs neither the standard library nor an allocator, so it also runs on a machine's
//! own controller. It has no knowledge of links, pictures or messages.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod act;
mod actions;
mod age;
mod axes;
mod brake;
pub mod config;
mod controls;
mod declared;
pub mod description;
pub mod envelope;
mod error;
pub mod frame;
mod guard;
mod hill;
pub mod identity;
mod machine;
mod manoeuvre;
mod mode;
mod motion;
mod pauses;
mod period;
mod plausible;
mod readable;
mod reported;
mod request;
mod set;
mod slew;
mod standstill;
mod stopping;
mod twist;
mod twist_envelope;
mod twist_stop;
mod twist_watch;

pub use actions::Actions;
pub use age::LateFrames;
pub use axes::Axes;
pub use config::Config;
pub use controls::{Controls, Gear};
pub use declared::left_alone;
pub use error::ConfigError;
pub use guard::{Guard, Input, Latch, Output};
pub use machine::{
    Extra, Fault, Faults, Machine, MachineState, Notice, Notices, Place, Position, Reported,
};
pub use mode::{Cause, Mode, Transition, Why};
pub use motion::Motion;
pub use pauses::Pauses;
pub use period::PERIOD;
pub use readable::Readable;
pub use request::{Answered, Request};
pub use set::{Member, Set};
pub use twist::Twist;
