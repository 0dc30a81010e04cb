//! Sessions in virtual time, over simulated links.
//!
//! A failing scenario prints `SIM_SEED=..`; setting that variable runs it with that seed again.

mod exchange;
mod harness;
mod hostile;
mod links;
mod media;
mod rates;
mod wire;
