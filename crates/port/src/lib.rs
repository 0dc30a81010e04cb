//! Guard and machine as separate processes: the frames of `tautline_guard::frame` over sockets,
//! every 10 ms.
//!
//! [`keeper`] runs a guard between a vehicle and a machine. [`serve()`] connects any
//! [`Machine`](tautline_guard::Machine) to a guard in one call, also one whose calls may hang
//! ([`detached`]). [`Proposer`] is the vehicle's end.
#![forbid(unsafe_code)]

mod describer;
pub mod detached;
mod end;
mod facts;
pub mod keeper;
pub mod latch;
mod proposer;
pub mod safe;
pub mod serve;
pub mod watchdog;

pub use end::Counts;
pub use proposer::{Proposer, Received};
pub use serve::serve;
