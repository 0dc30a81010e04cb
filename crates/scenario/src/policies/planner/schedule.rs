use tautline_transport::LinkNumber;
use tautline_transport::planner::Link;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// A rule that assigns a block's packets to links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// Takes the link with the earliest expected end of transmission plus one-way delay.
    EarliestDelivery,
    /// Takes the link with the earliest expected end of transmission ([LTE] III.B).
    TransmissionEnd,
    /// Takes the links in turn, regardless of their state, and skips those that cannot deliver in
    /// time.
    RoundRobin {
        /// Index of the link whose turn is next.
        next: usize,
    },
    /// Sends every packet over every link.
    Redundant,
    /// Sends everything over the one link that would deliver the block first.
    BestLink,
}

/// Properties of a block that decide which links its packets are assigned to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Number of source packets of the block, k.
    pub source_count: usize,
    /// Number of source and repair packets of the block together, n.
    pub packet_count: usize,
    /// Length of the datagram that carries each packet of the block.
    pub datagram_bytes: ByteCount,
    /// Latest arrival time of the unit, on our clock.
    pub deadline: Instant,
    /// True if the block must survive the loss of a link.
    pub spread: bool,
    /// Time of the assignment, on our clock.
    pub now: Instant,
}

impl Schedule {
    /// Writes one entry per packet into `assignment`, replacing its content: the link's index in
    /// `links`, or `None` for a packet that no link can deliver before the deadline.
    pub fn assign(&mut self, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
        match self {
            Self::EarliestDelivery => cheapest(block, links, assignment, |end, owd| end + owd),
            Self::TransmissionEnd => cheapest(block, links, assignment, |end, _owd| end),
            Self::RoundRobin { next } => in_turn(next, block, links, assignment),
            Self::Redundant | Self::BestLink => best(block, links, assignment),
        }
    }

    /// Returns whether every packet assigned to a link is also sent over all others.
    pub fn copies(self) -> bool {
        match self {
            Self::Redundant => true,
            Self::EarliestDelivery
            | Self::TransmissionEnd
            | Self::RoundRobin { .. }
            | Self::BestLink => false,
        }
    }

    /// Returns the rate that media may use over links with the granted rates `granted`, which are
    /// in descending order: the second for [`Redundant`](Self::Redundant) (or the only one), the
    /// first for [`BestLink`](Self::BestLink), otherwise the sum; zero without links.
    pub fn usable(self, granted: &[Bitrate]) -> Bitrate {
        match self {
            Self::EarliestDelivery | Self::TransmissionEnd | Self::RoundRobin { .. } => {
                granted.iter().copied().sum()
            }
            // A copy helps only if it arrives: count the rate of the second fastest link.
            Self::Redundant => granted.get(1).or(granted.first()).copied().unwrap_or(Bitrate::ZERO),
            Self::BestLink => granted.first().copied().unwrap_or(Bitrate::ZERO),
        }
    }
}

/// Assigns packets to the links in turn, beginning with `next`, and moves `next` behind the last
/// link used. A link that would deliver after the deadline is skipped; a packet that all would
/// deliver too late has no link.
fn in_turn(next: &mut usize, block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
    assignment.clear();
    let mut free_at = [Instant::ZERO; LINKS_MAX];
    for (free_at, link) in free_at.iter_mut().zip(links) {
        *free_at = link.free_at.max(block.now);
    }
    let count = links.len().min(LINKS_MAX);
    for _ in 0..block.packet_count {
        let choice = (0..count).map(|step| (*next + step) % count).find_map(|at| {
            let end = free_at[at] + links[at].rate.time_for(block.datagram_bytes);
            (end + links[at].owd <= block.deadline).then_some((at, end))
        });
        if let Some((at, end)) = choice {
            free_at[at] = end;
            *next = at + 1;
        }
        assignment.push(choice.map(|(at, _)| at));
    }
}

/// Assigns all packets to the link that would deliver the last of them first; to none if that is
/// after the deadline.
fn best(block: &Block, links: &[Link], assignment: &mut Vec<Option<usize>>) {
    assignment.clear();
    let bytes = ByteCount::new(block.datagram_bytes.get() * block.packet_count as u64);
    let end = |link: &Link| link.free_at.max(block.now) + link.rate.time_for(bytes) + link.owd;
    let best = (0..links.len()).min_by_key(|at| (end(&links[*at]), *at));
    let best = best.filter(|at| end(&links[*at]) <= block.deadline);
    assignment.resize(block.packet_count, best);
}

/// Assigns each packet to the cheapest link that is in time.
///
/// A block survives the loss of a link if and only if n minus the packets on the busiest link is at
/// least k. With `spread` a link therefore takes at most n - k packets, unless every other link
/// would delay them by more than 1/[`WAIT_SHARE`] of the time left. The rule must not overload a
/// slow link. A link takes half as many while that is possible too: over four links, the block then
/// survives the loss of two. Repair packets, except one, never wait for more than half of the time
/// left: when all links are congested, more would only delay the next block.
fn cheapest(
    block: &Block,
    links: &[Link],
    assignment: &mut Vec<Option<usize>>,
    cost: impl Fn(Instant, Duration) -> Instant,
) {
    assignment.clear();
    let mut free_at = [Instant::ZERO; LINKS_MAX];
    let mut taken = [0; LINKS_MAX];
    let mut times = [Duration::ZERO; LINKS_MAX];
    for (at, link) in links.iter().enumerate().take(LINKS_MAX) {
        free_at[at] = link.free_at.max(block.now);
        times[at] = link.rate.time_for(block.datagram_bytes);
    }
    let repair_count = block.packet_count - block.source_count;
    let waits_until = block.now + block.deadline.since(block.now) / WAIT_SHARE;
    let waits_until_most = block.now + block.deadline.since(block.now) / WAIT_SHARE_MOST;
    let needed = block.source_count + MARGIN;
    for index in 0..block.packet_count {
        let best = |most: usize| {
            links
                .iter()
                .enumerate()
                .take(LINKS_MAX)
                .filter(|(at, _)| most == ANY || (taken[*at] < most && free_at[*at] <= waits_until))
                .filter(|(at, _)| index < needed || free_at[*at] <= waits_until_most)
                .map(|(at, link)| (at, free_at[at] + times[at], link))
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

/// Number of packets of a block that a link may take if it is not limited.
const ANY: usize = usize::MAX;
const LINKS_MAX: usize = LinkNumber::COUNT;
/// Divisor of the time left until the deadline, for the wait of a packet on a link that is spared:
/// a quarter of 200 ms is 50 ms, the delay of the slowest mobile link.
const WAIT_SHARE: u32 = 4;
/// Divisor of the time left until the deadline, for the wait of repair packets beyond [`MARGIN`].
const WAIT_SHARE_MOST: u32 = 2;
/// Number of packets beyond k that may wait on a link for longer than [`WAIT_SHARE_MOST`] allows:
/// as many as the transport resends when a link fails.
const MARGIN: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(wait: u64, mbps: u64, owd: u64) -> Link {
        let link = Link::new(Bitrate::from_mbps(mbps), Duration::from_millis(owd));
        Link { free_at: Instant::from_millis(1_000 + wait), ..link }
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

    fn counts(schedule: &mut Schedule, block: &Block, links: &[Link]) -> Vec<usize> {
        let mut assignment = Vec::new();
        schedule.assign(block, links, &mut assignment);
        assert_eq!(assignment.len(), block.packet_count);
        (0..links.len()).map(|at| assignment.iter().filter(|a| **a == Some(at)).count()).collect()
    }

    #[test]
    fn equal_links_share_equally() {
        let links = [link(0, 4, 20); 4];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        assert_eq!(counts(&mut Schedule::TransmissionEnd, &block(false), &links), [2, 2, 2, 2]);
    }

    #[test]
    fn earliest_delivery_counts_delay_and_transmission_end_does_not() {
        let links = [link(0, 4, 20), link(0, 4, 60)];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(false), &links), [8, 0]);
        assert_eq!(counts(&mut Schedule::TransmissionEnd, &block(false), &links), [4, 4]);
    }

    #[test]
    fn a_spread_block_survives_the_loss_of_any_link() {
        let links = [link(0, 50, 10), link(0, 2, 60)];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &links), [4, 4]);
    }

    #[test]
    fn a_block_over_four_links_survives_the_loss_of_the_two_fastest() {
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(30, 1, 40)];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &links), [2, 2, 2, 2]);
        // The slowest link would delay its packets too long: only one link may fail.
        let links = [link(0, 6, 20), link(0, 6, 20), link(5, 1, 40), link(60, 1, 40)];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &links), [3, 3, 2, 0]);
    }

    #[test]
    fn round_robin_takes_turns_and_the_best_link_takes_all() {
        let links = [link(0, 4, 60), link(0, 8, 20), link(0, 4, 20)];
        let mut turns = Schedule::RoundRobin { next: 0 };
        assert_eq!(counts(&mut turns, &block(false), &links), [3, 3, 2]);
        assert_eq!(counts(&mut turns, &block(false), &links), [3, 2, 3]);
        assert_eq!(counts(&mut Schedule::BestLink, &block(true), &links), [0, 8, 0]);
        assert!(
            Schedule::Redundant.copies()
                && counts(&mut Schedule::Redundant, &block(true), &links)[1] == 8
        );
        let late = [link(0, 1, 300); 2];
        assert_eq!(counts(&mut Schedule::RoundRobin { next: 0 }, &block(false), &late), [0, 0]);
        assert_eq!(counts(&mut Schedule::BestLink, &block(false), &late), [0, 0]);
    }

    #[test]
    fn congested_links_carry_one_repair_packet() {
        assert_eq!(
            counts(&mut Schedule::EarliestDelivery, &block(true), &[link(101, 4, 20); 2]),
            [3, 2]
        );
    }

    #[test]
    fn an_overloaded_link_gets_nothing_and_a_late_one_is_left_out() {
        assert_eq!(
            counts(
                &mut Schedule::EarliestDelivery,
                &block(true),
                &[link(0, 50, 10), link(51, 2, 60)]
            ),
            [8, 0]
        );
        let late = [link(190, 4, 20), link(0, 1, 190)];
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &late), [0, 3]);
        assert_eq!(counts(&mut Schedule::EarliestDelivery, &block(true), &[]), [0; 0]);
    }
}
