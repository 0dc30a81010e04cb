//! A WebRTC call: its congestion control as an endpoint in the world of Tautline's sessions.
//!
//! The controller is the crate goog_cc, a port of libwebrtc's; decision 13 describes the set-up.

mod feedback;
mod sender;

use std::net::SocketAddr;
use std::time::Duration;

use tautline_sim::world::{Node, Route};
use tautline_units::Instant;

use super::links::trail::Passage;
use feedback::{Collector, Feedback};
use sender::Sender;

/// One end of a call.
pub struct Endpoint(Role);

enum Role {
    Sender(Box<Sender>),
    Receiver(Receiver),
}

#[derive(Default)]
struct Receiver {
    collector: Collector,
    came: Vec<(u32, Instant)>,
    /// Time of the next report, if anything arrived since the last.
    report_at: Option<Instant>,
}

impl Endpoint {
    /// Creates the sending end, starting at `now`.
    pub fn sender(now: Instant) -> Self {
        Self(Role::Sender(Box::new(Sender::new(now))))
    }

    /// Creates the end that reports arrivals.
    pub fn receiver() -> Self {
        Self(Role::Receiver(Receiver::default()))
    }

    /// Returns every packet that this end sent, with its arrival time at `receiver`, by the clocks
    /// of both.
    ///
    /// # Panics
    /// If this is not a sender, or the other not a receiver.
    pub fn passages(&self, receiver: &Endpoint) -> Vec<Passage> {
        let (Role::Sender(sender), Role::Receiver(receiver)) = (&self.0, &receiver.0) else {
            panic!("a sender is asked for what came to a receiver");
        };
        let mut passages = sender.passages.clone();
        for (number, at) in &receiver.came {
            if let Some(passage) = passages.get_mut(*number as usize) {
                passage.arrived = Some(*at);
            }
        }
        passages
    }
}

impl Node for Endpoint {
    fn handle_datagram(&mut self, _route: Route, datagram: &[u8], now: Instant) {
        match &mut self.0 {
            Role::Sender(sender) => {
                if let Some(feedback) = Feedback::parse(datagram) {
                    sender.handle_feedback(&feedback, now);
                }
            }
            Role::Receiver(receiver) => {
                let Some(number) = datagram.first_chunk() else { return };
                let number = u32::from_be_bytes(*number);
                receiver.came.push((number, now));
                receiver.collector.note(number, now);
                receiver.report_at.get_or_insert(now + REPORT_INTERVAL);
            }
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        match &mut self.0 {
            Role::Sender(sender) => {
                let (number, bytes) = sender.poll_packet(now)?;
                buffer.extend_from_slice(&number.to_be_bytes());
                buffer.resize(bytes.max(4), 0);
                Some(Route { socket: 0, remote: there() })
            }
            Role::Receiver(receiver) => {
                receiver.report_at.filter(|at| now >= *at)?;
                receiver.report_at = None;
                receiver.collector.report()?.write(buffer);
                Some(Route { socket: 0, remote: here() })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.0 {
            Role::Sender(sender) => Some(sender.poll_timeout()),
            Role::Receiver(receiver) => receiver.report_at,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.0 {
            Role::Sender(sender) => sender.handle_timeout(now),
            // The following poll sends whatever is due.
            Role::Receiver(_) => {}
        }
    }
}

/// Returns the address to which a receiver replies.
pub fn here() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4_000))
}

/// Returns the address to which a sender sends.
pub fn there() -> SocketAddr {
    SocketAddr::from(([10, 0, 9, 9], 5_000))
}

/// Time from the first unreported arrival to its report. WebRTC reports every 50 to 250 ms, more
/// often at higher rates; from 400 kbit/s on, every 50 ms.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use tautline_sim::link::{Config, Pair};
    use tautline_sim::world::{Clock, End, World};
    use tautline_units::{Bitrate, ByteCount};

    use super::*;

    #[test]
    fn alone_a_call_takes_most_of_a_link() {
        let link = Config::of_rate(Bitrate::from_mbps(10)).with_delay(Duration::from_millis(15));
        let mut world = World::new(1);
        let receiver = world.add(Endpoint::receiver(), Clock::default());
        let sender = world.add(Endpoint::sender(world.now()), Clock::default());
        let ends = [End::new(sender, 0, here()), End::new(receiver, 0, there())];
        world.link(ends[0], ends[1], &Pair::symmetric(link)).expect("a sound link");
        world.run_until(Instant::from_millis(40_000));
        let passages = world.node(sender).passages(world.node(receiver));
        let late = passages.iter().filter(|passage| passage.at > Instant::from_millis(20_000));
        let came = late.filter(|passage| passage.arrived.is_some());
        let bytes: ByteCount = came.map(|passage| passage.bytes).sum();
        let rate = Bitrate::of(bytes, Duration::from_secs(20));
        assert!((6e6..10e6).contains(&rate.as_f64()), "{rate:?}");
    }
}
