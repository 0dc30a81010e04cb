//! Sessions in virtual time, over simulated links.
//!
//! A failing scenario prints `SIM_SEED=..`; setting that variable runs it with that seed again.
#![allow(clippy::unwrap_used, reason = "a scenario that cannot be set up has failed")]

mod asymmetric;
mod channels;
mod cuts;
mod exchange;
mod harness;
mod hostile;
mod links;
mod marks;
mod media;
mod negotiation;
mod priorities;
mod rates;
mod raw_peer;
mod reach;
mod stalls;
mod streaming;
mod streams;
mod survival;
mod wire;
