//! The binary as whoever types its commands has it: real processes, and what fails beside them. One vehicle within the
//! test's own process stands here too ([`hostile`]): it takes real time as they do, and is tried as they are.

mod bad_input;
mod closed_pipe;
mod devices;
mod end;
mod faults;
mod hostile;
#[cfg(feature = "lab")]
mod lab;
mod late;
mod latency;
#[cfg(feature = "quorum")]
mod leader;
mod nat;
mod pictures;
#[cfg(feature = "lab")]
mod recording;
mod relay;
mod restart;
mod setup;
mod topics;
mod tries;
