//! Which packet of a block goes over which link.

use std::fmt::Debug;

use serde::Deserialize;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A policy that assigns a block's packets to links.
pub trait Policy: Debug + Send {
    /// Writes one entry per packet into `assignment`, old content replaced: the link's place in
    /// `links`, or `None` for a packet that no link can deliver before the deadline.
    fn assign(&self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>);
}

/// A link as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// When all that waits there will have been sent at the granted rate.
    pub free_at: Instant,
    /// The granted rate.
    pub rate: Bitrate,
    /// The one-way delay to the peer.
    pub owd: Duration,
}

/// A block as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// k.
    pub source_count: usize,
    /// n.
    pub packet_count: usize,
    /// Bytes of each packet's datagram.
    pub datagram_bytes: ByteCount,
    /// When the unit must have arrived, on our clock.
    pub deadline: Instant,
    /// Whether the block shall survive the loss of a link.
    pub spread: bool,
    /// Now.
    pub now: Instant,
}

/// The name of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`EarliestDelivery`].
    EarliestDelivery,
    /// [`TransmissionEnd`].
    TransmissionEnd,
}

impl Kind {
    /// The policy of this name.
    pub fn policy(self) -> Box<dyn Policy> {
        match self {
            Self::EarliestDelivery => Box::new(EarliestDelivery),
            Self::TransmissionEnd => Box::new(TransmissionEnd),
        }
    }
}

/// Takes the link whose anticipated transmission end is the earliest ([LTE] III.B).
#[derive(Debug, Clone, Copy)]
pub struct TransmissionEnd;

/// Takes the link whose anticipated transmission end plus one-way delay is the earliest.
#[derive(Debug, Clone, Copy)]
pub struct EarliestDelivery;

impl Policy for TransmissionEnd {
    fn assign(&self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assign(block, links, assignment, |end, _owd| end);
    }
}

impl Policy for EarliestDelivery {
    fn assign(&self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assign(block, links, assignment, |end, owd| end + owd);
    }
}

/// Gives each packet to the cheapest link that is in time.
///
/// A block survives the loss of a link if and only if n less the packets on the busiest link is
/// at least k, so with `spread` a link takes n - k packets at most, as long as another link would
/// not let them wait for more than [`PATIENCE`] of the time left: a slow link is not drowned for
/// the sake of the rule. It takes half as many while that too can be had: then, over four links,
/// the block survives the loss of two. Repair packets but one wait nowhere for more than half of
/// the time left: when all links are congested, more would only delay the next block.
fn assign(
    block: &Block,
    links: &[Link],
    assignment: &mut Vec<Option<usize>>,
    cost: impl Fn(Instant, Duration) -> Instant,
) {
    assignment.clear();
    let mut free_at = [Instant::ZERO; LINKS_MAX];
    let mut taken = [0; LINKS_MAX];
    for (free_at, link) in free_at.iter_mut().zip(links) {
        *free_at = link.free_at.max(block.now);
    }
    let repair_count = block.packet_count - block.source_count;
    let patience = block.now + block.deadline.since(block.now) / PATIENCE;
    let patience_most = block.now + block.deadline.since(block.now) / PATIENCE_MOST;
    let needed = block.source_count + MARGIN;
    for index in 0..block.packet_count {
        let best = |most: usize| {
            links
                .iter()
                .enumerate()
                .take(LINKS_MAX)
                .filter(|(at, _)| most == ANY || (taken[*at] < most && free_at[*at] <= patience))
                .filter(|(at, _)| index < needed || free_at[*at] <= patience_most)
                .map(|(at, link)| {
                    (at, free_at[at] + link.rate.time_for(block.datagram_bytes), link)
                })
                .filter(|(_, end, link)| *end + link.owd <= block.deadline)
                .min_by_key(|(at, end, link)| (cost(*end, link.owd), *at))
                .map(|(at, end, _)| (at, end))
        };
        let choice = match block.spread && links.len() > 1 {
            true => best(repair_count / 2).or_else(|| best(repair_count)).or_else(|| best(ANY)),
            false => best(ANY),
        };
        if let Some((at, end)) = choice {
            free_at[at] = end;
            taken[at] += 1;
        }
        assignment.push(choice.map(|(at, _)| at));
    }
}

/// No bound on a link's packets.
const ANY: usize = usize::MAX;
const LINKS_MAX: usize = crate::wire::LinkNumber::COUNT;
/// A quarter of 200 ms is 50 ms: as long as the slowest mobile link's own delay.
const PATIENCE: u32 = 4;
const PATIENCE_MOST: u32 = 2;
/// As many beyond k as are sent again when a link goes.
const MARGIN: usize = crate::send::retransmit::MARGIN;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(wait: u64, mbps: u64, owd: u64) -> Link {
        Link {
            free_at: Instant::from_millis(1_000 + wait),
            rate: Bitrate::from_mbps(mbps),
            owd: Duration::from_millis(owd),
        }
    }

    fn block(spread: bool) -> Block {
        Block {
            source_count: 4,
            packet_count: 8,
            datagram_bytes: ByteCount::new(400),
            deadline: Instant::from_millis(1_200),
            spread,
            now: Instant::from_millis(1_000),
        }
    }

    fn counts(policy: &dyn Policy, block: &Block, links: &[Link]) -> Vec<usize> {
        let mut assignment = Vec::new();
        policy.assign(block, links, &mut assignment);
        assert_eq!(assignment.len(), block.packet_count);
        (0..links.len()).map(|at| assignment.iter().filter(|a| **a == Some(at)).count()).collect()
    }

    #[test]
    fn equal_links_share_equally() {
        let links = [link(0, 4, 20); 4];
        assert_eq!(counts(&EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        assert_eq!(counts(&TransmissionEnd, &block(false), &links), [2, 2, 2, 2]);
    }

    #[test]
    fn earliest_delivery_minds_the_delay_and_transmission_end_does_not() {
        let links = [link(0, 4, 20), link(0, 4, 60)];
        assert_eq!(counts(&EarliestDelivery, &block(false), &links), [8, 0]);
        assert_eq!(counts(&TransmissionEnd, &block(false), &links), [4, 4]);
    }

    #[test]
    fn a_spread_block_survives_the_loss_of_any_link() {
        let links = [link(0, 50, 10), link(0, 2, 60)];
        assert_eq!(counts(&EarliestDelivery, &block(true), &links), [4, 4]);
    }

    #[test]
    fn a_block_over_four_links_survives_the_loss_of_the_two_fastest() {
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(30, 1, 40)];
        assert_eq!(counts(&EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        // The slowest would keep its packets waiting for too long: one link may still go.
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(60, 1, 40)];
        assert_eq!(counts(&EarliestDelivery, &block(true), &links), [3, 3, 2, 0]);
    }

    #[test]
    fn congested_links_carry_one_repair_packet() {
        assert_eq!(counts(&EarliestDelivery, &block(true), &[link(101, 4, 20); 2]), [3, 2]);
    }

    #[test]
    fn a_drowned_link_is_spared_and_a_late_one_left_out() {
        assert_eq!(
            counts(&EarliestDelivery, &block(true), &[link(0, 50, 10), link(51, 2, 60)]),
            [8, 0]
        );
        let late = [link(190, 4, 20), link(0, 1, 190)];
        assert_eq!(counts(&EarliestDelivery, &block(true), &late), [0, 3]);
        assert_eq!(counts(&EarliestDelivery, &block(true), &[]), [0; 0]);
    }
}
