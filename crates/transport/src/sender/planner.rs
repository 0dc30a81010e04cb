//! Which packet of a block goes over which link.

pub(crate) mod price;
pub(crate) mod quantile;

use std::fmt::Debug;

use serde::Deserialize;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A policy that assigns a block's packets to links.
pub trait Policy: Debug + Send {
    /// Writes one entry per packet into `assignment`, old content replaced: the link's place in
    /// `links`, or `None` for a packet that no link can deliver before the deadline.
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>);

    /// Whether every packet that is assigned a link shall go over all others too.
    fn copies(&self) -> bool {
        false
    }

    /// How much of the links' granted rates, fastest first, media of this policy may use.
    fn usable(&self, granted: &[Bitrate]) -> Bitrate {
        granted.iter().copied().sum()
    }
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
    /// Size, repair and shares together, so that the unit comes with the probability that
    /// `protect.miss_target` asks for: docs/decisions/0012-quantile-of-the-sum.md.
    Quantile,
    /// [`EarliestDelivery`].
    EarliestDelivery,
    /// [`TransmissionEnd`].
    TransmissionEnd,
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Redundant`].
    Redundant,
    /// [`BestLink`].
    BestLink,
}

impl Kind {
    /// The policy of this name; `None` for `quantile`, which plans and assigns at once.
    pub fn policy(self) -> Option<Box<dyn Policy>> {
        match self {
            Self::Quantile => None,
            Self::EarliestDelivery => Some(Box::new(EarliestDelivery)),
            Self::TransmissionEnd => Some(Box::new(TransmissionEnd)),
            Self::RoundRobin => Some(Box::new(RoundRobin::default())),
            Self::Redundant => Some(Box::new(Redundant)),
            Self::BestLink => Some(Box::new(BestLink)),
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
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assign(block, links, assignment, |end, _owd| end);
    }
}

impl Policy for EarliestDelivery {
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assign(block, links, assignment, |end, owd| end + owd);
    }
}

/// Takes the links in turn, whatever they are like; one that cannot be in time is passed over.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundRobin {
    next: usize,
}

/// Sends every packet over every link.
#[derive(Debug, Clone, Copy)]
pub struct Redundant;

/// Sends all over the one link that would deliver the block first.
#[derive(Debug, Clone, Copy)]
pub struct BestLink;

impl Policy for RoundRobin {
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assignment.clear();
        let mut free_at = [Instant::ZERO; LINKS_MAX];
        for (free_at, link) in free_at.iter_mut().zip(links) {
            *free_at = link.free_at.max(block.now);
        }
        let count = links.len().min(LINKS_MAX);
        for _ in 0..block.packet_count {
            let choice = (0..count).map(|step| (self.next + step) % count).find_map(|at| {
                let end = free_at[at] + links[at].rate.time_for(block.datagram_bytes);
                (end + links[at].owd <= block.deadline).then_some((at, end))
            });
            if let Some((at, end)) = choice {
                free_at[at] = end;
                self.next = at + 1;
            }
            assignment.push(choice.map(|(at, _)| at));
        }
    }
}

impl Policy for Redundant {
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        BestLink.assign(block, links, assignment);
    }

    fn copies(&self) -> bool {
        true
    }

    /// A copy is worth something only where it arrives: as much as the second fastest carries.
    fn usable(&self, granted: &[Bitrate]) -> Bitrate {
        granted.get(1).or(granted.first()).copied().unwrap_or(Bitrate::ZERO)
    }
}

impl Policy for BestLink {
    fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        assignment.clear();
        let bytes = ByteCount::new(block.datagram_bytes.get() * block.packet_count as u64);
        let end = |link: &Link| link.free_at.max(block.now) + link.rate.time_for(bytes) + link.owd;
        let best = (0..links.len()).min_by_key(|at| (end(&links[*at]), *at));
        let best = best.filter(|at| end(&links[*at]) <= block.deadline);
        assignment.resize(block.packet_count, best);
    }

    fn usable(&self, granted: &[Bitrate]) -> Bitrate {
        granted.first().copied().unwrap_or(Bitrate::ZERO)
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
const MARGIN: usize = super::tracker::MARGIN;

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

    fn counts(policy: &mut dyn Policy, block: &Block, links: &[Link]) -> Vec<usize> {
        let mut assignment = Vec::new();
        policy.assign(block, links, &mut assignment);
        assert_eq!(assignment.len(), block.packet_count);
        (0..links.len()).map(|at| assignment.iter().filter(|a| **a == Some(at)).count()).collect()
    }

    #[test]
    fn equal_links_share_equally() {
        let links = [link(0, 4, 20); 4];
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        assert_eq!(counts(&mut TransmissionEnd, &block(false), &links), [2, 2, 2, 2]);
    }

    #[test]
    fn earliest_delivery_minds_the_delay_and_transmission_end_does_not() {
        let links = [link(0, 4, 20), link(0, 4, 60)];
        assert_eq!(counts(&mut EarliestDelivery, &block(false), &links), [8, 0]);
        assert_eq!(counts(&mut TransmissionEnd, &block(false), &links), [4, 4]);
    }

    #[test]
    fn a_spread_block_survives_the_loss_of_any_link() {
        let links = [link(0, 50, 10), link(0, 2, 60)];
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &links), [4, 4]);
    }

    #[test]
    fn a_block_over_four_links_survives_the_loss_of_the_two_fastest() {
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(30, 1, 40)];
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        // The slowest would keep its packets waiting for too long: one link may still go.
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(60, 1, 40)];
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &links), [3, 3, 2, 0]);
    }

    #[test]
    fn round_robin_takes_turns_and_the_best_link_takes_all() {
        let links = [link(0, 4, 60), link(0, 8, 20), link(0, 4, 20)];
        let mut turns = RoundRobin::default();
        assert_eq!(counts(&mut turns, &block(false), &links), [3, 3, 2]);
        assert_eq!(counts(&mut turns, &block(false), &links), [3, 2, 3]);
        assert_eq!(counts(&mut BestLink, &block(true), &links), [0, 8, 0]);
        assert!(Redundant.copies() && counts(&mut Redundant, &block(true), &links)[1] == 8);
        let late = [link(0, 1, 300); 2];
        assert_eq!(counts(&mut RoundRobin::default(), &block(false), &late), [0, 0]);
        assert_eq!(counts(&mut BestLink, &block(false), &late), [0, 0]);
    }

    #[test]
    fn congested_links_carry_one_repair_packet() {
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &[link(101, 4, 20); 2]), [3, 2]);
    }

    #[test]
    fn a_drowned_link_is_spared_and_a_late_one_left_out() {
        assert_eq!(
            counts(&mut EarliestDelivery, &block(true), &[link(0, 50, 10), link(51, 2, 60)]),
            [8, 0]
        );
        let late = [link(190, 4, 20), link(0, 1, 190)];
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &late), [0, 3]);
        assert_eq!(counts(&mut EarliestDelivery, &block(true), &[]), [0; 0]);
    }
}
