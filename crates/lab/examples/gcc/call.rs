//! A call: WebRTC's sender and receiver in the world of Tautline's sessions.

use std::time::Duration;

use anyhow::Result;
use tautline_lab::sweeps::gcc::{self, Endpoint};
use tautline_lab::sweeps::links::trail::{Passage, WARM_UP};
use tautline_sim::link::Pair;
use tautline_sim::world::{Clock, End, World};
use tautline_units::Instant;

/// Makes a call over one link and returns the sender's packets, arrived or lost, that left between
/// the end of the warm-up and `length`.
///
/// # Errors
/// For an invalid link configuration.
pub(crate) fn passages(link: &Pair, seed: u64, length: Duration) -> Result<Vec<Passage>> {
    let mut world = World::new(seed);
    world.log_mut().keep(0);
    let receiver = world.add(Endpoint::receiver(), Clock::default());
    let sender = world.add(Endpoint::sender(Instant::ZERO), Clock::default());
    world.link(End::new(sender, 0, gcc::here()), End::new(receiver, 0, gcc::there()), link)?;
    // Leave time for the last packets to arrive, however long the queue.
    world.run_until(Instant::ZERO + length + AFTERWARDS);
    let mut passages = world.node(sender).passages(world.node(receiver));
    let measured = Instant::ZERO + WARM_UP..Instant::ZERO + length;
    passages.retain(|passage| measured.contains(&passage.at));
    Ok(passages)
}

const AFTERWARDS: Duration = Duration::from_secs(20);
