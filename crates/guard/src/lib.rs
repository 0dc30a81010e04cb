//! What a machine may do, decided by its own computer's clock.
//!
//! A vehicle proposes; only the [`Guard`] moves the [`Machine`]. It knows the age of the newest
//! picture that a person saw, bounds the speed by it, and brings the machine to a standstill when a
//! rule asks for it. [`frame`] has what vehicle, guard and machine tell each other; docs/guard.md
//! has modes, causes, bounds and bytes.
//!
//! Needs neither the standard library nor an allocator, so that it runs on a machine's own
//! controller too. Knows no links, no pictures and no messages.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod act;
mod age;
mod brake;
pub mod config;
mod controls;
pub mod envelope;
mod error;
pub mod frame;
mod guard;
mod hill;
pub mod identity;
mod machine;
mod manoeuvre;
mod mode;
mod pauses;
mod plausible;
mod set;
mod told;

pub use age::LateFrames;
pub use config::Config;
pub use controls::{Controls, Gear, Signal, Signals};
pub use error::ConfigError;
pub use guard::{Guard, Input, Latch, Output};
pub use machine::{
    Extra, Fault, Faults, Machine, MachineState, Notice, Notices, Place, Position, Told,
};
pub use mode::{Cause, Mode, Transition, Why};
pub use pauses::Pauses;
pub use set::{Member, Set};

/// How often the guard steps, and how often vehicle, guard and machine speak.
pub const PERIOD: core::time::Duration = core::time::Duration::from_millis(10);
