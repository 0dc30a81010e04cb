//! Tests of the binary as a user runs it: real processes, and faults outside them. One vehicle in
//! the test's own process is here too ([`hostile`]): it takes real time and is retried like them.

mod bad_input;
mod closed_pipe;
mod devices;
mod end;
mod faults;
mod few_files;
mod full_disk;
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
mod sources;
mod topics;
mod tries;
