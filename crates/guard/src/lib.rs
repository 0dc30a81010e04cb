//! A machine behind a trait, and the failsafe before it.
//!
//! [`Failsafe`] turns what an operator demands into the [`Controls`] that a [`Machine`] gets, by
//! the machine's own clock. Needs neither the standard library nor an allocator, so that it runs on
//! a machine's own controller too. Knows no links, no pictures and no messages.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod controls;
mod error;
pub mod failsafe;
mod machine;

pub use controls::{Controls, Gear};
pub use error::ConfigError;
pub use failsafe::Failsafe;
pub use machine::{Extra, Fault, Faults, Machine, MachineState, Position};
