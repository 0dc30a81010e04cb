use std::ops::{Index, IndexMut};

use tautline_units::{Bitrate, Duration, Instant};

use crate::clock::{ClockEstimate, Estimator};
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::event::Timer;
use crate::link::{self, Change, Entry, Hush, Link};
use crate::round_trips::{RoundTrip, RoundTrips};
use crate::wire::{LinkNumber, Pong};

/// The links of a session in order of their numbers, and the clock that their pongs compare.
///
/// A link's place among them moves when one with a lower number is learned.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    clock: Estimator,
    round_trips: RoundTrips,
    /// By place: which links may want to be called at another time than they last said.
    touched: u16,
    hush: Hush,
    /// What that was said under.
    carrying: Carrying,
}

/// The rule for which links may carry media: those that are trusted and do not stand by for another of
/// their group; if there is none, those that are trusted; if none is, those that are up; streams only
/// where no other link lives.
///
/// A suspect link's media moves to better links. Where there is none, media waits for the end of a
/// short stall, until the link is silent, or until a stream answers a ping that left since: that one
/// lives where the other does not, and carries until the other has settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrying {
    /// Those that are trusted, streams not; if there is one that does not stand by, only such.
    Trusted { any_chosen: bool },
    /// Those that are up, streams not.
    Up,
    /// Streams: those that are trusted or, if none is, those that are up.
    Streams { any_trusted: bool },
}

/// The places of some links.
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
            hush: Hush::new(),
            carrying: Carrying::Up,
        }
    }

    /// Adds a link that is not known and gives its place.
    pub(crate) fn insert(&mut self, link: Link) -> usize {
        let place = self.links.partition_point(|known| known.number() < link.number());
        self.links.insert(place, link);
        self.touched = ALL;
        place
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    /// Returns the place of link `number`.
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

    /// Returns the peer's clock against ours; `None` before the first pong.
    pub(crate) fn clock(&self, now: Instant) -> Option<ClockEstimate> {
        self.clock.estimate(now)
    }

    /// Returns the peer's clock as the deadlines of what we send go by it: see [`ClockEstimate::for_sending`].
    pub(crate) fn clock_for_sending(&self, config: &Config, now: Instant) -> Option<ClockEstimate> {
        self.clock(now).map(|clock| clock.for_sending(config.media_deadline))
    }

    /// Takes a pong that came over the link at `place`.
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

    /// Returns the newest round trips of all links, oldest first.
    pub(crate) fn round_trips(&self) -> impl Iterator<Item = &RoundTrip> {
        self.round_trips.iter()
    }

    /// Notes that something came over a link.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.hush.hear(now);
    }

    /// Lets the link at `place` know the time: see [`Link::on_timeout`].
    pub(crate) fn on_timeout(&mut self, place: usize, config: &Config, now: Instant) -> Change {
        self.touched |= 1 << place;
        let several = self.links.iter().filter(|link| link.is_up()).nth(1).is_some();
        self.links[place].on_timeout(several.then_some(&self.hush), config, now)
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

    /// Lets streams stand by while another link lives, and calls them when none does.
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

    /// Returns the links that commands and other copies go over, a bit for each number: all that are live, but not
    /// those whose way out is too thin even for what rides with commands, where two others are better; if none is
    /// live, all that have been up.
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

    /// Takes note that the stream of `route` takes no datagram at present, or takes them again.
    pub(crate) fn set_blocked(&mut self, route: link::Route, is_blocked: bool) {
        for link in self.iter_mut().filter(|link| link.route() == route) {
            link.set_blocked(is_blocked);
        }
    }

    /// Returns the links that may carry media.
    pub(crate) fn carriers(&self) -> impl Iterator<Item = &Link> {
        let carrying = self.carrying();
        self.links.iter().filter(move |link| carrying.allows(link))
    }

    /// Returns the places of the links that may carry media.
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

    /// Chooses of each group the link that carries media, the others stand by; true if anything is
    /// another than before.
    ///
    /// The best that is trusted; from one that does well only to one that has done well for a while.
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

    /// Doubts the link that carries media for the group of the one at `place`, over which something has just come,
    /// if nothing comes over the former: they share both sockets, and so what stands still is the way. True if it is
    /// doubted for that.
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

    /// Doubts each link that is `lost`, if nothing comes over it; true if any is doubted for that.
    pub(crate) fn doubt(&mut self, lost: impl Fn(&Link) -> bool, now: Instant) -> bool {
        let mut any = false;
        for link in self.iter_mut().filter(|link| lost(link)) {
            any |= link.doubt(now);
        }
        any
    }

    /// Returns the links that stand by, a bit for each number.
    pub(crate) fn standing_by(&self) -> u16 {
        let standing = self.links.iter().filter(|link| link.stands_by());
        standing.fold(0, |bits, link| bits | link.bit())
    }

    /// Returns the largest datagram that every link that is up can carry; `configured` if none is.
    // protocol 3, size of datagrams
    pub(crate) fn datagram_bytes_max(&self, configured: usize) -> usize {
        let live = self.links.iter().filter(|link| link.is_live());
        live.map(Link::datagram_bytes_max).min().unwrap_or(configured)
    }

    /// Gives a media packet to the link that delivers it first, or back if none does in time.
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
            // A link that has told nothing of late is the one that brought this about.
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

    /// Drops every media packet that waits: another session takes this one's place.
    pub(crate) fn abandon(&mut self, counters: &mut Counters) {
        for link in self.iter_mut() {
            while link.pop().is_some() {
                counters.discard(Discard::MediaSilenced);
            }
        }
    }

    /// Gives the places of the links that may want to be called at another time than before, and
    /// that time.
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

    /// Returns what is known of each link; `span`: for how long a media unit is worth something.
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

/// Copies of commands go over so many links, however thin.
const COPIES_LEAST: usize = 2;
/// A better way may be so much slower and is still taken.
const SLOWER_MOST: Duration = Duration::from_millis(30);
/// Behind every way that is not slow.
const RANK_SLOW: u8 = 16;
/// Every place.
const ALL: u16 = u16::MAX;

const _: () = assert!(LinkNumber::COUNT == 16, "a bit for each place");
