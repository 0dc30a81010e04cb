use std::ops::{Index, IndexMut};

use tautline_units::{Bitrate, Duration, Instant};

use crate::clock::{ClockEstimate, Estimator};
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::event::Timer;
use crate::link::{self, Change, Entry, Link, ReceiveGap};
use crate::round_trips::{RoundTrip, RoundTrips};
use crate::wire::{LinkNumber, Pong};

/// The links of a session in order of link numbers, and the clock estimate from their pongs.
///
/// A link's index changes when a link with a lower number is learned.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    clock: Estimator,
    round_trips: RoundTrips,
    /// Links whose timeouts may have changed: bit i stands for the link at index i.
    touched: u16,
    receive_gap: ReceiveGap,
    /// Rule that was in force when the timeouts of the links were last taken.
    carrying: Carrying,
}

/// The rule for which links may carry media. These are the trusted datagram links that are not on
/// standby in their group; if there is none, all trusted datagram links; if there is none either,
/// all datagram links that are up. Streams carry media while no datagram link is up, and in the
/// case that follows.
///
/// A suspect link's media moves to trusted links. If there is none, media waits for the end of a
/// short stall. The wait ends when the link is silent, or when a stream answers a ping sent since
/// the stall began. That stream works while the link does not, and carries media until a datagram
/// link has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrying {
    /// Trusted datagram links. `any_chosen` is true if one of them is not on standby; then only
    /// those that are not.
    Trusted { any_chosen: bool },
    /// All datagram links that are up.
    Up,
    /// Streams: the trusted ones if `any_trusted`, otherwise all that are up.
    Streams { any_trusted: bool },
}

/// Indices in [`Links`] of up to sixteen links.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    places: [usize; LinkNumber::COUNT],
    count: usize,
}

impl Links {
    pub(crate) fn new() -> Self {
        Self {
            links: Vec::new(),
            clock: Estimator::new(),
            round_trips: RoundTrips::new(),
            touched: 0,
            receive_gap: ReceiveGap::new(),
            carrying: Carrying::Up,
        }
    }

    /// Adds a new link and returns its index.
    pub(crate) fn insert(&mut self, link: Link) -> usize {
        let place = self.links.partition_point(|known| known.number() < link.number());
        self.links.insert(place, link);
        self.touched = ALL;
        place
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the index of the link with number `number`; `None` if there is none.
    pub(crate) fn place(&self, number: LinkNumber) -> Option<usize> {
        self.links.iter().position(|link| link.number() == number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Link> {
        self.links.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.touched = ALL;
        self.links.iter_mut()
    }

    /// Returns the estimate of the peer's clock relative to ours; `None` before the first pong.
    pub(crate) fn clock(&self, now: Instant) -> Option<ClockEstimate> {
        self.clock.estimate(now)
    }

    /// Returns the clock estimate used for the deadlines of sent packets; see
    /// [`ClockEstimate::for_sending`]. `None` before the first pong.
    pub(crate) fn clock_for_sending(&self, config: &Config, now: Instant) -> Option<ClockEstimate> {
        self.clock(now).map(|clock| clock.for_sending(config.media_deadline))
    }

    /// Handles a pong received on the link at index `place`; see [`Link::on_pong`].
    pub(crate) fn on_pong(
        &mut self,
        place: usize,
        pong: &Pong,
        counters: &mut Counters,
        now: Instant,
    ) -> Change {
        self.touched |= 1 << place;
        self.links[place].on_pong(pong, (&mut self.clock, &mut self.round_trips), counters, now)
    }

    /// Returns the kept round trips of all links, oldest first.
    pub(crate) fn round_trips(&self) -> impl Iterator<Item = &RoundTrip> {
        self.round_trips.iter()
    }

    /// Records that a datagram was received over some link.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.receive_gap.hear(now);
    }

    /// Runs the timers of the link at index `place`; see [`Link::on_timeout`]. Receive gaps count
    /// only while at least two links are up.
    pub(crate) fn on_timeout(&mut self, place: usize, config: &Config, now: Instant) -> Change {
        self.touched |= 1 << place;
        let several = self.links.iter().filter(|link| link.is_up()).nth(1).is_some();
        self.links[place].on_timeout(several.then_some(&self.receive_gap), config, now)
    }

    pub(crate) fn carrying(&self) -> Carrying {
        let streams = || self.links.iter().filter(|link| link.is_stream() && link.is_up());
        let others = || self.links.iter().filter(|link| !link.is_stream());
        let any_chosen = others().any(|link| link.is_trusted() && !link.stands_by());
        if others().any(Link::is_settled) {
            return Carrying::Trusted { any_chosen };
        }
        let lost_at = others().map(Link::doubted_at).max().unwrap_or(Instant::ZERO);
        let serves = streams().any(|link| link.answered_since(lost_at));
        if !serves && others().any(Link::is_trusted) {
            return Carrying::Trusted { any_chosen };
        }
        if serves || (streams().next().is_some() && !others().any(Link::is_up)) {
            return Carrying::Streams { any_trusted: streams().any(Link::is_trusted) };
        }
        Carrying::Up
    }

    /// Puts streams on standby if trusted datagram links carry the media, and ends their standby
    /// otherwise.
    // protocol 9
    pub(crate) fn call_streams(&mut self, config: &Config, now: Instant) {
        if !self.links.iter().any(Link::is_stream) {
            return;
        }
        let is_standby = matches!(self.carrying(), Carrying::Trusted { .. });
        for place in 0..self.links.len() {
            let link = &self.links[place];
            if !link.is_stream() || link.is_standby() == is_standby {
                continue;
            }
            match is_standby {
                true => self[place].stand_by(),
                false => self[place].call(config, now),
            }
        }
    }

    /// Returns the links that carry a copy of each command and each other copied packet, one bit
    /// per link number. These are all live links, except those whose low-rate uplink is overloaded
    /// by that traffic alone while two others are better. If no link is live, these are all links
    /// that were ever up.
    // protocol 3, life of a link
    pub(crate) fn copied_to(&self) -> u16 {
        let live = || self.links.iter().filter(|link| link.is_live());
        let worth = |link: &Link| (link.is_strained(), link.rtt_min(), link.number());
        let better = |link: &Link| live().filter(|other| worth(other) < worth(link)).count();
        let carry = |link: &&Link| !link.is_strained() || better(link) < COPIES_LEAST;
        let bits =
            |links: &mut dyn Iterator<Item = &Link>| links.fold(0, |bits, link| bits | link.bit());
        match bits(&mut live().filter(carry)) {
            0 => bits(&mut self.links.iter().filter(|link| link.has_been_up())),
            found => found,
        }
    }

    /// Sets whether the socket of the stream `route` accepts no data.
    pub(crate) fn set_blocked(&mut self, route: link::Route, is_blocked: bool) {
        for link in self.iter_mut().filter(|link| link.route() == route) {
            link.set_blocked(is_blocked);
        }
    }

    /// Returns the links that may carry media, in order of link numbers; see [`Carrying`].
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &Link> {
        let carrying = self.carrying();
        self.links.iter().filter(move |link| carrying.allows(link))
    }

    /// Returns the indices of the links that may carry media, ascending; see [`Carrying`].
    pub(crate) fn carrier_places(&self) -> Places {
        let carrying = self.carrying();
        let mut found = Places { places: [0; LinkNumber::COUNT], count: 0 };
        let links = self.links.iter().enumerate();
        for (place, _) in links.filter(|(_, link)| carrying.allows(link)) {
            found.places[found.count] = place;
            found.count += 1;
        }
        found
    }

    /// Selects in each group the link that is not on standby, and puts its others on standby.
    /// Returns true if the standby of any link changed.
    ///
    /// It selects the trusted link of the lowest rank, and changes nothing in a group that has
    /// none. Links whose RTT exceeds the fastest one's by more than 30 ms rank behind the others.
    /// From a trusted link it switches only to a better one that has been trusted for 300 ms.
    // protocol 10
    pub(crate) fn elect(&mut self, now: Instant) -> bool {
        let mut changed = false;
        for first in 0..self.links.len() {
            let Some(group) = self.links[first].group() else { continue };
            let is_member = |link: &Link| link.group() == Some(group);
            if self.links[..first].iter().any(is_member) {
                continue;
            }
            let trusted = || self.links.iter().filter(|link| is_member(link) && link.is_trusted());
            let rtt_least = trusted().filter_map(Link::rtt_min).min().unwrap_or_default();
            let worth = |link: &Link| {
                let slow = link.rtt_min().is_some_and(|rtt| rtt > rtt_least + SLOWER_MOST);
                (link.rank() + if slow { RANK_SLOW } else { 0 }, link.number())
            };
            let best = trusted().map(worth).min();
            let mut carriers = self.links.iter().filter(|link| is_member(link));
            let present = carriers.find(|link| !link.stands_by());
            let present = present.map(|link| (worth(link), link.is_trusted()));
            let mut moves = None;
            for link in self.links.iter_mut().filter(|link| is_member(link)) {
                let steady = link.is_steady(now);
                let Some(best) = best.filter(|(_, number)| *number == link.number()) else {
                    continue;
                };
                let may_move = match present {
                    None | Some((_, false)) => true,
                    Some((present, true)) => best.0 < present.0 && steady,
                };
                moves = may_move.then_some(best.1).or(moves);
            }
            let Some(chosen) = moves else { continue };
            for link in self.iter_mut().filter(|link| is_member(link)) {
                let stands_by = link.number() != chosen;
                changed |= stands_by != link.stands_by();
                link.set_stands_by(stands_by, now);
            }
        }
        changed
    }

    /// Doubts the media link of a group when a datagram has arrived over the standby link at index
    /// `place`: marks the media link suspect if it has received nothing for 40 ms. The two share
    /// both sockets, so the fault lies in the path. Returns true if the media link has just become
    /// suspect; false if the link at `place` is not on standby in a group.
    // protocol 10
    pub(crate) fn doubt_beside(&mut self, place: usize, now: Instant) -> bool {
        let link = &self.links[place];
        let (group, stands_by) = (link.group(), link.stands_by());
        if group.is_none() || !stands_by {
            return false;
        }
        let carries = |link: &Link| link.group() == group && !link.stands_by();
        let carrier = self.links.iter().position(carries);
        carrier.is_some_and(|carrier| self[carrier].doubt(now))
    }

    /// Marks each trusted link for which `lost` is true suspect, if it has received nothing for 40
    /// ms. Returns true if any has just become suspect.
    pub(crate) fn doubt(&mut self, lost: impl Fn(&Link) -> bool, now: Instant) -> bool {
        let mut any = false;
        for link in self.iter_mut().filter(|link| lost(link)) {
            any |= link.doubt(now);
        }
        any
    }

    /// Returns the links on standby, one bit per link number.
    pub(crate) fn standing_by(&self) -> u16 {
        let standing = self.links.iter().filter(|link| link.stands_by());
        standing.fold(0, |bits, link| bits | link.bit())
    }

    /// Returns the length of the largest datagram that fits every live link; `configured` if no
    /// link is live.
    // protocol 3, size of datagrams
    pub(crate) fn datagram_bytes_max(&self, configured: usize) -> usize {
        let live = self.links.iter().filter(|link| link.is_live());
        live.map(Link::datagram_bytes_max).min().unwrap_or(configured)
    }

    /// Queues a media packet on the link with room, of those that may carry media, that delivers it
    /// first; one with overdue reports only if all have them. Counts it as [`link::Media::again`].
    /// Returns the packet if no link has room, or if the chosen one delivers it too late or its
    /// queue is full.
    pub(crate) fn send_again(
        &mut self,
        mut entry: Entry,
        config: &Config,
        now: Instant,
    ) -> Result<(), Entry> {
        let (clock, carrying) = (self.clock_for_sending(config, now), self.carrying());
        let bytes = entry.datagram_bytes();
        let ends = self.links.iter().enumerate().filter(|(_, link)| carrying.allows(link));
        let ends = ends.filter(|(_, link)| link.has_room(link.queued() + bytes));
        let ends = ends.map(|(place, link)| {
            let free_at = link.free_before(entry.deadline, now);
            let end = free_at + link.rate().time_for(bytes) + link.owd_out_or_guess(clock, now);
            // A link with overdue reports probably caused the retransmission; it ranks last.
            (link.is_overdue(config, now), end, place)
        });
        let Some((_, end, place)) = ends.min().filter(|(_, end, _)| *end <= entry.deadline) else {
            return Err(entry);
        };
        let link = &mut self[place];
        entry.standing = link.standing(entry.deadline.since(end), config, now);
        entry.again = false;
        link.push_again(entry)
    }

    /// Drops and counts every queued media packet because a new session replaces this one.
    pub(crate) fn abandon(&mut self, counters: &mut Counters) {
        for link in self.iter_mut() {
            while link.pop().is_some() {
                counters.discard(Discard::MediaSilenced);
            }
        }
    }

    /// Returns the indices and next timeouts of the links whose timeout may have changed since the
    /// last call.
    pub(crate) fn take_timeouts(
        &mut self,
        config: &Config,
    ) -> impl Iterator<Item = (usize, (Instant, Timer))> {
        let carrying = self.carrying();
        if carrying != self.carrying {
            (self.carrying, self.touched) = (carrying, ALL);
        }
        let touched = std::mem::replace(&mut self.touched, 0);
        let links = self.links.iter().enumerate();
        links
            .filter(move |(place, _)| touched & 1 << place != 0)
            .map(move |(place, link)| (place, link.next_timeout(config, carrying.allows(link))))
    }

    /// Returns a view of each link; `span` is the lifetime of a media unit.
    pub(crate) fn views(&self, span: Duration, now: Instant) -> impl Iterator<Item = link::View> {
        let (clock, carrying) = (self.clock(now), self.carrying());
        self.links.iter().map(move |link| {
            let budget = match carrying.allows(link) {
                true => link.budget(span),
                false => Bitrate::ZERO,
            };
            link.view(budget, clock)
        })
    }
}

impl Index<usize> for Links {
    type Output = Link;

    fn index(&self, place: usize) -> &Link {
        &self.links[place]
    }
}

impl IndexMut<usize> for Links {
    fn index_mut(&mut self, place: usize) -> &mut Link {
        self.touched |= 1 << place;
        &mut self.links[place]
    }
}

impl Carrying {
    pub(crate) fn allows(self, link: &Link) -> bool {
        match self {
            Self::Trusted { any_chosen } => {
                link.is_trusted() && !link.is_stream() && !(any_chosen && link.stands_by())
            }
            Self::Up => link.is_up() && !link.is_stream(),
            Self::Streams { any_trusted: true } => link.is_trusted() && link.is_stream(),
            Self::Streams { any_trusted: false } => link.is_up() && link.is_stream(),
        }
    }
}

impl Places {
    pub(crate) fn get(&self) -> &[usize] {
        &self.places[..self.count]
    }
}

/// Number of live links that carry copies of commands even if their low-rate uplinks are
/// overloaded.
const COPIES_LEAST: usize = 2;
/// Maximum RTT excess over the fastest trusted link of the group at which a link of a lower rank is
/// still preferred; above it, the link counts as slow.
const SLOWER_MOST: Duration = Duration::from_millis(30);
/// Rank penalty of a slow link: behind every link that is not slow.
const RANK_SLOW: u8 = 16;
/// Mask of the links at all indices.
const ALL: u16 = u16::MAX;

const _: () = assert!(LinkNumber::COUNT == 16, "a bit for each place");
