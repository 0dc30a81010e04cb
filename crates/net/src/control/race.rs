//! The order in which the ways to a server are tried: link by link, family by family, without sockets or clocks.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tautline_units::Instant;

/// The local ends by which a server may be reached, and how each has done.
///
/// Ways are named by their index. One that has failed since it was last of use comes after those that have not.
#[derive(Debug)]
pub(super) struct Ways {
    failures: Vec<u32>,
}

/// One attempt: by which way, to which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) way: usize,
    pub(super) address: SocketAddr,
}

/// Attempts that are begun one after the other, [`STAGGER`] apart or as soon as one has failed; the first that completes
/// ends the race. Source: [RFC8305] 5, over links and families of addresses alike.
#[derive(Debug)]
pub(super) struct Race {
    waiting: VecDeque<Attempt>,
    running: usize,
    /// When the next attempt begins.
    next_at: Instant,
}

impl Ways {
    /// Returns `count` ways of which nothing is known.
    pub(super) fn new(count: usize) -> Self {
        Self { failures: vec![0; count] }
    }

    /// Takes note that a way led to the server.
    pub(super) fn handle_reached(&mut self, way: usize) {
        if let Some(failures) = self.failures.get_mut(way) {
            *failures = 0;
        }
    }

    /// Takes note that an attempt by a way has failed, or that its connection was lost.
    pub(super) fn handle_failed(&mut self, way: usize) {
        if let Some(failures) = self.failures.get_mut(way) {
            *failures = failures.saturating_add(1);
        }
    }

    /// Returns a race of every way to every address, each pair once; the first [`ATTEMPTS_MAX`] of them.
    ///
    /// Each attempt differs from the one before in its way and, where there are several, in its address: neither a dead
    /// link nor a dead family holds up more than one turn.
    pub(super) fn race(&self, addresses: &[SocketAddr], now: Instant) -> Race {
        let mut ways: Vec<usize> = (0..self.failures.len()).collect();
        ways.sort_by_key(|way| self.failures[*way]);
        let rounds = 0..addresses.len();
        let pairs = rounds.flat_map(|round| {
            ways.iter().enumerate().map(move |(turn, way)| Attempt {
                way: *way,
                address: addresses[(round + turn) % addresses.len()],
            })
        });
        Race { waiting: pairs.take(ATTEMPTS_MAX).collect(), running: 0, next_at: now }
    }
}

impl Race {
    /// Returns the next attempt to begin, if it is time.
    pub(super) fn poll_start(&mut self, now: Instant) -> Option<Attempt> {
        if now < self.next_at {
            return None;
        }
        let attempt = self.waiting.pop_front()?;
        self.running += 1;
        self.next_at = now + STAGGER;
        Some(attempt)
    }

    /// Takes note that an attempt has failed: the next one begins at once.
    pub(super) fn handle_failed(&mut self, now: Instant) {
        self.running = self.running.saturating_sub(1);
        self.next_at = now;
    }

    /// Returns when the next attempt begins, if there is one.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    /// Returns whether every attempt has failed.
    pub(super) fn is_lost(&self) -> bool {
        self.waiting.is_empty() && self.running == 0
    }
}

/// Returns addresses in the order in which they are tried: `last` first, which worked, then both families by turns.
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

/// From one attempt to the next while none has failed. Source: [RFC8305] 8, Connection Attempt Delay.
pub(super) const STAGGER: Duration = Duration::from_millis(250);
/// Sixteen links and the system's own choice, with both families.
const ATTEMPTS_MAX: usize = 34;
/// Of a name with more addresses the rest is for the next attempt.
const ADDRESSES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A link's part in a race.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Link {
        /// There is no route: an attempt fails at once.
        Dead,
        /// Nothing comes back: an attempt fails after three seconds.
        Blocked,
        /// It leads there after so many milliseconds.
        Leads(u64),
    }

    /// Runs a race in virtual time; returns when it was won, by which way, or `None` if it was lost.
    fn run(ways: &mut Ways, links: &[Link], addresses: &[SocketAddr]) -> Option<(u64, usize)> {
        let mut race = ways.race(addresses, Instant::ZERO);
        let (mut now, mut running): (u64, Vec<(u64, bool, usize)>) = (0, Vec::new());
        loop {
            let at = Instant::from_millis(now);
            while let Some(attempt) = race.poll_start(at) {
                let (takes, leads) = match links[attempt.way] {
                    Link::Dead => (0, false),
                    Link::Blocked => (3_000, false),
                    Link::Leads(after) => (after, true),
                };
                running.push((now + takes, leads, attempt.way));
            }
            let due = running.iter().copied().filter(|(end, ..)| *end <= now).min();
            if let Some(ended @ (_, leads, way)) = due {
                running.retain(|it| *it != ended);
                if leads {
                    ways.handle_reached(way);
                    return Some((now, way));
                }
                ways.handle_failed(way);
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
        fn any_link_that_leads_there_is_found_whatever_the_others_do(
            links in prop::collection::vec(link(), 1..6), two_families: bool
        ) {
            let addresses = match two_families {
                true => addresses(&["[2001:db8::1]:7443", "192.0.2.1:7443"]),
                false => addresses(&["192.0.2.1:7443"]),
            };
            let mut ways = Ways::new(links.len());
            let best = links.iter().filter_map(|link| match link {
                Link::Leads(after) => Some(*after),
                Link::Dead | Link::Blocked => None,
            });
            let won = run(&mut ways, &links, &addresses);
            match best.min() {
                None => prop_assert_eq!(won, None),
                Some(best) => {
                    let (at, way) = won.expect("a link leads there");
                    let staggers = STAGGER.as_millis() as u64 * (links.len() as u64 - 1);
                    prop_assert!(at <= best + staggers, "{at} ms, best {best}");
                    prop_assert!(matches!(links[way], Link::Leads(_)));
                }
            }
        }

        #[test]
        fn what_has_failed_comes_after_what_has_not(
            links in prop::collection::vec(link(), 2..6), lost in 0..6_usize
        ) {
            let mut ways = Ways::new(links.len());
            let lost = lost % links.len();
            ways.handle_failed(lost);
            let race = ways.race(&addresses(&["192.0.2.1:1"]), Instant::ZERO);
            prop_assert_eq!(race.waiting.back().unwrap().way, lost);
        }
    }

    #[test]
    fn every_combination_of_dead_blocked_and_slow_links_is_overcome_at_once() {
        let states = [Link::Dead, Link::Blocked, Link::Leads(60), Link::Leads(1_400)];
        let addresses = addresses(&["192.0.2.1:7443"]);
        for first in states {
            for second in states {
                for third in states {
                    let links = [first, second, third];
                    let mut ways = Ways::new(3);
                    let won = run(&mut ways, &links, &addresses);
                    let leads = links.iter().any(|link| matches!(link, Link::Leads(_)));
                    assert_eq!(won.is_some(), leads, "{links:?}");
                    // The next time it begins with what worked.
                    if let Some((_, way)) = won {
                        let race = ways.race(&addresses, Instant::ZERO);
                        assert!(ways.failures[race.waiting[0].way] == 0, "{links:?} {way}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_link_whose_connection_was_lost_is_tried_last_until_it_is_of_use_again() {
        let mut ways = Ways::new(3);
        let addresses = addresses(&["192.0.2.1:7443"]);
        let order = |ways: &Ways| -> Vec<usize> {
            ways.race(&addresses, Instant::ZERO).waiting.iter().map(|it| it.way).collect()
        };
        assert_eq!(order(&ways), [0, 1, 2]);
        ways.handle_failed(0);
        assert_eq!(order(&ways), [1, 2, 0]);
        ways.handle_failed(1);
        assert_eq!(order(&ways), [2, 0, 1]);
        ways.handle_reached(1);
        assert_eq!(order(&ways), [1, 2, 0]);
    }

    #[test]
    fn attempts_differ_in_link_and_family_from_one_to_the_next() {
        let addresses = addresses(&["[2001:db8::1]:1", "192.0.2.1:1"]);
        let race = Ways::new(2).race(&addresses, Instant::ZERO);
        let pairs: Vec<(usize, bool)> =
            race.waiting.iter().map(|it| (it.way, it.address.is_ipv6())).collect();
        assert_eq!(pairs, [(0, true), (1, false), (0, false), (1, true)]);
        assert!(Ways::new(2).race(&[], Instant::ZERO).is_lost());
        assert_eq!(Ways::new(40).race(&addresses, Instant::ZERO).waiting.len(), ATTEMPTS_MAX);
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
