//! A call: WebRTC's sender and receiver in the world in which Tautline's sessions are measured.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tautline_lab::sweeps::links::trail::{Passage, WARM_UP};
use tautline_sim::link::Pair;
use tautline_sim::world::{Clock, End, Node, Route, World};
use tautline_units::Instant;

use crate::feedback::{Collector, Feedback};
use crate::sender::Sender;

/// Makes a call over one link and gives every packet that left after the warm-up.
///
/// # Errors
/// For a link that cannot be configured so.
pub(crate) fn passages(link: &Pair, seed: u64, length: Duration) -> Result<Vec<Passage>> {
    let mut world = World::new(seed);
    world.log_mut().keep(0);
    let receiver = Receiver { collector: Collector::default(), came: Vec::new(), report_at: None };
    let receiver = world.add(Endpoint::Receiver(receiver), Clock::default());
    let sender = world.add(Endpoint::Sender(Box::new(Sender::new())), Clock::default());
    world.link(End::new(sender, 0, here()), End::new(receiver, 0, there()), link)?;
    // The last packets have their time as well, however long the queue.
    world.run_until(Instant::ZERO + length + AFTERWARDS);
    let Endpoint::Sender(sender) = world.node(sender) else { unreachable!("it was put there") };
    let Endpoint::Receiver(receiver) = world.node(receiver) else {
        unreachable!("it was put there")
    };
    let mut passages = sender.passages.clone();
    for (number, at) in &receiver.came {
        passages[*number as usize].arrived = Some(*at);
    }
    let measured = Instant::ZERO + WARM_UP..Instant::ZERO + length;
    passages.retain(|passage| measured.contains(&passage.at));
    Ok(passages)
}

enum Endpoint {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

struct Receiver {
    collector: Collector,
    came: Vec<(u32, Instant)>,
    /// When the next report is due, if something came since the last.
    report_at: Option<Instant>,
}

impl Node for Endpoint {
    fn handle_datagram(&mut self, _route: Route, datagram: &[u8], now: Instant) {
        match self {
            Self::Sender(sender) => {
                if let Some(feedback) = Feedback::parse(datagram) {
                    sender.handle_feedback(&feedback, now);
                }
            }
            Self::Receiver(receiver) => {
                let Some(number) = datagram.first_chunk() else { return };
                let number = u32::from_be_bytes(*number);
                receiver.came.push((number, now));
                receiver.collector.note(number, now);
                receiver.report_at.get_or_insert(now + REPORT_INTERVAL);
            }
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        match self {
            Self::Sender(sender) => {
                let (number, bytes) = sender.poll_packet(now)?;
                buffer.extend_from_slice(&number.to_be_bytes());
                buffer.resize(bytes.max(4), 0);
                Some(Route { socket: 0, remote: there() })
            }
            Self::Receiver(receiver) => {
                receiver.report_at.filter(|at| now >= *at)?;
                receiver.report_at = None;
                receiver.collector.report()?.write(buffer);
                Some(Route { socket: 0, remote: here() })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Sender(sender) => Some(sender.poll_timeout()),
            Self::Receiver(receiver) => receiver.report_at,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Sender(sender) => sender.handle_timeout(now),
            // What is due is sent by the poll that follows.
            Self::Receiver(_) => {}
        }
    }
}

fn here() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4_000))
}

fn there() -> SocketAddr {
    SocketAddr::from(([10, 0, 9, 9], 5_000))
}

/// WebRTC reports every 50 to 250 ms, the faster the more comes; from 400 kbit/s on every 50 ms.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
const AFTERWARDS: Duration = Duration::from_secs(20);
