//! Order in which the paths to a server are tried: by link and address family, without sockets or
//! clocks.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tautline_units::Instant;

/// Paths that may reach a server, one per local end, with the failures since their last success.
///
/// Paths are identified by their index. Those with the fewest failures are tried first.
#[derive(Debug)]
pub(super) struct Sources {
    failures: Vec<u32>,
}

/// One attempt to connect: the index of a path, and an address of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) source: usize,
    pub(super) address: SocketAddr,
}

/// Attempts that start one after another, [`STAGGER`] apart or as soon as one has failed; the first
/// that completes ends the race. Source: [RFC8305] 5, applied to links and families of addresses
/// alike.
#[derive(Debug)]
pub(super) struct Race {
    waiting: VecDeque<Attempt>,
    running: usize,
    /// Start time of the next attempt.
    next_at: Instant,
}

impl Sources {
    /// Creates `count` paths without history.
    pub(super) fn new(count: usize) -> Self {
        Self { failures: vec![0; count] }
    }

    /// Clears the failures of a path that reached the server.
    pub(super) fn handle_reached(&mut self, source: usize) {
        if let Some(failures) = self.failures.get_mut(source) {
            *failures = 0;
        }
    }

    /// Counts a failure of a path: an attempt has failed, or its connection was lost.
    pub(super) fn handle_failed(&mut self, source: usize) {
        if let Some(failures) = self.failures.get_mut(source) {
            *failures = failures.saturating_add(1);
        }
    }

    /// Returns a race of every path and every address, each pair once; the first [`ATTEMPTS_MAX`]
    /// of them.
    ///
    /// Consecutive attempts differ in their path and, if there are several, in their address: a
    /// dead link or a dead family delays the next attempt by at most [`STAGGER`].
    pub(super) fn race(&self, addresses: &[SocketAddr], now: Instant) -> Race {
        let mut sources: Vec<usize> = (0..self.failures.len()).collect();
        sources.sort_by_key(|source| self.failures[*source]);
        let rounds = 0..addresses.len();
        let pairs = rounds.flat_map(|round| {
            sources.iter().enumerate().map(move |(turn, source)| Attempt {
                source: *source,
                address: addresses[(round + turn) % addresses.len()],
            })
        });
        Race { waiting: pairs.take(ATTEMPTS_MAX).collect(), running: 0, next_at: now }
    }
}

impl Race {
    /// Returns the next attempt to start and counts it as running; `None` if none is due or left.
    pub(super) fn poll_start(&mut self, now: Instant) -> Option<Attempt> {
        if now < self.next_at {
            return None;
        }
        let attempt = self.waiting.pop_front()?;
        self.running += 1;
        self.next_at = now + STAGGER;
        Some(attempt)
    }

    /// Ends a running attempt that has failed, and makes the next one due now.
    pub(super) fn handle_failed(&mut self, now: Instant) {
        self.running = self.running.saturating_sub(1);
        self.next_at = now;
    }

    /// Returns the start time of the next attempt, if there is one.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    /// Returns whether every attempt has failed.
    pub(super) fn is_lost(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }
}

/// Returns at most [`ADDRESSES_MAX`] of `addresses` in the order of attempts: `last` first, the one
/// reached last time, if it is among them, then both families alternately, beginning with IPv6
/// unless `last` was of it.
pub(super) fn by_turns(addresses: &[SocketAddr], last: Option<SocketAddr>) -> Vec<SocketAddr> {
    let known = last.filter(|last| addresses.contains(last));
    let of_family = |is_six: bool| {
        let others = addresses.iter().copied().filter(move |it| it.is_ipv6() == is_six);
        others.filter(|it| Some(*it) != known).collect::<VecDeque<_>>()
    };
    let mut families = [of_family(true), of_family(false)];
    let mut ordered: Vec<SocketAddr> = known.into_iter().collect();
    let mut turn = usize::from(known.is_some_and(|known| known.is_ipv6()));
    while ordered.len() < ADDRESSES_MAX && families.iter().any(|family| !family.is_empty()) {
        ordered.extend(families[turn].pop_front());
        turn = 1 - turn;
    }
    ordered
}

/// Time from the start of one attempt to that of the next, unless one fails before. Source:
/// [RFC8305] 8, Connection Attempt Delay.
pub(super) const STAGGER: Duration = Duration::from_millis(250);
/// Maximum attempts in a race: those of sixteen links and the system's own choice, with both
/// families of addresses.
const ATTEMPTS_MAX: usize = 34;
/// Maximum addresses of a name per attempt; the next attempt may use others.
const ADDRESSES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Behaviour of a link in a race.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Link {
        /// Without a route: an attempt fails at once.
        Dead,
        /// Without an answer: an attempt fails after three seconds.
        Blocked,
        /// Connects after this number of milliseconds.
        Leads(u64),
    }

    /// Runs a race in virtual time; returns the time in milliseconds and the path of the winner, or
    /// `None` if all failed.
    fn run(
        sources: &mut Sources,
        links: &[Link],
        addresses: &[SocketAddr],
    ) -> Option<(u64, usize)> {
        let mut race = sources.race(addresses, Instant::ZERO);
        let (mut now, mut running): (u64, Vec<(u64, bool, usize)>) = (0, Vec::new());
        loop {
            let at = Instant::from_millis(now);
            while let Some(attempt) = race.poll_start(at) {
                let (takes, leads) = match links[attempt.source] {
                    Link::Dead => (0, false),
                    Link::Blocked => (3_000, false),
                    Link::Leads(after) => (after, true),
                };
                running.push((now + takes, leads, attempt.source));
            }
            let due = running.iter().copied().filter(|(end, ..)| *end <= now).min();
            if let Some(ended @ (_, leads, source)) = due {
                running.retain(|it| *it != ended);
                if leads {
                    sources.handle_reached(source);
                    return Some((now, source));
                }
                sources.handle_failed(source);
                race.handle_failed(at);
                continue;
            }
            if race.is_lost() {
                return None;
            }
            let ends = running.iter().map(|(end, ..)| *end);
            let next = race.poll_timeout().map(|at| at.as_nanos() / 1_000_000);
            now = ends
                .chain(next)
                .min()
                .expect("something is due while the race is not lost")
                .max(now);
        }
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn link() -> impl Strategy<Value = Link> {
        prop_oneof![Just(Link::Dead), Just(Link::Blocked), (0..3_000_u64).prop_map(Link::Leads)]
    }

    proptest! {
        #[test]
        fn any_working_link_is_found_whatever_the_others_do(
            links in prop::collection::vec(link(), 1..6), two_families: bool
        ) {
            let addresses = match two_families {
                true => addresses(&["[2001:db8::1]:7443", "192.0.2.1:7443"]),
                false => addresses(&["192.0.2.1:7443"]),
            };
            let mut sources = Sources::new(links.len());
            let best = links.iter().filter_map(|link| match link {
                Link::Leads(after) => Some(*after),
                Link::Dead | Link::Blocked => None,
            });
            let won = run(&mut sources, &links, &addresses);
            match best.min() {
                None => prop_assert_eq!(won, None),
                Some(best) => {
                    let (at, source) = won.expect("a link leads there");
                    let staggers = STAGGER.as_millis() as u64 * (links.len() as u64 - 1);
                    prop_assert!(at <= best + staggers, "{at} ms, best {best}");
                    prop_assert!(matches!(links[source], Link::Leads(_)));
                }
            }
        }

        #[test]
        fn links_that_failed_are_tried_last(
            links in prop::collection::vec(link(), 2..6), lost in 0..6_usize
        ) {
            let mut sources = Sources::new(links.len());
            let lost = lost % links.len();
            sources.handle_failed(lost);
            let race = sources.race(&addresses(&["192.0.2.1:1"]), Instant::ZERO);
            prop_assert_eq!(race.waiting.back().unwrap().source, lost);
        }
    }

    #[test]
    fn any_mix_of_dead_blocked_and_slow_links_connects() {
        let states = [Link::Dead, Link::Blocked, Link::Leads(60), Link::Leads(1_400)];
        let addresses = addresses(&["192.0.2.1:7443"]);
        for first in states {
            for second in states {
                for third in states {
                    let links = [first, second, third];
                    let mut sources = Sources::new(3);
                    let won = run(&mut sources, &links, &addresses);
                    let leads = links.iter().any(|link| matches!(link, Link::Leads(_)));
                    assert_eq!(won.is_some(), leads, "{links:?}");
                    // The next race starts with the path that worked.
                    if let Some((_, source)) = won {
                        let race = sources.race(&addresses, Instant::ZERO);
                        assert!(
                            sources.failures[race.waiting[0].source] == 0,
                            "{links:?} {source}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_failed_link_is_tried_last_until_it_connects_again() {
        let mut sources = Sources::new(3);
        let addresses = addresses(&["192.0.2.1:7443"]);
        let order = |sources: &Sources| -> Vec<usize> {
            sources.race(&addresses, Instant::ZERO).waiting.iter().map(|it| it.source).collect()
        };
        assert_eq!(order(&sources), [0, 1, 2]);
        sources.handle_failed(0);
        assert_eq!(order(&sources), [1, 2, 0]);
        sources.handle_failed(1);
        assert_eq!(order(&sources), [2, 0, 1]);
        sources.handle_reached(1);
        assert_eq!(order(&sources), [1, 2, 0]);
    }

    #[test]
    fn attempts_differ_in_link_and_family_from_one_to_the_next() {
        let addresses = addresses(&["[2001:db8::1]:1", "192.0.2.1:1"]);
        let race = Sources::new(2).race(&addresses, Instant::ZERO);
        let pairs: Vec<(usize, bool)> =
            race.waiting.iter().map(|it| (it.source, it.address.is_ipv6())).collect();
        assert_eq!(pairs, [(0, true), (1, false), (0, false), (1, true)]);
        assert!(Sources::new(2).race(&[], Instant::ZERO).is_lost());
        assert_eq!(Sources::new(40).race(&addresses, Instant::ZERO).waiting.len(), ATTEMPTS_MAX);
    }

    #[test]
    fn families_take_turns_and_what_worked_comes_first() {
        let all = addresses(&["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"]);
        let texts = |last: Option<&str>| -> Vec<String> {
            let last = last.map(|text| text.parse().unwrap());
            by_turns(&all, last).iter().map(|address| address.ip().to_string()).collect()
        };
        assert_eq!(texts(None), ["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
        assert_eq!(texts(Some("192.0.2.2:1")), ["192.0.2.2", "2001:db8::1", "192.0.2.1"]);
        assert_eq!(texts(Some("192.0.2.9:1")), ["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
        assert_eq!(by_turns(&addresses(&["192.0.2.1:1"; 9]), None).len(), ADDRESSES_MAX);
    }
}
