//! The binary as whoever types its commands has it: real processes, and what fails beside them.

mod bad_input;
mod faults;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "quorum")]
mod leader;
mod nat;
#[cfg(feature = "lab")]
mod recording;
mod relay;
mod restart;
mod setup;
mod tries;
