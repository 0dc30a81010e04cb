//! Guard and machine as processes of their own, and what speaks to them: the frames of
//! `tautline_guard::frame` over sockets, every 10 ms.
//!
//! [`keeper`] runs a guard between a vehicle and a machine. [`serve()`] puts any
//! [`Machine`](tautline_guard::Machine) behind the guard's port in one call. [`Proposer`] is a
//! vehicle's end.
#![forbid(unsafe_code)]

mod end;
mod facts;
pub mod keeper;
pub mod latch;
mod proposer;
pub mod serve;

pub use end::Counts;
pub use proposer::Proposer;
pub use serve::serve;
