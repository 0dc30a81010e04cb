use std::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_sim::link::{Drop, Link};
use tautline_sim::wireless::{self, Medium};
use tautline_units::{ByteCount, Instant};

use super::packet::Packet;
use super::status::DirectionStatus;

/// A direction of an emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Direction {
    /// From the client, which is the vehicle, to the target.
    Up,
    /// From target to client.
    Down,
}

/// Model of a link's packets in both directions.
#[derive(Debug)]
pub(super) enum Model {
    /// Independent directions: up, then down.
    Links(Box<[Link<Packet>; 2]>),
    /// Both directions over one shared channel.
    Wireless(Box<Wireless>),
}

/// A wireless network whose access point is at the client's side, with the cuts and counters that
/// [`Medium`] lacks.
#[derive(Debug)]
pub(super) struct Wireless {
    medium: Medium<Packet>,
    directions: [DirectionState; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct DirectionState {
    is_cut: bool,
    received: u64,
    received_bytes: u64,
    cut: u64,
    delivered: u64,
    delivered_bytes: u64,
}

impl Direction {
    pub(super) const BOTH: [Self; 2] = [Self::Up, Self::Down];

    fn side(self) -> wireless::Side {
        match self {
            Self::Up => wireless::Side::AccessPoint,
            Self::Down => wireless::Side::Station,
        }
    }
}

impl Model {
    pub(super) fn of_links(up: Link<Packet>, down: Link<Packet>) -> Self {
        Self::Links(Box::new([up, down]))
    }

    pub(super) fn of_wireless(config: wireless::Config, seed: u64) -> Self {
        let medium = Medium::new(config, seed);
        Self::Wireless(Box::new(Wireless { medium, directions: [DirectionState::default(); 2] }))
    }

    /// Passes a packet to the model, which may mark it as congested.
    ///
    /// # Errors
    /// The reason, if the model drops the packet immediately.
    pub(super) fn push(
        &mut self,
        direction: Direction,
        mut packet: Packet,
        now: Instant,
    ) -> Result<(), Drop> {
        let len = ByteCount::of(&packet.bytes);
        match self {
            Self::Links(links) => {
                let link = &mut links[direction as usize];
                packet.ecn = link.mark(now, packet.ecn);
                link.push(now, len, packet)
            }
            Self::Wireless(air) => air.push(direction, len, packet, now),
        }
    }

    /// Returns the next packet that arrived until `now`, with its direction and arrival time;
    /// `None` if there is none.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Direction, Instant, Packet)> {
        match self {
            Self::Links(links) => Direction::BOTH.into_iter().find_map(|direction| {
                let (at, packet) = links[direction as usize].pop(now)?;
                Some((direction, at, packet))
            }),
            Self::Wireless(air) => air.pop(now),
        }
    }

    /// Returns when to call [`Self::pop`] next; `None` without packets in transit.
    pub(super) fn next_event(&self) -> Option<Instant> {
        match self {
            Self::Links(links) => links.iter().filter_map(Link::next_departure).min(),
            Self::Wireless(air) => air.medium.next_event(),
        }
    }

    /// Cuts or restores one direction.
    pub(super) fn set_cut(&mut self, direction: Direction, cut: bool) {
        match self {
            Self::Links(links) => links[direction as usize].set_cut(cut),
            Self::Wireless(air) => air.directions[direction as usize].is_cut = cut,
        }
    }

    /// Sets the delay of one direction beyond the configured one, in place of one set before.
    ///
    /// # Errors
    /// A reason, if the model does not support it.
    pub(super) fn set_delay_added(
        &mut self,
        direction: Direction,
        added: Duration,
    ) -> Result<(), &'static str> {
        match self {
            Self::Links(links) => {
                links[direction as usize].set_delay_added(added);
                Ok(())
            }
            Self::Wireless(_) => Err("a wireless network supports only the delays of its channel"),
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        match self {
            Self::Links(links) => links.iter().any(Link::is_cut),
            Self::Wireless(air) => air.directions.iter().any(|direction| direction.is_cut),
        }
    }

    /// Returns the counters of one direction.
    pub(super) fn status(&self, direction: Direction) -> DirectionStatus {
        match self {
            Self::Links(links) => status_of(&links[direction as usize]),
            Self::Wireless(air) => air.status(direction),
        }
    }
}

impl Wireless {
    fn push(
        &mut self,
        direction: Direction,
        len: ByteCount,
        packet: Packet,
        now: Instant,
    ) -> Result<(), Drop> {
        let at = &mut self.directions[direction as usize];
        at.received += 1;
        at.received_bytes += len.get();
        if at.is_cut {
            at.cut += 1;
            return Err(Drop::Cut);
        }
        match self.medium.push(direction.side(), len, packet, now) {
            true => Ok(()),
            false => Err(Drop::Queue),
        }
    }

    fn pop(&mut self, now: Instant) -> Option<(Direction, Instant, Packet)> {
        loop {
            let arrival = self.medium.pop(now)?;
            let direction = match arrival.from {
                wireless::Side::AccessPoint => Direction::Up,
                wireless::Side::Station => Direction::Down,
            };
            let mut packet = arrival.payload;
            if let Some(bit) = arrival.damaged_bit
                && let Some(byte) = packet.bytes.get_mut((bit / 8) as usize)
            {
                *byte ^= 1 << (bit % 8);
            }
            let at = &mut self.directions[direction as usize];
            if at.is_cut {
                at.cut += 1;
                continue;
            }
            at.delivered += 1;
            at.delivered_bytes += packet.bytes.len() as u64;
            return Some((direction, arrival.at, packet));
        }
    }

    fn status(&self, direction: Direction) -> DirectionStatus {
        let did = self.medium.counters(direction.side());
        let DirectionState { received, received_bytes, cut, delivered, delivered_bytes, .. } =
            self.directions[direction as usize];
        let lost = [("queue", did.dropped_queue), ("loss", did.lost), ("cut", cut)];
        DirectionStatus {
            received,
            received_bytes,
            delivered,
            delivered_bytes,
            in_flight: received - delivered - lost.iter().map(|(_, count)| count).sum::<u64>(),
            queued_bytes: self.medium.queued(direction.side()).get(),
            damaged: did.damaged,
            marked: 0,
            drops: lost.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

fn status_of(link: &Link<Packet>) -> DirectionStatus {
    let counters = link.counters();
    DirectionStatus {
        received: counters.pushed,
        received_bytes: counters.pushed_bytes.get(),
        delivered: counters.delivered,
        delivered_bytes: counters.delivered_bytes.get(),
        in_flight: link.in_flight(),
        queued_bytes: link.queued().get(),
        damaged: 0,
        marked: counters.marked,
        drops: counters.drops().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_sim::link;
    use tautline_sim::wireless::{Disturbance, Power};
    use tautline_units::{Bitrate, Ecn};

    use super::*;

    fn models() -> [Model; 2] {
        let slow = link::Config::of_rate(Bitrate::from_mbps(5));
        let lossy = link::Config { loss: 0.2, queue_bytes: 5_000, ..slow };
        let (up, down) = link::Pair::symmetric(lossy).links(1).unwrap();
        let mut air = Power::Far.config();
        air.disturbance = Some(Disturbance::of_table_2());
        [Model::of_links(up, down), Model::of_wireless(air, 1)]
    }

    proptest! {
        /// For arbitrary arrivals and cuts: packets leave in order with at most one bit changed,
        /// and all others are counted.
        #[test]
        fn every_packet_comes_out_in_order_or_is_counted(
            steps in prop::collection::vec((0_u64..3_000, any::<bool>(), 0_usize..1500, 0_u8..40), 1..300),
        ) {
            for mut model in models() {
                let mut now = Instant::ZERO;
                let (mut sent, mut came) = ([0_u32; 2], [None::<u32>; 2]);
                let mut damaged = [0; 2];
                let mut take = |model: &mut Model, now: Instant| {
                    while let Some((direction, at, Packet { bytes: packet, .. })) = model.pop(now) {
                        assert!(at <= now);
                        // The number three times: one bit cannot change two of them.
                        let read = |place: usize| {
                            u32::from_be_bytes(packet[place * 4..place * 4 + 4].try_into().unwrap())
                        };
                        let numbers = [read(0), read(1), read(2)];
                        let number = if numbers[0] == numbers[1] { numbers[0] } else { numbers[2] };
                        let intact = numbers == [number; 3] && packet[12..].iter().all(|byte| *byte == 0);
                        damaged[direction as usize] += u64::from(!intact);
                        assert!(came[direction as usize].is_none_or(|before| before < number));
                        came[direction as usize] = Some(number);
                    }
                };
                for (wait, up, len, cut) in &steps {
                    now += Duration::from_micros(*wait);
                    take(&mut model, now);
                    let direction = if *up { Direction::Up } else { Direction::Down };
                    if *cut < 2 {
                        model.set_cut(direction, *cut == 0);
                    }
                    let mut packet = sent[direction as usize].to_be_bytes().repeat(3);
                    packet.resize(12 + len, 0);
                    let packet = Packet { bytes: packet, ecn: Ecn::Ect1 };
                    let _ = model.push(direction, packet, now);
                    sent[direction as usize] += 1;
                }
                now += Duration::from_secs(10);
                take(&mut model, now);
                for direction in Direction::BOTH {
                    let status = model.status(direction);
                    prop_assert_eq!(status.received, u64::from(sent[direction as usize]));
                    prop_assert_eq!(status.in_flight, 0);
                    let dropped: u64 = status.drops.values().sum();
                    prop_assert_eq!(status.received, status.delivered + dropped);
                    prop_assert!(damaged[direction as usize] <= status.damaged);
                }
            }
        }
    }
}
